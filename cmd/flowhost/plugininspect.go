package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/host"
)

func (a *app) pluginInspectCommand() *cobra.Command {
	var asJSON bool
	cmd := exits(&cobra.Command{
		Use:   "inspect FILE",
		Short: "Describe a plugin's module without calling it",
		Example: `  flowhost plugin inspect greet.wasm
  flowhost plugin inspect --json greet.wasm | jq .signature.functions`,
		Args: between(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.inspect(cmd.Context(), args[0], asJSON)
		},
	}, exitInvalid)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func (a *app) inspect(ctx context.Context, file string, asJSON bool) error {
	h, err := newHost(ctx, settings{}, a.log(slog.LevelWarn))
	if err != nil {
		return err
	}
	defer closeHost(h)
	i, err := h.Inspect(ctx, file)
	if err != nil {
		return &exitError{exitInvalid, err}
	}
	if asJSON {
		err = a.printJSON(i)
	} else {
		writeInspection(a.out, i)
	}
	if err == nil && !i.Usable {
		err = quiet(exitInvalid)
	}
	return err
}

func writeInspection(w io.Writer, i *host.Inspection) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s "+format+"\n", append([]any{name}, args...)...)
	}
	row("file", "%s, %s", i.Path, size(i.Size))
	row("digest", "%s", i.Signature.Digest)
	if i.Signature.ABI != "" {
		row("abi", "%s", i.Signature.ABI)
	}
	if m := i.Manifest; m != nil && m.Name != "" {
		row("plugin", "%s", strings.TrimSpace(printable(m.Name+" "+m.Version)))
		if m.Description != "" {
			row("", "%s", printable(m.Description))
		}
	}
	if m := i.Memory; m != nil {
		most := "the limit of the call"
		if m.Max > 0 {
			most = size(m.Max)
		}
		row("memory", "%s at the start, at most %s", size(m.Min), most)
	}
	if len(i.Signature.Functions) > 0 {
		fmt.Fprintln(w, "functions")
		for _, f := range i.Signature.Functions {
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-20s %s", f.Name, printable(f.Description)), " "))
		}
	}
	externs(w, "imports", i.Imports)
	externs(w, "exports", i.Exports)
	if len(i.Notes) > 0 {
		fmt.Fprintln(w, "notes")
		for _, note := range i.Notes {
			fmt.Fprintln(w, "  "+note)
		}
	}
}

func externs(w io.Writer, title string, list []host.Extern) {
	if len(list) == 0 {
		return
	}
	fmt.Fprintln(w, title)
	for _, e := range list {
		name := e.Name
		if e.Module != "" {
			name = e.Module + " " + name
		}
		kind := e.Type
		if kind == "" {
			kind = e.Kind
		}
		fmt.Fprintf(w, "  %-40s %s\n", printable(name), kind)
	}
}

// size is a number of bytes in words.
func size(bytes int64) string {
	switch {
	case bytes >= 1<<20:
		return fmt.Sprintf("%.1f MiB", float64(bytes)/(1<<20))
	case bytes >= 1<<10:
		return fmt.Sprintf("%.1f KiB", float64(bytes)/(1<<10))
	}
	return fmt.Sprintf("%d bytes", bytes)
}

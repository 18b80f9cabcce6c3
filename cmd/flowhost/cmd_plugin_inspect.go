package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/standard"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

func pluginInspectCommand(a *cli.App) *cobra.Command {
	var asJSON, verbose bool
	cmd := cli.Exits(&cobra.Command{
		Use:   "inspect FILE",
		Short: "Describe a plugin's module without calling it",
		Long: `Describes a plugin's module without calling any of its functions: its functions, its
imports, and its problems. With --verbose it creates an instance and measures how the
host provides each call with a pristine one, and at what cost.`,
		Example: `  flowhost plugin inspect greet.wasm
  flowhost plugin inspect --json greet.wasm | jq .signature.functions
  flowhost plugin inspect std/csv`,
		Args: cli.Between(1, 1, "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return inspectModule(cmd.Context(), a, args[0], asJSON, verbose)
		},
	}, cli.ExitInvalid)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().BoolVarP(&verbose, "verbose", "v", false, "create an instance and measure how it is reset")
	return cmd
}

// inspection is what inspect prints as JSON.
type inspection struct {
	*host.Inspection
	Sandbox *host.Sandbox `json:"sandbox,omitempty"`
}

func inspectModule(ctx context.Context, a *cli.App, file string, asJSON, verbose bool) error {
	h, err := serve.NewHost(ctx, settings.Settings{}, nil, nil, a.Log(slog.LevelWarn))
	if err != nil {
		return err
	}
	defer serve.CloseHost(h)
	found, err := standard.Inspect(ctx, h, file)
	if err != nil {
		return cli.WithCode(cli.ExitInvalid, err)
	}
	found.Notes = append(found.Notes, schemaProblems(&found.Signature)...)
	i := inspection{Inspection: found}
	if verbose && i.Usable {
		if i.Sandbox, err = h.Sandbox(ctx, file); err != nil {
			return cli.WithCode(cli.ExitInvalid, err)
		}
	}
	if asJSON {
		err = a.PrintJSON(i)
	} else {
		writeInspection(a.Out, &i)
	}
	if err == nil && !i.Usable {
		err = cli.Quiet(cli.ExitInvalid)
	}
	return err
}

func writeInspection(w io.Writer, i *inspection) {
	writeModule(w, i.Inspection)
	externs(w, "imports", i.Imports)
	externs(w, "exports", i.Exports)
	if i.Sandbox != nil {
		writeSandbox(w, i.Sandbox)
	}
	writeNotes(w, i.Notes)
}

// writeModule describes a module and its functions.
func writeModule(w io.Writer, i *host.Inspection) {
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s "+format+"\n", append([]any{name}, args...)...)
	}
	row("file", "%s, %s", i.Path, render.Size(i.Size))
	row("digest", "%s", i.Signature.Digest)
	if i.Signature.ABI != "" {
		row("abi", "%s", i.Signature.ABI)
	}
	if m := i.Manifest; m != nil {
		writeManifest(row, m)
	}
	if m := i.Memory; m != nil {
		most := "the limit of the call"
		if m.Max > 0 {
			most = render.Size(m.Max)
		}
		row("memory", "%s at the start, at most %s", render.Size(m.Min), most)
	}
	if len(i.Signature.Functions) > 0 {
		fmt.Fprintln(w, "functions")
		for _, f := range i.Signature.Functions {
			writeFunction(w, &f, idempotent(i.Manifest, f.Name))
		}
	}
}

// namedSchema is one of the schemas of a function; nil if it is not declared.
type namedSchema struct {
	name   string
	schema json.RawMessage
}

func schemasOf(f *run.FunctionSignature) []namedSchema {
	return []namedSchema{{"input", f.Input}, {"output", f.Output}, {"config", f.Config}}
}

// writeManifest describes the plugin as a whole, from its manifest.
func writeManifest(row func(name, format string, args ...any), m *host.Manifest) {
	if m.Name != "" {
		row("plugin", "%s", strings.TrimSpace(render.Printable(m.Name+" "+m.Version)))
		if m.Description != "" {
			row("", "%s", render.Printable(m.Description))
		}
	}
	if m.Licence != "" {
		row("licence", "%s", render.Printable(m.Licence))
	}
	title := "wants"
	for _, c := range m.Capabilities {
		text := c.Name
		if c.Why != "" {
			text += ": " + c.Why
		}
		row(title, "%s", render.Printable(text))
		title = ""
	}
}

// idempotent reports whether the manifest declares a function idempotent.
func idempotent(m *host.Manifest, function string) bool {
	if m == nil {
		return false
	}
	for _, f := range m.Functions {
		if f.Name == function {
			return f.Idempotent
		}
	}
	return false
}

func writeNotes(w io.Writer, notes []string) {
	if len(notes) == 0 {
		return
	}
	fmt.Fprintln(w, "notes")
	for _, note := range notes {
		fmt.Fprintln(w, "  "+note)
	}
}

func writeFunction(w io.Writer, f *run.FunctionSignature, idempotent bool) {
	fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("  %-20s %s", f.Name, render.Printable(f.Description)), " "))
	for _, part := range schemasOf(f) {
		if part.schema != nil {
			fmt.Fprintf(w, "    %-8s %s\n", part.name, render.Printable(flows.TypeText(part.schema)))
		}
	}
	if idempotent {
		fmt.Fprintln(w, "    idempotent")
	}
}

func writeSandbox(w io.Writer, s *host.Sandbox) {
	fmt.Fprintln(w, "sandbox")
	row := func(name, format string, args ...any) {
		fmt.Fprintf(w, "  %-12s "+format+"\n", append([]any{name}, args...)...)
	}
	row("strategy", "%s", s.Strategy)
	if s.Reason != "" {
		row("because", "%s", render.Printable(s.Reason))
	}
	if s.Image > 0 {
		row("image", "%s of memory, initialized in %s", render.Size(s.Image), s.Init.Round(10*time.Microsecond))
	}
	if s.WarmedUp {
		row("warm-up", "done by the module")
	}
	for n, way := range s.Ways {
		use := "not used"
		if n == 0 {
			use = "in use"
		}
		row("by "+way.Name, "%s, %s", way.Cost.Round(100*time.Nanosecond), use)
	}
	row("checks", "at %d loops and %d functions", s.Checks.Loops, s.Checks.Functions)
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
		fmt.Fprintf(w, "  %-40s %s\n", render.Printable(name), kind)
	}
}

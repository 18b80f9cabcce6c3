package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// pluginBuild is plugin build with its flags.
type pluginBuild struct {
	*app
	output  string
	asJSON  bool
	scratch string // folder of what is made on the way
}

func (a *app) pluginBuildCommand() *cobra.Command {
	b := &pluginBuild{app: a}
	cmd := exits(&cobra.Command{
		Use:   "build [DIR|FILE.wasm]",
		Short: "Build a plugin's module, with its manifest in it",
		Long: `Builds a plugin and writes its manifest into the module, where it can be read
without running anything, and prints what was built.

Of a folder (default: this one) the Go program in it is built, as a reactor if it
uses the SDK or exports functions, else as a command that reads stdin. The module
is written to the current folder, under the program's name.

A module that another toolchain has built gets its manifest where it lies. The
manifest is what the module's export flowhost_manifest says, else the file
plugin.json beside it, which is checked.`,
		Example: `  flowhost plugin build                               the Go plugin in this folder
  flowhost plugin build plugins/greet -o greet.wasm   one in another folder
  flowhost plugin build measure.wasm                  put plugin.json into a module
  flowhost plugin build --json | jq -r .signature.digest`,
		Args: between(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return b.build(cmd.Context(), append(args, ".")[0])
		},
	}, exitFailed, exitInvalid, exitInterrupted)
	flags := cmd.Flags()
	flags.StringVarP(&b.output, "output", "o", "", "write the module to this `FILE`, or into this folder")
	flags.BoolVar(&b.asJSON, "json", false, "print what was built as JSON")
	return cmd
}

func (b *pluginBuild) build(ctx context.Context, source string) error {
	soft, _, stopListening := listenSignals(ctx)
	defer stopListening()
	info, err := os.Stat(source)
	if err != nil {
		return &exitError{exitInvalid, err}
	}
	h, err := newHost(soft, settings{}, nil, b.log(slog.LevelWarn))
	if err != nil {
		return err
	}
	defer closeHost(h)
	if b.scratch, err = os.MkdirTemp("", "flowhost-build-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.scratch)
	if info.IsDir() {
		err = b.buildFolder(soft, h, source)
	} else {
		err = b.buildModule(soft, h, source)
	}
	if soft.Err() != nil {
		return context.Cause(soft)
	}
	return err
}

// buildFolder builds the Go program in a folder. A program that states no
// manifest is a plugin too: its input and output may then be anything.
func (b *pluginBuild) buildFolder(ctx context.Context, h *host.Host, dir string) error {
	plugin, err := b.findGoPlugin(ctx, dir)
	if err != nil {
		return err
	}
	compiled := filepath.Join(b.scratch, "compiled.wasm")
	if err := plugin.build(ctx, b.app, compiled); err != nil {
		return err
	}
	beside := filepath.Join(dir, host.ManifestFile)
	module, err := h.Embed(ctx, compiled, host.EmbedOptions{Name: dir, Sidecar: beside})
	note := ""
	if errors.Is(err, host.ErrNoManifest) {
		note = fmt.Sprintf("no manifest: flows cannot be checked against its types; %s can state them", beside)
		module, err = os.ReadFile(compiled)
	}
	if err != nil {
		return err
	}
	return b.finish(ctx, h, dir, plugin.name+".wasm", module, note)
}

// buildModule puts the manifest into a module that is there.
func (b *pluginBuild) buildModule(ctx context.Context, h *host.Host, file string) error {
	if filepath.Ext(file) == ".go" {
		return exitf(exitInvalid, "%s is a Go file: name its folder, %s", file, filepath.Dir(file))
	}
	module, err := h.Embed(ctx, file, host.EmbedOptions{})
	if errors.Is(err, host.ErrNoManifest) {
		return exitf(exitInvalid, "%s: there is no manifest to put into it: neither has it the export flowhost_manifest, nor is %s beside it", file, host.ManifestFile)
	}
	if err != nil {
		return err
	}
	return b.finish(ctx, h, file, file, module, "")
}

// finish looks at the module that was built of a source, writes it if it is good
// and prints what it is.
func (b *pluginBuild) finish(ctx context.Context, h *host.Host, source, name string, module []byte, note string) error {
	finished := filepath.Join(b.scratch, "finished.wasm")
	if err := os.WriteFile(finished, module, 0o600); err != nil {
		return err
	}
	built, err := h.Inspect(ctx, finished)
	if err != nil {
		return err
	}
	if !built.Usable {
		return exitf(exitInvalid, "%s: %s", source, printable(built.Notes[0]))
	}
	if wrong := schemaProblems(&built.Signature); len(wrong) > 0 {
		return exitf(exitInvalid, "%s: its manifest is wrong:\n  %s", source, strings.Join(wrong, "\n  "))
	}
	built.Path = b.place(name)
	if note == "" {
		note = untyped(&built.Signature)
	}
	if note != "" {
		built.Notes = append(built.Notes, note)
	}
	if err := moduleOutput.write(built.Path, module); err != nil {
		return &exitError{exitInvalid, err}
	}
	if b.asJSON {
		return b.printJSON(inspection{Inspection: built})
	}
	writeModule(b.out, built)
	writeNotes(b.out, built.Notes)
	return nil
}

// place is where the module is written: under that name, unless --output has
// another, or the folder for it.
func (b *pluginBuild) place(name string) string {
	if info, err := os.Stat(b.output); err == nil && info.IsDir() {
		return filepath.Join(b.output, filepath.Base(name))
	}
	return cmp.Or(b.output, name)
}

// untyped names the functions of which no types are stated, as those of a manifest
// that was too long with them.
func untyped(s *run.Signature) string {
	var names []string
	for _, f := range s.Functions {
		if f.Input == nil && f.Output == nil {
			names = append(names, f.Name)
		}
	}
	if names == nil {
		return ""
	}
	return printable("no types are stated of " + strings.Join(names, ", ") + ": flows cannot be checked against them")
}

// schemaProblems is what is wrong with the types that a manifest states.
func schemaProblems(s *run.Signature) []string {
	var wrong []string
	for _, f := range s.Functions {
		for _, part := range schemasOf(&f) {
			if part.schema == nil {
				continue
			}
			for _, problem := range flows.CheckSchema(part.schema) {
				wrong = append(wrong, printable(fmt.Sprintf("%s of %s, %s", part.name, f.Name, problem)))
			}
		}
	}
	return wrong
}

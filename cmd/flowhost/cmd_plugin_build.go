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

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/gobuild"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/outfile"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/serve"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// pluginBuild is plugin build with its flags.
type pluginBuild struct {
	*cli.App
	output  string
	asJSON  bool
	scratch string // directory of temporary files
}

func pluginBuildCommand(a *cli.App) *cobra.Command {
	b := &pluginBuild{App: a}
	cmd := cli.Exits(&cobra.Command{
		Use:   "build [DIR|FILE.wasm]",
		Short: "Build a plugin's module and embed its manifest",
		Long: `Builds a plugin, embeds its manifest in the module, where it can be read without
running the module, and prints a description of the result.

Given a directory (default: the current one), it builds the Go program there: as a
reactor if the program uses the SDK or exports functions, else as a command that reads
stdin. It writes the module to the current directory, under the program's name.

Given a module of another toolchain, it embeds the manifest in place. The manifest
comes from the module's export flowhost_manifest, or else from the file plugin.json in
the same directory, which is validated.`,
		Example: `  flowhost plugin build                               the Go plugin in this directory
  flowhost plugin build plugins/greet -o greet.wasm   one in another directory
  flowhost plugin build measure.wasm                  embed plugin.json in a module
  flowhost plugin build --json | jq -r .signature.digest`,
		Args: cli.Between(0, 1, ""),
		RunE: func(cmd *cobra.Command, args []string) error {
			return b.build(cmd.Context(), append(args, ".")[0])
		},
	}, cli.ExitFailed, cli.ExitInvalid, cli.ExitInterrupted)
	flags := cmd.Flags()
	flags.StringVarP(&b.output, "output", "o", "", "write the module to this `FILE` or directory")
	flags.BoolVar(&b.asJSON, "json", false, "print the description as JSON")
	return cmd
}

func (b *pluginBuild) build(ctx context.Context, source string) error {
	soft, _, stopListening := cli.ListenSignals(ctx)
	defer stopListening()
	info, err := os.Stat(source)
	if err != nil {
		return cli.WithCode(cli.ExitInvalid, err)
	}
	h, err := serve.NewHost(soft, settings.Settings{}, nil, nil, b.Log(slog.LevelWarn))
	if err != nil {
		return err
	}
	defer serve.CloseHost(h)
	if b.scratch, err = os.MkdirTemp("", "flowhost-build-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.scratch)
	if info.IsDir() {
		err = b.buildDir(soft, h, source)
	} else {
		err = b.buildModule(soft, h, source)
	}
	if soft.Err() != nil {
		return context.Cause(soft)
	}
	return err
}

// buildDir builds the Go program in a directory. A program without a manifest is
// a plugin, too: its input and output have no types.
func (b *pluginBuild) buildDir(ctx context.Context, h *host.Host, dir string) error {
	plugin, err := gobuild.Find(ctx, b.App, dir)
	if err != nil {
		return err
	}
	compiled := filepath.Join(b.scratch, "compiled.wasm")
	if err := plugin.Build(ctx, b.App, compiled); err != nil {
		return err
	}
	beside := filepath.Join(dir, host.ManifestFile)
	module, err := h.Embed(ctx, compiled, host.EmbedOptions{Name: dir, Sidecar: beside})
	note := ""
	if errors.Is(err, host.ErrNoManifest) {
		note = fmt.Sprintf("no manifest: flows cannot be checked against its types; declare them in %s", beside)
		module, err = os.ReadFile(compiled)
	}
	if err != nil {
		return err
	}
	return b.finish(ctx, h, dir, plugin.Name+".wasm", module, note)
}

// buildModule embeds the manifest in an existing module.
func (b *pluginBuild) buildModule(ctx context.Context, h *host.Host, file string) error {
	if filepath.Ext(file) == ".go" {
		return cli.Exitf(cli.ExitInvalid, "%s is a Go file: pass its directory, %s", file, filepath.Dir(file))
	}
	module, err := h.Embed(ctx, file, host.EmbedOptions{})
	if errors.Is(err, host.ErrNoManifest) {
		return cli.Exitf(cli.ExitInvalid, "%s: no manifest: the module has no export flowhost_manifest, and its directory contains no %s", file, host.ManifestFile)
	}
	if err != nil {
		return err
	}
	return b.finish(ctx, h, file, file, module, "")
}

// finish inspects the module built from a source, writes it if it is usable and
// prints its description.
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
		return cli.Exitf(cli.ExitInvalid, "%s: %s", source, render.Printable(built.Notes[0]))
	}
	if wrong := schemaProblems(&built.Signature); len(wrong) > 0 {
		return cli.Exitf(cli.ExitInvalid, "%s: invalid manifest:\n  %s", source, strings.Join(wrong, "\n  "))
	}
	built.Path = b.place(name)
	if note == "" {
		note = untyped(&built.Signature)
	}
	if note != "" {
		built.Notes = append(built.Notes, note)
	}
	if err := outfile.Module.Write(built.Path, module); err != nil {
		return cli.WithCode(cli.ExitInvalid, err)
	}
	if b.asJSON {
		return b.PrintJSON(inspection{Inspection: built})
	}
	writeModule(b.Out, built)
	writeNotes(b.Out, built.Notes)
	return nil
}

// place is the path of the module: the given name, unless --output states another
// name or a directory.
func (b *pluginBuild) place(name string) string {
	if info, err := os.Stat(b.output); err == nil && info.IsDir() {
		return filepath.Join(b.output, filepath.Base(name))
	}
	return cmp.Or(b.output, name)
}

// untyped names the functions without declared types, as in a manifest that would
// be too long with them.
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
	return render.Printable("the manifest declares no types for " + strings.Join(names, ", ") + ": flows cannot be checked against them")
}

// schemaProblems lists the problems of the types that a manifest declares.
func schemaProblems(s *run.Signature) []string {
	var wrong []string
	for _, f := range s.Functions {
		for _, part := range schemasOf(&f) {
			if part.schema == nil {
				continue
			}
			for _, problem := range flows.CheckSchema(part.schema) {
				wrong = append(wrong, render.Printable(fmt.Sprintf("%s of %s, %s", part.name, f.Name, problem)))
			}
		}
	}
	return wrong
}

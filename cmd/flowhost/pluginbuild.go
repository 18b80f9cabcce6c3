package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/host"
)

// pluginBuild is plugin build with its flags.
type pluginBuild struct {
	*app
	output string
	asJSON bool
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
	scratch, err := os.MkdirTemp("", "flowhost-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	raw := filepath.Join(scratch, "plugin.wasm")
	if err := plugin.build(ctx, b.app, raw); err != nil {
		return err
	}
	beside := filepath.Join(dir, host.ManifestFile)
	module, err := h.Embed(ctx, raw, host.EmbedOptions{Name: dir, Beside: beside})
	note := ""
	if errors.Is(err, host.ErrNoManifest) {
		note = fmt.Sprintf("no manifest: flows cannot be checked against its types; %s can state them", beside)
		module, err = os.ReadFile(raw)
	}
	if err != nil {
		return err
	}
	return b.write(ctx, h, plugin.name+".wasm", module, note)
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
	return b.write(ctx, h, file, module, "")
}

// write writes the module, under that name unless another is asked for, and
// prints what it is.
func (b *pluginBuild) write(ctx context.Context, h *host.Host, name string, module []byte, note string) error {
	if info, err := os.Stat(b.output); err == nil && info.IsDir() {
		name = filepath.Join(b.output, filepath.Base(name))
	} else if b.output != "" {
		name = b.output
	}
	if err := replaceFile(name, module); err != nil {
		return err
	}
	built, err := h.Inspect(ctx, name)
	if err != nil {
		return err
	}
	if note != "" {
		built.Notes = append(built.Notes, note)
	}
	if b.asJSON {
		err = b.printJSON(inspection{Inspection: built})
	} else {
		writeModule(b.out, built)
		writeNotes(b.out, built.Notes)
	}
	if err == nil && !built.Usable {
		err = quiet(exitInvalid)
	}
	return err
}

package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

// app is what all commands share: the streams and the environment.
type app struct {
	stdin       io.Reader
	out, errout *render.Terminal // results; messages
	environ     []string         // "NAME=value"
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{
		stdin: stdin, environ: os.Environ(),
		out: render.NewTerminal(stdout, os.Getenv), errout: render.NewTerminal(stderr, os.Getenv),
	}
}

// say writes a message for the person at the terminal.
func (a *app) say(format string, args ...any) { a.errout.Say(format, args...) }

// printJSON writes a value as JSON to stdout.
func (a *app) printJSON(v any) error { return a.out.JSON(v) }

// showDiagnostics writes problems with their lines of source to stderr.
func (a *app) showDiagnostics(files map[string]*hcl.File, diags hcl.Diagnostics) {
	a.errout.Diagnostics(files, diags)
}

// log is the operator's log of what happens from the given level on.
func (a *app) log(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.errout, &slog.HandlerOptions{Level: level}))
}

package cli

import (
	"io"
	"log/slog"
	"os"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
)

// App is what all commands share: the streams and the environment.
type App struct {
	Stdin       io.Reader
	Out, Errout *render.Terminal // results; messages
	Environ     []string         // "NAME=value"
}

// NewApp returns the app of a process, with its streams and its environment.
func NewApp(stdin io.Reader, stdout, stderr io.Writer) *App {
	return &App{
		Stdin: stdin, Environ: os.Environ(),
		Out: render.NewTerminal(stdout, os.Getenv), Errout: render.NewTerminal(stderr, os.Getenv),
	}
}

// Say writes a message for people.
func (a *App) Say(format string, args ...any) { a.Errout.Say(format, args...) }

// PrintJSON writes a value as JSON to stdout.
func (a *App) PrintJSON(v any) error { return a.Out.JSON(v) }

// ShowDiagnostics writes problems with their lines of source to stderr.
func (a *App) ShowDiagnostics(files map[string]*hcl.File, diags hcl.Diagnostics) {
	a.Errout.Diagnostics(files, diags)
}

// Log is the operator's log from the given level on.
func (a *App) Log(level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.Errout, &slog.HandlerOptions{Level: level}))
}

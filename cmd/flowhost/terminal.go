package main

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/flowhost/flowhost/run"
)

// defaultWidth is for streams that are no terminal: hcl wraps texts at it.
const defaultWidth = 78

// terminal is an output stream and what can be shown on it. Writes to it are as
// safe for concurrent use as those to the stream.
type terminal struct {
	io.Writer
	interactive bool // a person looks at it
	color       bool
	width       int // columns
}

func newTerminal(w io.Writer, getenv func(string) string) *terminal {
	t := &terminal{Writer: w, width: defaultWidth}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return t
	}
	t.interactive = true
	t.color = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" // https://no-color.org
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
		t.width = columns
	}
	return t
}

// say writes a message for the person at the terminal.
func (t *terminal) say(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// Colours by meaning, as SGR parameters (ECMA-48, 8.3.117).
const (
	bold   = "1"
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
)

// paint colours a text where the terminal shows colours.
func (t *terminal) paint(color, text string) string {
	if !t.color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

func wordColor(word string) string {
	switch run.Outcome(word) {
	case run.OutcomeSucceeded:
		return green
	case run.OutcomeFailed, run.OutcomeRejected, run.OutcomeTrapped, run.OutcomeTimedOut, run.OutcomeDenied, run.OutcomeLost:
		return red
	case run.OutcomeCanceled:
		return yellow
	}
	return bold
}

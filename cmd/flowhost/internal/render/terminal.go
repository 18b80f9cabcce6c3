package render

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/flowhost/flowhost/run"
)

// DefaultWidth is for streams that are not terminals: hcl wraps diagnostics at it.
const DefaultWidth = 78

// Terminal is an output stream with its abilities. Writes are as safe for concurrent
// use as those to the stream.
type Terminal struct {
	io.Writer
	Interactive bool // it is a terminal
	color       bool
	Width       int // columns
}

// NewTerminal wraps a stream. If it is a terminal, it has colors unless $NO_COLOR or
// $TERM prevent them.
func NewTerminal(w io.Writer, getenv func(string) string) *Terminal {
	t := &Terminal{Writer: w, Width: DefaultWidth}
	file, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return t
	}
	t.Interactive = true
	t.color = getenv("NO_COLOR") == "" && getenv("TERM") != "dumb" // https://no-color.org
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
		t.Width = columns
	}
	return t
}

// Say writes a message for people.
func (t *Terminal) Say(format string, args ...any) { fmt.Fprintf(t, format+"\n", args...) }

// Colors by meaning, as SGR parameters (ECMA-48, 8.3.117).
const (
	Bold   = "1"
	dim    = "2"
	Red    = "31"
	Green  = "32"
	Yellow = "33"
)

// Paint colors a string if the terminal shows colors.
func (t *Terminal) Paint(color, text string) string {
	if !t.color || text == "" {
		return text
	}
	return "\x1b[" + color + "m" + text + "\x1b[0m"
}

// WordColor is the color of a state or an outcome.
func WordColor(word string) string {
	switch run.Outcome(word) {
	case run.OutcomeSucceeded:
		return Green
	case run.OutcomeFailed, run.OutcomeRejected, run.OutcomeTrapped, run.OutcomeTimedOut, run.OutcomeDenied, run.OutcomeLost:
		return Red
	case run.OutcomeCanceled:
		return Yellow
	}
	return Bold
}

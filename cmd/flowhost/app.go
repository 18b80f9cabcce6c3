package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
)

// app is what all commands share: the streams and the environment.
type app struct {
	stdin       io.Reader
	out, errout *terminal // results; messages
	environ     []string  // "NAME=value"
}

func newApp(stdin io.Reader, stdout, stderr io.Writer) *app {
	return &app{
		stdin: stdin, environ: os.Environ(),
		out: newTerminal(stdout, os.Getenv), errout: newTerminal(stderr, os.Getenv),
	}
}

// say writes a message for the person at the terminal.
func (a *app) say(format string, args ...any) { fmt.Fprintf(a.errout, format+"\n", args...) }

// printJSON writes a value as JSON: indented for a person at a terminal, one line
// for programs. Recorded JSON in it keeps its bytes but for white space.
func (a *app) printJSON(v any) error {
	enc := newEncoder(a.out)
	if a.out.interactive {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

// encodeLine writes a value as JSON on one line, also for a person: it is one of
// many.
func encodeLine(w io.Writer, v any) error { return newEncoder(w).Encode(v) }

func newEncoder(w io.Writer) *json.Encoder {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc
}

// log is the operator's log of what happens from the given level on.
func (a *app) log(level slog.Level) *slog.Logger {
	return slog.New(slog.NewTextHandler(a.errout, &slog.HandlerOptions{Level: level}))
}

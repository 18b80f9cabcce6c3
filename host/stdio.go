package host

import (
	"bytes"
	"strings"
)

// lineWriter hands out what is written to it line by line. A line without an
// end in sight is handed out in pieces of max bytes.
type lineWriter struct {
	max     int
	partial []byte
	sink    lineSink
}

type lineSink interface{ line(text string) }

// Write hands out the lines that p ends. It keeps no part of p.
func (w *lineWriter) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		line, rest, ended := bytes.Cut(p, []byte("\n"))
		if room := max(w.max-len(w.partial), 1); len(line) > room {
			line, rest, ended = p[:room], p[room:], true
		}
		w.partial = append(w.partial, line...)
		if ended {
			w.flush()
		}
		p = rest
	}
	return n, nil
}

// close hands out the last line when nothing ended it.
func (w *lineWriter) close() {
	if len(w.partial) > 0 {
		w.flush()
	}
}

func (w *lineWriter) flush() {
	w.sink.line(strings.TrimSuffix(string(w.partial), "\r"))
	w.partial = w.partial[:0]
}

// outputWriter collects a command's output. One that is over its limit ends the
// command: nothing it writes from then on could be used.
type outputWriter struct {
	limit int64
	bytes []byte
}

// Write collects p. It does not return when the output is over its limit.
func (w *outputWriter) Write(p []byte) (int, error) {
	if int64(len(w.bytes))+int64(len(p)) > w.limit {
		panic(errOutputSize) // unwinds the guest; the sandbox recovers it
	}
	w.bytes = append(w.bytes, p...)
	return len(p), nil
}

// lastWords keeps the last lines that a guest wrote to stderr before it trapped.
type lastWords struct {
	line  string // the last one that is not blank
	crash string // the message of a runtime's report of a panic
	open  bool   // the message of the crash follows on the next line
}

func (w *lastWords) hear(line string) {
	text := strings.TrimSpace(line)
	if text == "" {
		return
	}
	w.line = text
	if w.open {
		w.crash, w.open = w.crash+" "+text, false
		return
	}
	if isCrash(line) {
		w.crash, w.open = text, strings.HasSuffix(text, ":")
	}
}

// isCrash knows the reports of the Go and Rust runtimes.
func isCrash(line string) bool {
	return strings.HasPrefix(line, "panic: ") ||
		strings.HasPrefix(line, "fatal error: ") ||
		strings.HasPrefix(line, "thread ") && strings.Contains(line, " panicked at ")
}

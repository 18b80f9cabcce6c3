package main

import (
	"fmt"
	"io"
)

// statusLine is the last line of a stream, which tells how things stand: drawn
// again in place on a terminal, once for each change elsewhere. What is written
// through it to the stream comes above. It is for one goroutine.
type statusLine struct {
	under io.Writer
	out   terminal // the stream as it is without the line
	last  string
	drawn bool // the cursor stands behind the line
}

func newStatusLine(out *terminal) *statusLine {
	return &statusLine{under: out.Writer, out: *out}
}

// Write implements io.Writer.
func (l *statusLine) Write(p []byte) (int, error) {
	l.clear()
	return l.under.Write(p)
}

// show makes the line say something else.
func (l *statusLine) show(text string) {
	switch {
	case !l.out.interactive && text != l.last:
		fmt.Fprintln(l.under, text)
	case l.out.interactive && (text != l.last || !l.drawn):
		l.clear()
		fmt.Fprint(l.under, fit(text, l.out.width-1))
		l.drawn = true
	}
	l.last = text
}

// end leaves the line as it is.
func (l *statusLine) end() {
	if l.drawn {
		fmt.Fprintln(l.under)
		l.drawn = false
	}
}

// clear takes the line away: to the first column, erase to the end (ECMA-48, 8.3.41).
func (l *statusLine) clear() {
	if l.drawn {
		fmt.Fprint(l.under, "\r\x1b[K")
		l.drawn = false
	}
}

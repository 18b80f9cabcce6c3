package render

import (
	"fmt"
	"io"
	"sync"
)

// StatusLine is the last line of a stream, which shows a status: redrawn in place on a
// terminal, one line per change elsewhere. Other output written through it appears
// above. It is safe for concurrent use.
type StatusLine struct {
	Under io.Writer
	out   Terminal // the stream as it is without the line

	mu    sync.Mutex
	last  string
	drawn bool // the cursor is at the end of the line
}

// NewStatusLine returns the status line of a terminal.
func NewStatusLine(out *Terminal) *StatusLine {
	return &StatusLine{Under: out.Writer, out: *out}
}

// Write implements io.Writer.
func (l *StatusLine) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.clear()
	return l.Under.Write(p)
}

// Show replaces the content of the line. Without content there is no line.
func (l *StatusLine) Show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case !l.out.Interactive && text != l.last:
		fmt.Fprintln(l.Under, text)
	case l.out.Interactive && (text != l.last || !l.drawn):
		l.clear()
		fmt.Fprint(l.Under, Fit(text, l.out.Width-1))
		l.drawn = text != ""
	}
	l.last = text
}

// End keeps the line and moves below it.
func (l *StatusLine) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.drawn {
		fmt.Fprintln(l.Under)
		l.drawn = false
	}
}

// clear removes the line: to the first column, erase to the end (ECMA-48, 8.3.41).
func (l *StatusLine) clear() {
	if l.drawn {
		fmt.Fprint(l.Under, "\r\x1b[K")
		l.drawn = false
	}
}

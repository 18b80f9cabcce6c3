package mask

import (
	"errors"
	"io"
	"sync"
)

// Writer returns a writer that masks what passes to w, also values that are split over
// writes. It holds back an end of the text only while that may be the beginning of a value
// in one of its forms, at most 63 bytes: a line of a log passes at once, unless a value of
// several lines may have begun in it. Close writes what is held back; it does not close w.
//
// The writer is safe for concurrent use.
func (m *Masker) Writer(w io.Writer) io.WriteCloser { return &writer{masker: m, to: w} }

type writer struct {
	masker *Masker
	to     io.Writer

	mu     sync.Mutex
	scan   scan
	buffer []byte // what is held back, with the present write while it lasts
	masked bool   // the last that was written is a replacement, for bytes up to the buffer
	err    error  // of an earlier write
}

// maxKept is the size of a buffer that is kept for the next write.
const maxKept = 64 << 10

var errClosed = errors.New("write to a closed writer of masked text")

func (w *writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return 0, w.err
	}
	if now := w.masker.finder.Load(); now != w.scan.finder {
		w.use(now)
	}
	if w.scan.finder == nil {
		return w.to.Write(p)
	}
	held := len(w.buffer)
	w.buffer = append(w.buffer, p...)
	w.scan.run(w.buffer, held)
	if w.err = w.pass(len(w.buffer) - w.scan.held()); w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

// use continues with the finder of other values.
func (w *writer) use(f *finder) {
	found := w.scan.spans
	w.scan = scan{finder: f}
	w.scan.run(w.buffer, 0)
	w.scan.spans = join(append(w.scan.spans, found...))
}

// pass writes the first bytes of the buffer, masked.
func (w *writer) pass(length int) error {
	if length == 0 {
		return nil
	}
	var spans []span // that begin within these bytes
	rest := w.scan.spans
	for len(rest) > 0 && rest[0].start < length {
		spans, rest = append(spans, rest[0]), rest[1:]
	}
	out := w.masks(length, spans)
	w.masked = len(spans) > 0 && spans[len(spans)-1].end >= length
	kept := w.scan.spans[:0]
	if w.masked && spans[len(spans)-1].end > length {
		kept = append(kept, span{0, spans[len(spans)-1].end - length})
	}
	for _, s := range rest {
		kept = append(kept, span{s.start - length, s.end - length})
	}
	w.scan.spans = kept
	var err error
	if len(out) > 0 {
		_, err = w.to.Write(out)
	}
	w.buffer = append(w.buffer[:0], w.buffer[length:]...)
	if cap(w.buffer) > maxKept {
		w.buffer = append([]byte(nil), w.buffer...)
	}
	return err
}

// masks returns the first bytes of the buffer with spans masked. A span at their beginning
// that continues a replacement gets none.
func (w *writer) masks(length int, spans []span) []byte {
	switch {
	case len(spans) == 0:
		return w.buffer[:length]
	case w.masked && spans[0].start == 0:
		out := replace(w.buffer[:length], spans)
		return out[len(replacement):]
	}
	return replace(w.buffer[:length], spans)
}

func (w *writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		if errors.Is(w.err, errClosed) {
			return nil
		}
		return w.err
	}
	err := w.pass(len(w.buffer))
	w.err, w.buffer = errClosed, nil
	return err
}

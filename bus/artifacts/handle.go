package artifacts

import (
	"context"
	"crypto/sha256"
	"hash"
	"sync"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// handle is an artifact that an attempt writes or reads: one of writing and reader is set.
// Operations on it take turns.
type handle struct {
	mu      sync.Mutex
	closed  bool
	writing *writing
	reader  *checked
}

// writing is an artifact that is not committed yet.
type writing struct {
	writer  Writer
	name    string
	info    Info
	digest  hash.Hash
	failure *access.Fault // of an earlier part: nothing can follow
}

func newWriting(w Writer, name, contentType string) *handle {
	return &handle{writing: &writing{writer: w, name: name, info: Info{ContentType: contentType}, digest: sha256.New()}}
}

// fail ends the artifact with a fault, which every later operation on it has as well. The
// room that it took is free again for others, at the latest when the attempt ends.
func (w *writing) fail(ctx context.Context, fault *access.Fault) *access.Fault {
	w.failure = fault
	if ctx.Err() == nil {
		w.writer.Discard(ctx)
	}
	return fault
}

// close releases what the handle holds.
func (h *handle) close(ctx context.Context) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	if h.writing != nil {
		h.writing.writer.Discard(ctx)
		return nil
	}
	return h.reader.Close()
}

// ended is the fault of an operation that comes after the attempt's end.
func ended(kind string) *access.Fault {
	return &access.Fault{Code: access.CodeCanceled, Message: kind + " failed: the attempt has ended"}
}

// handles are those of an attempt, by number.
type handles struct {
	mu     sync.Mutex
	last   int
	open   map[int]*handle // nil: a place that is taken by one that is being opened
	closed bool
}

// reserve takes a place for a handle.
func (a *handles) reserve(kind string) (int, *access.Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return 0, ended(kind)
	case len(a.open) >= MaxHandles:
		return 0, &access.Fault{Code: access.CodeBudget,
			Message: kind + " failed: 16 artifacts are open, and that is the most of an attempt: close or commit one"}
	}
	a.last++
	if a.open == nil {
		a.open = map[int]*handle{}
	}
	a.open[a.last] = nil
	return a.last, nil
}

// set puts a handle on its place. It reports false when the attempt has ended: then the
// handle stays the caller's.
func (a *handles) set(number int, h *handle) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed {
		return false
	}
	a.open[number] = h
	return true
}

func (a *handles) free(number int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.open, number)
}

func (a *handles) get(kind string, number int) (*handle, *access.Fault) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if h := a.open[number]; h != nil {
		return h, nil
	}
	if a.closed {
		return nil, ended(kind)
	}
	return nil, ops.Invalid("%s failed: the attempt has no open artifact with handle %d", kind, number)
}

// end takes all handles away, and gives them to be closed.
func (a *handles) end() []*handle {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	var all []*handle
	for _, h := range a.open {
		if h != nil {
			all = append(all, h)
		}
	}
	clear(a.open)
	return all
}

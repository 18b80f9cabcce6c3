package artifacts

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// Bounds of readers that are kept open between two parts.
const (
	maxParked = 16
	parkTime  = 30 * time.Second
)

// Parts reads artifacts for those who ask for one part after the other, each in a request of
// its own. It keeps readers open for the next part: a reader that begins at an offset would
// have to find it first. Its methods are safe for concurrent use.
type Parts struct {
	store Store

	mu     sync.Mutex
	parked []*parked // the least recently used first
	closed bool
}

// parked is a reader that nobody uses.
type parked struct {
	Reader
	digest string
	expiry *time.Timer
}

// NewParts returns the parts of a store, which stays the caller's.
func NewParts(store Store) *Parts { return &Parts{store: store} }

// ReadPart returns at most so many bytes from an offset on, none at the end, and the size of
// the artifact. For one that is not stored it returns false.
func (p *Parts) ReadPart(ctx context.Context, digest string, offset int64, most int) (part []byte, size int64, found bool, err error) {
	r := p.take(digest)
	if r == nil {
		if r, err = p.store.Open(ctx, digest); errors.Is(err, ErrNotFound) {
			return nil, 0, false, nil
		}
		if err != nil {
			return nil, 0, false, err
		}
	}
	size = r.Info().Size
	part = make([]byte, max(0, min(int64(most), size-offset)))
	n, err := r.ReadAt(ctx, part, offset)
	if err == nil && n < len(part) {
		err = ErrDamaged
	}
	if err != nil {
		return nil, 0, false, errors.Join(err, r.Close())
	}
	p.park(digest, r)
	return part, size, true, nil
}

// take returns a reader of the artifact that nobody uses, nil without one.
func (p *Parts) take(digest string) Reader {
	p.mu.Lock()
	defer p.mu.Unlock()
	at := slices.IndexFunc(p.parked, func(r *parked) bool { return r.digest == digest })
	if at < 0 {
		return nil
	}
	r := p.parked[at]
	p.remove(at)
	return r.Reader
}

// park keeps a reader for whoever needs it next.
func (p *Parts) park(digest string, reader Reader) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = reader.Close() // it was only read
		return
	}
	if len(p.parked) == maxParked {
		_ = p.parked[0].Close()
		p.remove(0)
	}
	r := &parked{Reader: reader, digest: digest}
	r.expiry = time.AfterFunc(parkTime, func() { p.expire(r) })
	p.parked = append(p.parked, r)
}

// remove takes a reader out of the list. The lock is held.
func (p *Parts) remove(at int) {
	p.parked[at].expiry.Stop()
	p.parked = slices.Delete(p.parked, at, at+1)
}

// expire closes a reader, unless somebody has taken it meanwhile.
func (p *Parts) expire(r *parked) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := slices.Index(p.parked, r); at >= 0 {
		p.remove(at)
		_ = r.Close()
	}
}

// Close closes all readers. What is read afterwards keeps none open.
func (p *Parts) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for len(p.parked) > 0 {
		_ = p.parked[0].Close()
		p.remove(0)
	}
}

// Parts returns the parts of the store.
func (a *Artifacts) Parts() *Parts { return NewParts(a.cfg.Store) }

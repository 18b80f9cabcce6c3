package host

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

var errBusy = errors.New("too many calls are waiting for an instance")

// pool admits calls, in the order in which they come, as long as there are
// instances and memory for them.
type pool struct {
	mu        sync.Mutex
	instances int       // free
	bytes     int64     // free
	queue     int       // bound of waiting
	waiting   list.List // of *ticket; the first one is the next to be admitted
}

type ticket struct {
	bytes    int64
	admitted chan struct{} // closed under the pool's lock
}

// lease is what one call holds of a pool while it runs.
type lease struct {
	pool  *pool
	bytes int64
}

func newPool(instances int, bytes int64, queue int) *pool {
	return &pool{instances: instances, bytes: bytes, queue: queue}
}

// use runs fn with one instance and the given bytes of memory, and takes back
// all that the lease holds when fn returns, or panics. It fails without running
// fn with errBusy, or with the cause with which ctx ended.
func (p *pool) use(ctx context.Context, bytes int64, fn func(*lease)) error {
	if err := p.admit(ctx, bytes); err != nil {
		return err
	}
	l := &lease{pool: p, bytes: bytes}
	defer l.release()
	fn(l)
	return nil
}

func (p *pool) admit(ctx context.Context, bytes int64) error {
	p.mu.Lock()
	if p.waiting.Len() == 0 && p.take(bytes) {
		p.mu.Unlock()
		return nil
	}
	if p.waiting.Len() >= p.queue {
		p.mu.Unlock()
		return errBusy
	}
	t := &ticket{bytes: bytes, admitted: make(chan struct{})}
	place := p.waiting.PushBack(t)
	p.mu.Unlock()

	select {
	case <-t.admitted:
		return nil
	case <-ctx.Done():
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-t.admitted: // in the meantime
		p.put(bytes)
	default:
		p.waiting.Remove(place)
		p.advance() // the next one may need less
	}
	return context.Cause(ctx)
}

// take is called with the lock held, as are put and advance.
func (p *pool) take(bytes int64) bool {
	if p.instances == 0 || p.bytes < bytes {
		return false
	}
	p.instances--
	p.bytes -= bytes
	return true
}

func (p *pool) put(bytes int64) {
	p.instances++
	p.bytes += bytes
	p.advance()
}

// advance lets no call overtake another: the first one waits for the memory it
// needs even when a later one needs less.
func (p *pool) advance() {
	for front := p.waiting.Front(); front != nil; front = p.waiting.Front() {
		t := front.Value.(*ticket)
		if !p.take(t.bytes) {
			return
		}
		p.waiting.Remove(front)
		close(t.admitted)
	}
}

// grow adds to the lease's memory. It never waits: a running guest that waited
// for others could make all of them wait for each other.
func (l *lease) grow(bytes int64) bool {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	if l.pool.bytes < bytes {
		return false
	}
	l.pool.bytes -= bytes
	l.bytes += bytes
	return true
}

func (l *lease) release() {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	l.pool.put(l.bytes)
	l.bytes = 0
}

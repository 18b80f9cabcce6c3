package host

import (
	"container/list"
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/run"
)

var errBusy = errors.New("too many calls are waiting for an instance")

// maxPassed is how often a call that waits for memory is overtaken by calls that need
// less. Then all wait for it.
const maxPassed = 64

// pool admits calls as long as there is memory for them, and keeps the instances that they
// leave behind ready for the next ones.
//
// The memory counts what running calls may write to, which is all that their linear
// memories have, their native stacks, what their instances take beside, and the most that
// their output and log may be; and what idle instances hold for themselves. When it is
// short, idle instances go first, those that were used longest ago.
//
// Calls are admitted in the order in which they come, except that one which waits for much
// memory is overtaken by some that need less. Which calls come, and when, is the business
// of whoever makes them: the engine admits by flow and priority.
type pool struct {
	instances int           // calls at once
	memory    int64         // bytes in all
	queue     int           // bound of waiting calls
	spare     int           // bound of idle instances
	lifetime  time.Duration // of an idle instance

	processors int
	crowded    atomic.Bool // as many calls run as there are processors

	mu        sync.Mutex
	places    int       // free
	bytes     int64     // free
	waiting   list.List // of *ticket, in order of arrival
	lines     map[*image]*line
	idle      idleList // the one used longest ago first
	idleBytes int64
	doomed    []*instance // to be closed once the lock is free
	sweeper   *time.Timer // nil while nothing is idle
	closed    bool
}

// line is what the pool has of one module.
type line struct {
	running int
	waiting int
	idle    idleList // those of pool.idle that are its own, in the same order
}

// ticket is a call that waits.
type ticket struct {
	own      *line
	bytes    int64
	passed   int           // calls that overtook it
	admitted chan struct{} // closed under the pool's lock
}

// lease is what one call holds of a pool while it runs.
type lease struct {
	pool     *pool
	image    *image
	line     *line // of the image
	bytes    int64 // in all
	overhead int64 // of them, for what is neither linear memory nor stack
	stack    int64 // of them, for the native stack beyond its first size
}

// newPool makes a pool; spare may be 0. Its memory is in bytes.
func newPool(config *Config) *pool {
	return &pool{
		instances: config.Instances, memory: config.Memory, queue: config.Queue, spare: config.Idle, lifetime: config.IdleTime,
		places: config.Instances, bytes: config.Memory,
		processors: runtime.GOMAXPROCS(0),
		lines:      map[*image]*line{},
		idle:       idleList{link: linkOfPool},
	}
}

// call runs fn as use does, with the memory with which a call of the image begins.
func (p *pool) call(ctx context.Context, image *image, limits run.Limits, fn func(*lease)) error {
	return p.lend(ctx, new(lease), image, limits, fn)
}

// lend does so with a lease of the caller's.
func (p *pool) lend(ctx context.Context, l *lease, image *image, limits run.Limits, fn func(*lease)) error {
	overhead := image.overhead(limits)
	*l = lease{pool: p, image: image, bytes: image.need() + overhead, overhead: overhead}
	return l.use(ctx, fn)
}

// use runs fn with a place and so many bytes of memory for a call of the image,
// and takes back all that the lease holds when fn returns, or panics. It fails
// without running fn with errBusy, or with the cause with which ctx ended.
func (p *pool) use(ctx context.Context, image *image, bytes int64, fn func(*lease)) error {
	l := &lease{pool: p, image: image, bytes: bytes}
	return l.use(ctx, fn)
}

func (l *lease) use(ctx context.Context, fn func(*lease)) error {
	if err := l.admit(ctx); err != nil {
		return err
	}
	defer l.release()
	fn(l)
	return nil
}

func (l *lease) admit(ctx context.Context) error {
	p, bytes := l.pool, l.bytes
	p.mu.Lock()
	own := p.lineOf(l.image)
	l.line = own
	if p.waiting.Len() == 0 && p.admits(bytes) {
		p.hand(own, bytes)
		p.unlock()
		return nil
	}
	if p.waiting.Len() >= p.queue {
		p.unlock()
		return errBusy
	}
	t := &ticket{own: own, bytes: bytes, admitted: make(chan struct{})}
	place := p.waiting.PushBack(t)
	own.waiting++
	p.advance() // those before may wait for what this one does not need
	p.unlock()

	if err := t.wait(ctx); err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.unlock()
	select {
	case <-t.admitted: // in the meantime
		p.put(own, bytes)
	default:
		p.waiting.Remove(place)
		own.waiting--
	}
	p.advance() // the next one may need less
	return causeOf(ctx)
}

// wait lets others compute until the call is admitted. It fails with the cause with which
// ctx ended.
func (t *ticket) wait(ctx context.Context) error {
	select {
	case <-t.admitted:
		return nil
	default:
	}
	own := timeOf(ctx)
	own.leave(run.WaitMemory)
	select {
	case <-t.admitted:
		return own.back()
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// lineOf is called with the lock held, as are all below that do not lock.
func (p *pool) lineOf(image *image) *line {
	own := p.lines[image]
	if own == nil {
		own = &line{idle: idleList{link: linkOfLine}}
		p.lines[image] = own
	}
	return own
}

// admits reports whether there are a place and memory for a call, for which idle instances
// may have gone.
func (p *pool) admits(bytes int64) bool { return p.places > 0 && p.room(bytes) }

func (p *pool) hand(own *line, bytes int64) {
	p.places--
	p.crowded.Store(p.instances-p.places >= p.processors)
	p.bytes -= bytes
	own.running++
}

func (p *pool) put(own *line, bytes int64) {
	p.places++
	p.crowded.Store(p.instances-p.places >= p.processors)
	p.bytes += bytes
	own.running--
}

// room reports whether so many bytes are free, for which idle instances may
// have gone.
func (p *pool) room(bytes int64) bool {
	if p.bytes+p.idleBytes < bytes {
		return false
	}
	for p.bytes < bytes {
		p.evict(p.idle.front)
	}
	return true
}

// advance admits those who wait, as far as that goes.
func (p *pool) advance() {
	for place := p.waiting.Front(); place != nil && p.places > 0; {
		t := place.Value.(*ticket)
		next := place.Next()
		switch {
		case p.room(t.bytes):
			for before := place.Prev(); before != nil; before = before.Prev() {
				before.Value.(*ticket).passed++
			}
			p.waiting.Remove(place)
			t.own.waiting--
			p.hand(t.own, t.bytes)
			close(t.admitted)
		case t.passed >= maxPassed:
			return
		}
		place = next
	}
}

// unlock gives the lock back and closes what has to go.
func (p *pool) unlock() {
	doomed := p.doomed
	p.doomed = nil
	p.mu.Unlock()
	for _, d := range doomed {
		d.close()
	}
}

// cover makes the lease's memory large enough for so much linear memory. It never
// waits: a running guest that waited for others could make all of them wait for
// each other.
func (l *lease) cover(linear int64) bool {
	return l.extend(linear + l.overhead + l.stack - l.bytes)
}

// coverStack makes room for a native stack of that size, beside a linear memory of
// that size.
func (l *lease) coverStack(stack, linear int64) bool {
	if stack <= l.stack {
		return true
	}
	if !l.extend(linear + l.overhead + stack - l.bytes) {
		return false
	}
	l.stack = stack
	return true
}

func (l *lease) extend(missing int64) bool {
	if missing <= 0 {
		return true
	}
	l.pool.mu.Lock()
	defer l.pool.unlock()
	if !l.pool.room(missing) {
		return false
	}
	l.pool.bytes -= missing
	l.bytes += missing
	return true
}

// reserve makes sure that so many bytes are reserved under held, beside all leases. Like
// cover, it never waits.
func (p *pool) reserve(held *atomic.Int64, bytes int64) bool {
	p.mu.Lock()
	defer p.unlock()
	missing := bytes - held.Load()
	if missing <= 0 {
		return true
	}
	if !p.room(missing) {
		return false
	}
	p.bytes -= missing
	held.Add(missing)
	return true
}

// unreserve gives back what is reserved under held.
func (p *pool) unreserve(held *atomic.Int64) {
	p.mu.Lock()
	defer p.unlock()
	p.bytes += held.Swap(0)
	p.advance()
}

func (l *lease) release() {
	p := l.pool
	p.mu.Lock()
	defer p.unlock()
	p.put(l.line, l.bytes)
	l.bytes = 0
	p.advance()
}

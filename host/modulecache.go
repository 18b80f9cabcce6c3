package host

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// moduleCache holds prepared modules by digest. Each is prepared once at a time, and
// given up when nobody has used it for long, or when others need the room: it is
// prepared again, from its source and the cache of native code, when it is asked for.
type moduleCache struct {
	room     int64         // bytes of all modules
	lifetime time.Duration // of a module that nobody uses
	forget   func(*image)  // is called before a module is closed

	mu      sync.Mutex
	entries map[string]*entry
	unused  list.List // of *entry, the one used longest ago first
	bytes   int64     // of all that are prepared
	sweeper *time.Timer
	closed  bool
	closing sync.WaitGroup // modules that are given up
}

// entry is a module, or why it cannot be had.
type entry struct {
	digest string
	ready  chan struct{} // closed once module and err are set
	module *module
	err    error

	users int           // that wait for it or use it
	place *list.Element // in moduleCache.unused; nil while it has users
	since time.Time     // that nobody uses it
	bytes int64
}

// get gives the module of that digest, with prepare if nobody has it ready. prepare
// runs in a goroutine that spawn starts: it goes on when ctx ends, for others
// who wait. The module stays until it is released as often as it was given.
func (c *moduleCache) get(ctx context.Context, digest string, spawn func(func()), prepare func() (*module, error)) (*module, error) {
	e := c.enter(digest, spawn, prepare)
	select {
	case <-e.ready: // without a look at ctx, as it is for all calls but the first
	default:
		select {
		case <-e.ready:
		case <-ctx.Done():
			c.leave(e)
			return nil, context.Cause(ctx)
		}
	}
	if e.err != nil {
		c.leave(e)
		return nil, e.err
	}
	return e.module, nil
}

// release gives a module back; nil is none.
func (c *moduleCache) release(m *module) {
	if m != nil {
		c.leave(m.image.entry)
	}
}

// hold counts a user more of an image that has one, until the result is called. An
// image that is being prepared has no entry yet.
func (c *moduleCache) hold(i *image) (letGo func()) {
	e := i.entry
	if e == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users++
	return func() { c.leave(e) }
}

// enter finds or begins a entry, and counts a user.
func (c *moduleCache) enter(digest string, spawn func(func()), prepare func() (*module, error)) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[digest]
	if e == nil {
		e = &entry{digest: digest, ready: make(chan struct{}), users: 1} // the goroutine that prepares it
		c.entries[digest] = e
		spawn(func() {
			e.module, e.err = prepare()
			c.settle(e)
		})
	}
	e.users++
	if e.place != nil {
		c.unused.Remove(e.place)
		e.place = nil
	}
	return e
}

// settle lets those who wait have the module. A failure is forgotten, as the module
// may be stored by the next time, unless it has cost a whole budget to find out.
func (c *moduleCache) settle(e *entry) {
	c.mu.Lock()
	if e.err != nil && !errors.Is(e.err, ErrCompileBudget) {
		delete(c.entries, e.digest)
	}
	if e.module != nil {
		e.module.image.entry = e
	}
	c.mu.Unlock()
	close(e.ready)
	c.leave(e)
}

// leave counts a user less, and gives up what there is no room for.
func (c *moduleCache) leave(e *entry) {
	c.mu.Lock()
	e.users--
	if e.users == 0 && c.entries[e.digest] == e {
		e.since, e.place = time.Now(), c.unused.PushBack(e)
		c.bytes += e.module.weight() - e.bytes
		e.bytes = e.module.weight()
		if c.sweeper == nil && !c.closed {
			c.sweeper = time.AfterFunc(c.lifetime, c.sweep)
		}
	}
	c.unlock(func(*entry) bool { return c.bytes > c.room })
}

// sweep gives up the modules that nobody has used for their lifetime.
func (c *moduleCache) sweep() {
	c.mu.Lock()
	c.sweeper = nil
	c.unlock(func(e *entry) bool { return time.Since(e.since) >= c.lifetime })
}

// unlock takes out unused entries, the one used longest ago first, as long as they
// are to go, gives the lock back and closes them.
func (c *moduleCache) unlock(gone func(*entry) bool) {
	var given []*entry
	for front := c.unused.Front(); front != nil && !c.closed; front = c.unused.Front() {
		e := front.Value.(*entry)
		if !gone(e) {
			if c.sweeper == nil {
				c.sweeper = time.AfterFunc(max(c.lifetime-time.Since(e.since), 0), c.sweep)
			}
			break
		}
		c.unused.Remove(front)
		delete(c.entries, e.digest)
		c.bytes -= e.bytes
		given = append(given, e)
	}
	if len(given) == 0 { // also once the moduleCache is closed, which waits for those before
		c.mu.Unlock()
		return
	}
	c.closing.Add(1)
	c.mu.Unlock()
	defer c.closing.Done()
	for _, e := range given {
		if e.module != nil {
			c.forget(e.module.image)
		}
		_ = e.module.close() // nobody is left who could do anything about it
	}
}

// close frees all modules, of which none may be used or be prepared any more.
func (c *moduleCache) close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.closing.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.sweeper != nil {
		c.sweeper.Stop()
	}
	var errs []error
	for digest, e := range c.entries {
		errs = append(errs, e.module.close())
		delete(c.entries, digest)
	}
	return errors.Join(errs...)
}

package host

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/flowhost/flowhost/run"
)

// moduleCache holds prepared modules by digest. It prepares each once at a time, and
// removes a module that was not used for long, or when others need the room. Then the
// next call prepares it again, from its source and the cache of native code.
type moduleCache struct {
	room     int64         // bytes of all modules
	lifetime time.Duration // of a module that nobody uses
	forget   func(*image)  // called before a module is closed

	mu      sync.Mutex
	entries map[string]*entry
	unused  list.List // of *entry, the one used longest ago first; those with users are passed over
	bytes   int64     // of all that are prepared
	sweeper *time.Timer
	closed  bool
	closing sync.WaitGroup // removed modules
}

// entry is a module, or the error of its preparation.
type entry struct {
	digest string
	ready  chan struct{} // closed once module and err are set
	module *module
	err    error
	usable bool // the module is set and has no fault; guarded by the cache's lock

	users int           // that wait for it or use it
	brief bool          // nobody has asked for it but those who wanted it to be prepared: it goes with its last user
	place *list.Element // in moduleCache.unused; nil until its first user has left
	since time.Time     // that nobody uses it
	bytes int64
}

// get returns the module of that digest, which prepare makes if it is not cached. prepare
// runs in a goroutine that spawn starts: it continues when ctx ends, for others who wait.
// The cache keeps the module until every caller has released it, and longer unless it is
// asked for briefly.
func (c *moduleCache) get(ctx context.Context, digest string, brief bool, spawn func(func()), prepare func() (*module, error)) (*module, error) {
	e := c.enter(digest, brief, spawn, prepare)
	select {
	case <-e.ready: // the usual case does not check ctx
	default:
		if err := e.prepared(ctx); err != nil {
			c.leave(e)
			return nil, err
		}
	}
	if e.err != nil {
		c.leave(e)
		return nil, e.err
	}
	return e.module, nil
}

// use returns the module of that digest if it can be called at once, nil if not. It has
// one user more then.
func (c *moduleCache) use(digest string) *module {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[digest]
	if e == nil || !e.usable {
		return nil
	}
	e.users, e.brief = e.users+1, false
	return e.module
}

// prepared waits until the module is. It fails with the cause with which ctx ended.
func (e *entry) prepared(ctx context.Context) error {
	own := timeOf(ctx)
	own.leave(run.WaitModule)
	select {
	case <-e.ready:
		return own.back()
	case <-ctx.Done():
		return causeOf(ctx)
	}
}

// release releases a module; nil is none.
func (c *moduleCache) release(m *module) {
	if m != nil {
		c.leave(m.image.entry)
	}
}

// hold adds a user of an image's module, until the result is called. An image that is
// being prepared has no entry yet.
func (c *moduleCache) hold(i *image) (release func()) {
	e := i.entry
	if e == nil {
		return func() {}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e.users++
	return func() { c.leave(e) }
}

// enter finds or adds an entry, and adds a user.
func (c *moduleCache) enter(digest string, brief bool, spawn func(func()), prepare func() (*module, error)) *entry {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[digest]
	if e == nil {
		e = &entry{digest: digest, ready: make(chan struct{}), users: 1, brief: brief} // the goroutine that prepares it
		c.entries[digest] = e
		spawn(func() {
			e.module, e.err = prepare()
			c.settle(e)
		})
	}
	e.users++
	e.brief = e.brief && brief
	return e
}

// settle wakes those who wait for the module. It removes a failed entry, because the next
// attempt may succeed, unless the failure was expensive: an exceeded budget.
func (c *moduleCache) settle(e *entry) {
	c.mu.Lock()
	if e.err != nil {
		e.brief = false // it is short
		if !errors.Is(e.err, ErrCompileBudget) {
			delete(c.entries, e.digest)
		}
	}
	if e.module != nil {
		e.module.image.entry = e
		e.usable = e.err == nil && e.module.fault == nil
	}
	c.mu.Unlock()
	close(e.ready)
	c.leave(e)
}

// leave removes a user, and removes the modules for which there is no room.
func (c *moduleCache) leave(e *entry) {
	c.mu.Lock()
	e.users--
	if e.users == 0 && c.entries[e.digest] == e {
		e.since = time.Now()
		switch {
		case e.place == nil && e.brief:
			e.place = c.unused.PushFront(e) // to be removed now
		case e.place == nil:
			e.place = c.unused.PushBack(e)
		case e.brief:
			c.unused.MoveToFront(e.place)
		default:
			c.unused.MoveToBack(e.place)
		}
		c.bytes += e.module.weight() - e.bytes
		e.bytes = e.module.weight()
		if c.sweeper == nil && !c.closed {
			c.sweeper = time.AfterFunc(c.lifetime, c.sweep)
		}
	}
	c.unlock(func(e *entry) bool { return e.brief || c.bytes > c.room })
}

// sweep removes the modules that nobody has used for their lifetime.
func (c *moduleCache) sweep() {
	c.mu.Lock()
	c.sweeper = nil
	c.unlock(func(e *entry) bool { return time.Since(e.since) >= c.lifetime })
}

// unlock removes unused entries, the least recently used first, as long as expired
// returns true, unlocks the cache and closes them.
func (c *moduleCache) unlock(expired func(*entry) bool) {
	var removed []*entry
	for place := c.unused.Front(); place != nil && !c.closed; {
		e := place.Value.(*entry)
		place = place.Next()
		if e.users > 0 {
			continue
		}
		if !expired(e) {
			if c.sweeper == nil {
				c.sweeper = time.AfterFunc(max(c.lifetime-time.Since(e.since), 0), c.sweep)
			}
			break
		}
		c.unused.Remove(e.place)
		delete(c.entries, e.digest)
		c.bytes -= e.bytes
		removed = append(removed, e)
	}
	if len(removed) == 0 { // also once the cache is closed
		c.mu.Unlock()
		return
	}
	c.closing.Add(1)
	c.mu.Unlock()
	defer c.closing.Done()
	for _, e := range removed {
		if e.module != nil {
			c.forget(e.module.image)
		}
		_ = e.module.close() // there is no caller to report it to
	}
}

// close frees all modules. None may be in use or in preparation.
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

package host

import (
	"container/list"
	"context"
	"errors"
	"sync"
	"time"
)

// library holds prepared modules by digest. Each is prepared once at a time, and
// given up when nobody has used it for long, or when others need the room: it is
// prepared again, from its source and the cache of native code, when it is asked for.
type library struct {
	room     int64         // bytes of all modules
	lifetime time.Duration // of a module that nobody uses
	forget   func(*image)  // is called before a module is closed

	mu      sync.Mutex
	volumes map[string]*volume
	unused  list.List // of *volume, the one used longest ago first
	bytes   int64     // of all that are prepared
	sweeper *time.Timer
	closed  bool
	closing sync.WaitGroup // modules that are given up
}

// volume is a module, or why it cannot be had.
type volume struct {
	digest string
	ready  chan struct{} // closed once module and err are set
	module *module
	err    error

	users int           // that wait for it or use it
	place *list.Element // in library.unused; nil while it has users
	since time.Time     // that nobody uses it
	bytes int64
}

// get gives the module of that digest, with prepare if nobody has it ready. prepare
// runs in a goroutine that spawn starts: it goes on when ctx ends, for others
// who wait. The module stays until it is released as often as it was given.
func (l *library) get(ctx context.Context, digest string, spawn func(func()), prepare func() (*module, error)) (*module, error) {
	v := l.enter(digest, spawn, prepare)
	select {
	case <-v.ready: // without a look at ctx, as it is for all calls but the first
	default:
		select {
		case <-v.ready:
		case <-ctx.Done():
			l.leave(v)
			return nil, context.Cause(ctx)
		}
	}
	if v.err != nil {
		l.leave(v)
		return nil, v.err
	}
	return v.module, nil
}

// release gives a module back; nil is none.
func (l *library) release(m *module) {
	if m != nil {
		l.leave(m.image.volume)
	}
}

// hold counts a user more of an image that has one, until the result is called. An
// image that is being prepared has no volume yet.
func (l *library) hold(i *image) (letGo func()) {
	v := i.volume
	if v == nil {
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	v.users++
	return func() { l.leave(v) }
}

// enter finds or begins a volume, and counts a user.
func (l *library) enter(digest string, spawn func(func()), prepare func() (*module, error)) *volume {
	l.mu.Lock()
	defer l.mu.Unlock()
	v := l.volumes[digest]
	if v == nil {
		v = &volume{digest: digest, ready: make(chan struct{}), users: 1} // the goroutine that prepares it
		l.volumes[digest] = v
		spawn(func() {
			v.module, v.err = prepare()
			l.settle(v)
		})
	}
	v.users++
	if v.place != nil {
		l.unused.Remove(v.place)
		v.place = nil
	}
	return v
}

// settle lets those who wait have the module. A failure is forgotten, as the module
// may be stored by the next time, unless it has cost a whole budget to find out.
func (l *library) settle(v *volume) {
	l.mu.Lock()
	if v.err != nil && !errors.Is(v.err, ErrCompileBudget) {
		delete(l.volumes, v.digest)
	}
	if v.module != nil {
		v.module.image.volume = v
	}
	l.mu.Unlock()
	close(v.ready)
	l.leave(v)
}

// leave counts a user less, and gives up what there is no room for.
func (l *library) leave(v *volume) {
	l.mu.Lock()
	v.users--
	if v.users == 0 && l.volumes[v.digest] == v {
		v.since, v.place = time.Now(), l.unused.PushBack(v)
		l.bytes += v.module.weight() - v.bytes
		v.bytes = v.module.weight()
		if l.sweeper == nil && !l.closed {
			l.sweeper = time.AfterFunc(l.lifetime, l.sweep)
		}
	}
	l.unlock(func(*volume) bool { return l.bytes > l.room })
}

// sweep gives up the modules that nobody has used for their lifetime.
func (l *library) sweep() {
	l.mu.Lock()
	l.sweeper = nil
	l.unlock(func(v *volume) bool { return time.Since(v.since) >= l.lifetime })
}

// unlock takes out unused volumes, the one used longest ago first, as long as they
// are to go, gives the lock back and closes them.
func (l *library) unlock(gone func(*volume) bool) {
	var given []*volume
	for front := l.unused.Front(); front != nil && !l.closed; front = l.unused.Front() {
		v := front.Value.(*volume)
		if !gone(v) {
			if l.sweeper == nil {
				l.sweeper = time.AfterFunc(max(l.lifetime-time.Since(v.since), 0), l.sweep)
			}
			break
		}
		l.unused.Remove(front)
		delete(l.volumes, v.digest)
		l.bytes -= v.bytes
		given = append(given, v)
	}
	if len(given) == 0 { // also once the library is closed, which waits for those before
		l.mu.Unlock()
		return
	}
	l.closing.Add(1)
	l.mu.Unlock()
	defer l.closing.Done()
	for _, v := range given {
		if v.module != nil {
			l.forget(v.module.image)
		}
		_ = v.module.close() // nobody is left who could do anything about it
	}
}

// close frees all modules, of which none may be used or be prepared any more.
func (l *library) close() error {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.closing.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.sweeper != nil {
		l.sweeper.Stop()
	}
	var errs []error
	for digest, v := range l.volumes {
		errs = append(errs, v.module.close())
		delete(l.volumes, digest)
	}
	return errors.Join(errs...)
}

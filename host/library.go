package host

import (
	"context"
	"errors"
	"sync"
)

// library holds prepared modules by digest. Each is prepared once at a time,
// and for ever once that worked: what a digest names does not change.
type library struct {
	mu      sync.Mutex
	volumes map[string]*volume
}

type volume struct {
	ready  chan struct{} // closed once module and err are set
	module *module
	err    error
}

// get gives the module of that digest, with prepare if nobody has yet. prepare
// runs in a goroutine that spawn starts: it goes on when ctx ends, for others
// who wait.
func (l *library) get(ctx context.Context, digest string, spawn func(func()), prepare func() (*module, error)) (*module, error) {
	l.mu.Lock()
	v := l.volumes[digest]
	if v == nil {
		v = &volume{ready: make(chan struct{})}
		l.volumes[digest] = v
		spawn(func() {
			v.module, v.err = prepare()
			l.settle(digest, v)
		})
	}
	l.mu.Unlock()

	select {
	case <-v.ready: // without a look at ctx, as it is for all calls but the first
		return v.module, v.err
	default:
	}
	select {
	case <-v.ready:
		return v.module, v.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close frees all modules, of which none may be used or be prepared any more.
func (l *library) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	for digest, v := range l.volumes {
		errs = append(errs, v.module.close())
		delete(l.volumes, digest)
	}
	return errors.Join(errs...)
}

// settle lets those who wait go on. A failure is forgotten: the module may be
// stored by the next time.
func (l *library) settle(digest string, v *volume) {
	if v.err != nil {
		l.mu.Lock()
		delete(l.volumes, digest)
		l.mu.Unlock()
	}
	close(v.ready)
}

package host

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/host/internal/known"
)

// manifestTimeout bounds a module's export that writes its manifest.
const manifestTimeout = 5 * time.Second

// Host runs functions of modules. It is safe for concurrent use.
type Host struct {
	config  Config // with all defaults; for what may change, see tuning
	tuning  atomic.Pointer[Tuning]
	sandbox *sandbox
	modules moduleCache
	known   *known.Modules
	calls   *pool
	private privateDirs
	works   sync.Pool // of *work

	life context.Context // ends with ErrClosed
	end  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	busy   sync.WaitGroup // calls and preparations; grows only under mu, or when it is not zero
}

// New makes a host. It uses the context only for the setup; [Host.Close] ends the host.
func New(ctx context.Context, config Config) (*Host, error) {
	config = config.withDefaults()
	box, err := newSandbox(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	calls := newPool(&config)
	h := &Host{
		config:  config,
		sandbox: box,
		known:   known.New(box.store, fmt.Sprint(box.rules(), config.Engine, " ")),
		modules: moduleCache{entries: map[string]*entry{}, room: config.ModuleMemory, lifetime: config.ModuleTime, forget: calls.forget},
		calls:   calls,
		private: privateDirs(append(slices.Clip(config.Private), box.compiler.Dir())),
		works:   sync.Pool{New: func() any { return new(work) }},
		life:    life,
		end:     end,
	}
	h.tuning.Store(&Tuning{config.Limits, config.Timeout, config.Grace})
	return h, nil
}

// Close cuts off the running calls, whose attempts are lost, waits for them and frees
// all modules. It fails when ctx ends while a guest still runs; it frees nothing then,
// because the guest still uses its native code, and may be called again.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.end(ErrClosed)

	idle := make(chan struct{})
	go func() {
		h.busy.Wait()
		close(idle)
	}()
	select {
	case <-idle:
		h.calls.close()
		return errors.Join(h.modules.close(), h.sandbox.close(ctx))
	case <-ctx.Done():
		return fmt.Errorf("host: calls are still running: %w", context.Cause(ctx))
	}
}

// register adds a method call, which Close awaits until it calls h.busy.Done.
func (h *Host) register() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return ErrClosed
	}
	h.busy.Add(1)
	return nil
}

// enter registers a method call. Its context ends with ctx, and when the host closes.
func (h *Host) enter(ctx context.Context) (context.Context, func(), error) {
	if err := h.register(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	unhook := context.AfterFunc(h.life, func() { cancel(ErrClosed) })
	return ctx, func() {
		unhook()
		cancel(nil)
		h.busy.Done()
	}, nil
}

// module returns a prepared module. If it is not in the cache, its bytes come from open.
// It is called between enter and leave, and the module is released before leave.
func (h *Host) module(ctx context.Context, digest string, brief bool, open func(context.Context) ([]byte, error)) (*module, error) {
	return h.modules.get(ctx, digest, brief, h.busy.Go, func() (*module, error) {
		m, err := h.makeModule(digest, open)
		if h.life.Err() != nil { // whatever went wrong, that is why
			return nil, errors.Join(ErrClosed, m.close())
		}
		return m, err
	})
}

// makeModule prepares a module and finds its ABI and functions. A module that wazero
// accepts but that cannot be called has its fault noted in it.
func (h *Host) makeModule(digest string, open func(context.Context) ([]byte, error)) (*module, error) {
	img, err := h.sandbox.prepare(h.life, digest, open)
	if err != nil {
		return nil, err
	}
	img.digest, img.limits = digest, setupLimits(h.tuning.Load().Limits, h.config.Memory, &img.form)
	h.known.KeepCompiled(digest)
	m := newModule(digest, img)
	if m.signature.ABI, m.fault = inferABI(&img.form, h.sandbox.offered); m.fault != nil {
		return m, nil
	}
	m.fault = m.describe(h.life, h)
	if m.fault != nil && m.fault.passing {
		return nil, errors.Join(m.fault, m.close())
	}
	return m, nil
}

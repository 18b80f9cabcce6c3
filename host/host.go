package host

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"sync"
	"time"

	"github.com/flowhost/flowhost/run"
)

// manifestTimeout bounds a module's export that describes it.
const manifestTimeout = 5 * time.Second

// Host runs functions of modules. It is safe for concurrent use.
type Host struct {
	config  Config // with all defaults
	sandbox sandbox
	library library
	calls   *pool
	prepare *pool // modules that are being prepared, apart from the calls that wait for them

	life context.Context // ends with ErrClosed
	end  context.CancelCauseFunc

	mu     sync.Mutex
	closed bool
	busy   sync.WaitGroup // calls and preparations; grows only under mu, or when it is not zero
}

// New makes a host. The context is for setting up only; [Host.Close] ends the host.
func New(ctx context.Context, config Config) (*Host, error) {
	config = config.withDefaults()
	box, err := newWazeroSandbox(ctx, config.CacheDir, config.Preflight)
	if err != nil {
		return nil, fmt.Errorf("host: %w", err)
	}
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	preparing := max(runtime.GOMAXPROCS(0)/2, 1)
	return &Host{
		config:  config,
		sandbox: box,
		library: library{volumes: map[string]*volume{}},
		calls:   newPool(config.Instances, config.Memory, config.Queue),
		prepare: newPool(preparing, int64(preparing)*config.Limits.Memory, defaultQueue),
		life:    life,
		end:     end,
	}, nil
}

// Close cuts off the calls that run, whose attempts are lost, waits for them
// and frees all modules. It fails when ctx ends while a guest still runs;
// nothing is freed then, as native code must not go away under it, and Close may
// be called again.
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
		return h.sandbox.close(ctx)
	case <-ctx.Done():
		return fmt.Errorf("host: calls are still running: %w", context.Cause(ctx))
	}
}

// enter registers a call. Its context ends with ctx, and when the host closes.
func (h *Host) enter(ctx context.Context) (context.Context, func(), error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, nil, ErrClosed
	}
	h.busy.Add(1)
	ctx, cancel := context.WithCancelCause(ctx)
	detach := context.AfterFunc(h.life, func() { cancel(ErrClosed) })
	return ctx, func() {
		detach()
		cancel(nil)
		h.busy.Done()
	}, nil
}

// module gives a prepared module, whose bytes come from open when it is not
// known yet. It is called between enter and leave.
func (h *Host) module(ctx context.Context, digest string, open func(context.Context) ([]byte, error)) (*module, error) {
	return h.library.get(ctx, digest, h.busy.Go, func() (m *module, err error) {
		admitted := h.prepare.use(h.life, 0, func(l *lease) {
			var binary []byte
			if binary, err = open(h.life); err == nil {
				m, err = h.makeModule(l, digest, binary)
			}
		})
		if h.life.Err() != nil { // whatever went wrong, that is why
			return nil, ErrClosed
		}
		return m, cmp.Or(admitted, err)
	})
}

// makeModule prepares a module and finds out what it is. A module that wazero
// takes but that cannot be called has its fault noted in it.
func (h *Host) makeModule(l *lease, digest string, binary []byte) (*module, error) {
	img, err := h.sandbox.prepare(h.life, binary)
	if err != nil {
		return nil, err
	}
	m := &module{image: img, exports: map[string]string{}}
	m.signature.Digest = digest
	form := img.shape()
	if m.signature.ABI, m.fault = inferABI(&form, h.sandbox.offers()); m.fault != nil {
		return m, nil
	}
	ctx, cancel := context.WithTimeoutCause(h.life, manifestTimeout, run.ErrDeadline)
	defer cancel()
	m.fault = m.describe(ctx, l, h.config.Limits)
	return m, nil
}

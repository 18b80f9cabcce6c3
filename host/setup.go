package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// setups is the initialization of an image that is under way, of which there is
// one at most.
type setups struct {
	mu      sync.Mutex
	current *setup
}

// setup initializes the first instance of a module in a separate goroutine. It belongs
// to no call: calls wait for it, and it ends when none waits any more.
type setup struct {
	waiting int           // calls; guarded by setups.mu
	done    chan struct{} // closed once err is set
	err     error         // why the image has no state; nil if it has one
	abandon context.CancelCauseFunc
}

// ready returns once the image has a state. Whichever call comes first, the
// module is initialized in the same way and within the same limits: what it
// computes then is shared by all calls. It fails with the cause with which ctx
// ended, or with an error after which the next call tries again. It is called
// between enter and leave.
func (h *Host) ready(ctx context.Context, i *image) error {
	for i.state.Load() == nil {
		if need := i.form.memory.Min + i.overhead(i.limits); need > h.config.Memory {
			return &ModuleError{
				Reason: fmt.Sprintf("it starts with %d bytes of memory, its tables and its output among them, and the host has %d", need, h.config.Memory),
				Hint:   "raise the memory of the host",
			}
		}
		s := i.setup.join(func(s *setup) { h.setUp(i, s) })
		select {
		case <-s.done:
		case <-ctx.Done():
			i.setup.leave(s)
			return causeOf(ctx)
		}
		if s.err != nil && !errors.Is(s.err, errAbandoned) {
			return s.err
		}
	}
	return nil
}

// join gives the setup that is under way, to which begin is given if it is new.
func (s *setups) join(begin func(*setup)) *setup {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		s.current = &setup{done: make(chan struct{})}
		begin(s.current)
	}
	s.current.waiting++
	return s.current
}

// leave is for a call that does not wait any longer.
func (s *setups) leave(left *setup) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if left.waiting--; left.waiting == 0 {
		left.abandon(errAbandoned)
	}
}

func (s *setups) end(ended *setup, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ended.err, s.current = err, nil
	close(ended.done)
}

// setUp starts a setup, which has a place of the pool like any call, and all the
// time that a call has by default.
func (h *Host) setUp(i *image, s *setup) {
	ctx, cancel := context.WithTimeoutCause(h.life, h.tuning.Load().Timeout, errSetupTime)
	ctx, s.abandon = context.WithCancelCause(ctx)
	release := h.modules.hold(i)
	h.busy.Go(func() {
		defer cancel()
		defer s.abandon(nil)
		var err error
		used := h.calls.call(ctx, i, i.limits, func(l *lease) { err = i.build(ctx, l) })
		if err = errors.Join(used, err); errors.Is(err, errInterrupted) {
			err = context.Cause(ctx)
		}
		release() // before the waiting calls, so that the last one of them releases the module
		i.setup.end(s, err)
	})
}

// setupLimits are those of initializing a module: the host's defaults, unless the
// module itself starts with more memory.
func setupLimits(limits run.Limits, memory int64, form *shape) run.Limits {
	if form.memory != nil {
		limits.Memory = max(limits.Memory, form.memory.Min)
	}
	limits.Memory, limits.Fuel = min(limits.Memory, memory), 0
	return limits
}

// build takes the state of a first instance, which becomes an idle one. What
// fails because of the host's load fails with an error; any other failure is the
// module's, and each of its calls fails in its own words.
func (i *image) build(ctx context.Context, l *lease) error {
	if i.unfit != "" {
		i.state.Store(&state{fresh: i.unfit})
		return nil
	}
	started := time.Now()
	first, s, err := i.takeState(ctx, l, i.warms())
	if errors.Is(err, errInterrupted) || errors.Is(err, errSetupMemory) {
		return err
	}
	if err != nil {
		s = &state{fresh: "its initialization fails: " + err.Error()}
	}
	s.took = time.Since(started)
	if s.memory != nil {
		i.data = nil // only initializations read it, and there is none besides this one
	}
	i.state.Store(s)
	if first != nil {
		l.keep(first)
	}
	return nil
}

// takeState initializes an instance and makes an image of it. It gives the
// instance if that is in the image's state.
func (i *image) takeState(ctx context.Context, l *lease, warm bool) (*instance, *state, error) {
	before := newSetup(i.abi(), i.limits, l)
	first, err := i.initialized(ctx, before)
	if err != nil {
		return nil, nil, err
	}
	if warm {
		status, err := first.call(ctx, before, abi.ExportWarmup)
		switch {
		case errors.Is(err, errInterrupted):
			first.close()
			return nil, nil, err
		case first.memory.short:
		case err != nil || status != 0: // it may have left anything behind
			first.close()
			return i.takeState(ctx, l, false)
		}
	}
	if first.memory.short { // a state that depends on other calls is nobody's
		first.close()
		return nil, nil, errSetupMemory
	}
	s := &state{elapsed: before.clock.elapsed, warmed: warm, globals: first.globals.read()}
	first.globals.values = s.globals
	if first.changed != nil && first.changed.Get() != 0 {
		s.fresh = "its initialization changes tables or drops segments"
	} else if s.memory, err = first.memory.Freeze(ctx); err != nil && ctx.Err() != nil {
		first.close()
		return nil, nil, errInterrupted
	} else if err != nil {
		s.fresh = "no image of its memory can be made: " + err.Error()
	}
	if s.fresh != "" {
		first.close()
		return nil, s, nil
	}
	return first, s, nil
}

// initialized makes an instance and runs its initialization, for which before is the
// guest's view.
func (i *image) initialized(ctx context.Context, before *invocation) (*instance, error) {
	linear := i.newLinear(before.lease, before.limits.Memory)
	made, err := i.empty(ctx, linear)
	if err == nil {
		err = made.initialize(ctx, before)
	}
	before.process.Close()
	if err == nil {
		i.tally.made.Add(1)
		return made, nil
	}
	before.refused = linear.refused
	if made != nil {
		made.close()
	} else {
		_ = linear.Close() // what went wrong before counts
	}
	if linear.short && !errors.Is(err, errInterrupted) {
		return nil, errSetupMemory
	}
	return nil, early(err)
}

// early notes that a guest has ended itself before it was called.
func early(err error) error {
	if exit, ok := errors.AsType[*exitError](err); ok {
		exit.early = true
	}
	return err
}

package host

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/flowhost/flowhost/host/internal/memory"
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/sdk/abi"
)

// image is a compiled module and, once it was needed, the state of a freshly
// initialised instance of it. It is safe for concurrent use.
type image struct {
	base    context.Context // of the host, for closing; it never ends
	digest  string
	runtime wazero.Runtime
	code    wazero.CompiledModule
	form    shape
	globals []wasm.Global // what the rewrite has exported
	depth   int32
	checks  Checks
	names   wasm.Names

	binary    int64  // bytes of the rewritten module
	footprint int64  // bytes of an instance beside linear memory and native stack
	unfit     string // why no state can be taken; "" when it can
	asks      bool   // it can ask whether it should stop

	building chan struct{} // holds one while the state is being taken
	state    atomic.Pointer[state]
	tally    tally
}

// state is that of an instance before its first call.
type state struct {
	fresh   string // why there is none, and each call initialises an instance of its own
	memory  *memory.Image
	globals []uint64
	elapsed time.Duration // on the guest's clocks while it was initialised
	took    time.Duration // to initialise it, really
	warmed  bool          // its own warm-up has run
}

// command reports whether the module runs as a whole, by its _start.
func (i *image) command() bool { return i.form.exportType(abi.ExportStart) != "" }

// judge notes why an instance of the module can never go back to an image.
func (i *image) judge(rewritten *wasm.Rewritten) {
	for _, g := range rewritten.Globals {
		if !fitsWord(g.Type) {
			i.unfit = "it has a mutable global of a type that cannot be put back (v128 or a reference)"
		}
	}
}

// need is the bytes of memory with which a call starts.
func (i *image) need() int64 {
	if s := i.state.Load(); s != nil && s.memory != nil {
		return int64(s.memory.Size())
	}
	return i.form.memory.Min
}

// weight is about the bytes of native code, of what wazero keeps of the module to
// make instances, and of the image.
func (i *image) weight() int64 {
	const each = 5 // for a byte of the module, in Go guests
	bytes := each * i.binary
	if s := i.state.Load(); s != nil && s.memory != nil {
		bytes += int64(s.memory.Size())
	}
	return bytes
}

// run calls an export in an instance that is as if no other call had ever
// touched it. It fails as [instance.call] does.
func (i *image) run(ctx context.Context, l *lease, inv *invocation, export string) (status int32, err error) {
	inv.lease = l
	made, err := i.instance(ctx, l, inv)
	if err != nil {
		return 0, err
	}
	defer i.finish(l, made)
	if ctx.Err() != nil {
		return 0, errInterrupted
	}
	inv.grace.open = true
	status, err = made.call(ctx, inv, export)
	inv.refused = inv.refused || made.memory.refused
	return status, err
}

// trial makes an instance as for a call, but calls only the module's own
// warm-up, if it has one, so that the ways back to the image are measured.
func (i *image) trial(ctx context.Context, l *lease, inv *invocation) error {
	made, err := i.instance(ctx, l, inv)
	if err != nil {
		if s := i.state.Load(); s != nil && s.fresh != "" {
			return nil // what goes wrong is known
		}
		return err
	}
	defer i.finish(l, made)
	if i.warms() {
		_, err = made.call(ctx, inv, abi.ExportWarmup)
	}
	return err
}

// warms reports whether the module has a warm-up of its own.
func (i *image) warms() bool { return i.form.exportType(abi.ExportWarmup) == functionShape }

// finish puts the instance back among the idle ones, or closes it.
func (i *image) finish(l *lease, made *instance) {
	if fresh := i.state.Load().fresh; fresh != "" {
		made.discard(fresh)
	} else if err := made.reset(); err != nil {
		made.discard(err.Error())
	} else {
		l.keep(made)
	}
}

// instance gives one that is ready for the call.
func (i *image) instance(ctx context.Context, l *lease, inv *invocation) (*instance, error) {
	s := i.state.Load()
	if s == nil {
		made, err := i.build(ctx, l, inv)
		if made != nil || err != nil {
			return made, err
		}
		s = i.state.Load() // another call has taken it in the meantime
	}
	if s.fresh != "" {
		return i.fresh(ctx, l, inv)
	}
	inv.begin(s.elapsed)
	if idle := l.take(); idle != nil {
		i.tally.reused.Add(1)
		idle.memory.bind(l, inv.limits.Memory)
		return idle, nil
	}
	return i.another(ctx, l, inv, s)
}

// fresh initialises an instance within the call.
func (i *image) fresh(ctx context.Context, l *lease, inv *invocation) (*instance, error) {
	made, err := i.initialised(ctx, l, inv)
	if err != nil {
		return nil, err
	}
	inv.log = logBuffer{limit: inv.limits.Log, follow: inv.log.follow} // the call's begins here
	inv.begin(inv.clock.elapsed)
	return made, nil
}

// initialised makes an instance and runs its initialisation.
func (i *image) initialised(ctx context.Context, l *lease, inv *invocation) (*instance, error) {
	linear := i.newLinear(l, inv)
	inv.beginInit()
	made, err := i.unprepared(ctx, inv, linear)
	if err != nil {
		inv.refused = linear.refused
		_ = linear.Close() // what went wrong before counts
		return nil, early(err)
	}
	if err := made.initialise(ctx, inv); err != nil {
		inv.refused = linear.refused
		made.close()
		return nil, early(err)
	}
	i.tally.made.Add(1)
	return made, nil
}

// early notes that a guest has ended itself before it was called.
func early(err error) error {
	if exit, ok := errors.AsType[*exitError](err); ok {
		exit.early = true
	}
	return err
}

// another makes an instance and puts it into the state of the first one,
// without running anything of it.
func (i *image) another(ctx context.Context, l *lease, inv *invocation, s *state) (*instance, error) {
	linear := i.newLinear(l, inv)
	made, err := i.unprepared(ctx, setup(l, inv), linear)
	if err != nil {
		inv.refused = linear.refused
		_ = linear.Close() // what went wrong before counts
		return nil, err
	}
	err = linear.Adopt(s.memory)
	if err == nil && !linear.settle(made.module.Memory()) {
		err = errGrown
	}
	if err != nil {
		made.close()
		return nil, newInstanceTrap(linear, err)
	}
	made.globals.values = s.globals
	made.globals.restore()
	made.depth.Set(uint64(i.depth))
	i.tally.made.Add(1)
	return made, nil
}

// newLinear makes a memory for the call. It reserves as many addresses as any
// call of this host may use bytes, because later calls may have other limits.
func (i *image) newLinear(l *lease, inv *invocation) *linear {
	limit := l.pool.memory
	if m := i.form.memory; m != nil && m.Max > 0 {
		limit = min(limit, m.Max)
	}
	linear := &linear{Memory: memory.New(int(limit))}
	linear.bind(l, inv.limits.Memory)
	return linear
}

// instantiate makes an instance of wazero's. Whatever it is granted comes with
// each call.
func (i *image) instantiate(ctx context.Context, inv *invocation, memory *linear) (api.Module, error) {
	inv.meter.first(time.Now())
	ctx = experimental.WithMemoryAllocator(ctx, memory)
	ctx = context.WithValue(ctx, invocationKey{}, inv)
	config := wazero.NewModuleConfig().
		WithName(""). // anonymous: any number of them at a time
		WithStartFunctions()
	return i.runtime.InstantiateModule(ctx, i.code, config)
}

// build takes the state of a first instance and gives that instance. It gives
// nothing when another call was faster. A failure that may be the call's own is
// the call's, and the next one tries again; any other one is the module's, and
// each of its calls fails in its own words.
func (i *image) build(ctx context.Context, l *lease, inv *invocation) (*instance, error) {
	select {
	case i.building <- struct{}{}:
		defer func() { <-i.building }()
	case <-ctx.Done():
		return nil, errInterrupted
	}
	if i.state.Load() != nil {
		return nil, nil
	}
	if i.unfit != "" {
		i.state.Store(&state{fresh: i.unfit})
		return nil, nil
	}
	started := time.Now()
	first, s, err := i.takeState(ctx, l, inv, i.warms())
	if err != nil {
		if errors.Is(err, errInterrupted) || inv.refused {
			return nil, err
		}
		s = &state{fresh: "its initialisation fails: " + err.Error()}
	}
	s.took = time.Since(started)
	i.state.Store(s)
	if first != nil {
		inv.begin(s.elapsed)
	}
	return first, nil
}

// setup is what a guest sees while an instance is made that is not for one call
// alone. Nothing that it says is kept.
func setup(l *lease, inv *invocation) *invocation {
	before := newInvocation(inv.call, inv.abi, inv.function, inv.limits)
	before.lease = l
	before.beginInit()
	return before
}

// takeState initialises an instance and makes an image of it.
func (i *image) takeState(ctx context.Context, l *lease, inv *invocation, warm bool) (*instance, *state, error) {
	before := setup(l, inv)
	first, err := i.initialised(ctx, l, before)
	if err != nil {
		inv.refused = before.refused
		return nil, nil, err
	}
	if warm {
		status, err := first.call(ctx, before, abi.ExportWarmup)
		if errors.Is(err, errInterrupted) {
			first.close()
			return nil, nil, err
		}
		if err != nil || status != 0 { // it may have left anything behind
			first.close()
			return i.takeState(ctx, l, inv, false)
		}
	}
	s := &state{elapsed: before.clock.elapsed, warmed: warm, globals: first.globals.read()}
	first.globals.values = s.globals
	if first.changed != nil && first.changed.Get() != 0 {
		s.fresh = "its initialisation changes tables or drops segments"
		first.close()
		return nil, s, nil
	}
	if s.memory, err = first.memory.Freeze(); err != nil {
		s.fresh = "no image of its memory can be made: " + err.Error()
		first.close()
		return nil, s, nil
	}
	return first, s, nil
}

// close frees the state. No instance of it may be left.
func (i *image) close() error {
	err := i.code.Close(i.base)
	if s := i.state.Load(); s != nil && s.memory != nil {
		err = errors.Join(err, s.memory.Close())
	}
	return err
}

package host

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/flowhost/flowhost/host/internal/memory"
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// image is a compiled module and, once it was needed, the state of a freshly
// initialized instance of it. It is safe for concurrent use.
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
	data    wasm.Data  // of an initialization; nil after the last one
	binary  int64      // bytes of the rewritten module
	laid    int64      // bytes of its data
	unfit   string     // why no state can be taken; "" when it can
	asks    bool       // it can ask whether it should stop
	limits  run.Limits // of an initialization, whichever call waits for it
	entry   *entry     // of the library; nil while the module is being prepared

	footprint int64 // bytes of an instance beside linear memory and native stack

	setup setups
	state atomic.Pointer[state]
	tally tally
}

// state is that of an instance before its first call.
type state struct {
	fresh   string // why there is none, and each call initializes an instance of its own
	memory  *memory.Image
	globals []uint64
	elapsed time.Duration // on the guest's clocks while it was initialized
	took    time.Duration // to initialize it, really
	warmed  bool          // its own warm-up has run
}

// abi is the ABI by which the module is called, if it fits one.
func (i *image) abi() string {
	if i.command() {
		return ABIWASI
	}
	return ABIFlowhost
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

// weight is about the bytes of native code, of what wazero and the host keep of the
// module to make instances, and of the image.
func (i *image) weight() int64 {
	const each = 8 // for a byte of the module, in Go guests
	if s := i.state.Load(); s != nil && s.memory != nil {
		return each*i.binary + int64(s.memory.Size())
	}
	return each*i.binary + i.laid
}

// run calls an export in an instance that is as if no other call had ever
// touched it. The image has a state. It fails as [instance.call] does, or with an
// *inadequateError.
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
	made.memory.Watch()
	status, err = made.call(ctx, inv, export)
	inv.refused = inv.refused || made.memory.refused
	return status, err
}

// trial makes an instance as for a call, but calls only the module's own
// warm-up, if it has one, so that the ways back to the image are measured.
func (i *image) trial(ctx context.Context, l *lease, inv *invocation) error {
	made, err := i.instance(ctx, l, inv)
	if err != nil {
		if i.state.Load().fresh != "" {
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

// warms reports whether the module exports a warm-up.
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
	if s.fresh != "" {
		return i.fresh(ctx, l, inv)
	}
	if need := int64(s.memory.Size()); need > inv.limits.Memory {
		return nil, &inadequateError{need, inv.limits.Memory}
	}
	inv.begin(s.elapsed)
	if idle := l.take(); idle != nil {
		i.tally.reused.Add(1)
		idle.memory.bind(l, inv.limits.Memory)
		return idle, nil
	}
	return i.another(ctx, l, inv, s)
}

// fresh initializes an instance within the call, which that does not get to see.
func (i *image) fresh(ctx context.Context, l *lease, inv *invocation) (*instance, error) {
	before := newSetup(i.abi(), i.limits, l)
	made, err := i.initialized(ctx, before)
	if err != nil {
		inv.blame(before)
		return nil, err
	}
	if need := int64(len(made.memory.Bytes())); need > inv.limits.Memory {
		made.close()
		return nil, &inadequateError{need, inv.limits.Memory}
	}
	made.memory.bind(l, inv.limits.Memory)
	inv.begin(before.clock.elapsed)
	return made, nil
}

// another makes an instance in the state of the first one, without running anything of
// the module: its memory is the image from the beginning.
func (i *image) another(ctx context.Context, l *lease, inv *invocation, s *state) (*instance, error) {
	linear := i.newLinear(l, inv.limits.Memory)
	made, err := i.inState(ctx, linear, s)
	if err != nil {
		_ = linear.Close() // what went wrong before counts
		return nil, err
	}
	i.tally.made.Add(1)
	return made, nil
}

func (i *image) inState(ctx context.Context, linear *linearMemory, s *state) (*instance, error) {
	if err := linear.Adopt(ctx, s.memory); err != nil {
		return nil, newInstanceTrap(linear, err)
	}
	linear.settled = true
	defer func() { linear.settled = false }()
	made, err := i.empty(ctx, linear)
	if err != nil {
		return nil, err
	}
	made.globals.values = s.globals
	made.globals.restore()
	return made, nil
}

// newLinear makes a memory for an instance, which may grow to limit at first. It
// reserves as many addresses as any call of this host may use bytes, because calls
// have other limits.
func (i *image) newLinear(l *lease, limit int64) *linearMemory {
	reserved := l.pool.memory
	if m := i.form.memory; m != nil && m.Max > 0 {
		reserved = min(reserved, m.Max)
	}
	linear := &linearMemory{Memory: memory.New(int(reserved))}
	linear.bind(l, limit)
	return linear
}

// instanceConfig makes instances anonymous, so that there can be any number of them at a
// time. Of wazero's own system, nothing is ever used: its source of random numbers would
// take as long to make as a small instance.
var instanceConfig = wazero.NewModuleConfig().WithName("").WithStartFunctions().WithRandSource(strings.NewReader(""))

// instantiate makes an instance of wazero's, on which nothing of the module runs.
// Whatever it is granted comes with each call.
func (i *image) instantiate(ctx context.Context, memory *linearMemory) (api.Module, error) {
	return i.runtime.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), i.code, instanceConfig)
}

// close frees the state. No instance of it may be left.
func (i *image) close() error {
	err := i.code.Close(i.base)
	if s := i.state.Load(); s != nil && s.memory != nil {
		err = errors.Join(err, s.memory.Close())
	}
	return err
}

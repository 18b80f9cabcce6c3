package host

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/sdk/abi"
)

// instance is one live sandbox. It belongs to one goroutine at a time.
type instance struct {
	image     *image
	module    api.Module
	memory    *linearMemory
	globals   globals
	units     api.MutableGlobal
	depth     api.MutableGlobal
	changed   api.MutableGlobal // nil where nothing can change beside memory and globals
	functions []*guestFunction  // that were called; to look one up costs more than to call it
	stack     int64             // bytes of native stack that it keeps while it is idle
	rest      rest
}

// call runs an export of type () -> i32, a command's _start or an initializer, and gives
// what it returned; where there is no such export it does nothing. It fails with
// errInterrupted, errFuel, errDepth, errStack, errOutputSize, *exitError or *trapError
// and never panics.
func (i *instance) call(ctx context.Context, inv *invocation, export string) (status int32, err error) {
	function := i.function(export)
	if function == nil {
		return 0, nil
	}
	inv.units, inv.running, inv.memory = i.units, function, i.memory
	inv.process.Sleep, inv.process.Await, inv.process.Pause = inv.asleep, inv.awaited, inv.paused
	i.units.Set(uint64(inv.meter.first(len(i.memory.Bytes()))))
	if t, ok := ctx.(*callTime); ok {
		t.guest = inv
	} else {
		ctx = context.WithValue(ctx, invocationKey{}, inv)
	}
	inv.context = ctx
	err = function.CallWithStack(ctx, inv.results[:])
	inv.running = nil
	inv.fuel = inv.meter.total(int64(i.units.Get()))
	if err != nil {
		return 0, i.image.guestError(err)
	}
	if !function.returns {
		return 0, nil
	}
	return api.DecodeI32(inv.results[0]), nil
}

// function finds an export, nil where there is none.
func (i *instance) function(export string) *guestFunction {
	for _, f := range i.functions {
		if f.export == export {
			return f
		}
	}
	found := i.module.ExportedFunction(export)
	if found == nil {
		return nil
	}
	f := &guestFunction{
		Function: found, export: export, stack: stackOf(found),
		returns: len(found.Definition().ResultTypes()) > 0,
	}
	i.functions = append(i.functions, f)
	return f
}

// reset puts the instance into the state of its image. If it fails, the instance must be
// closed.
func (i *instance) reset() error {
	if i.changed != nil && i.changed.Get() != 0 {
		return errChanged
	}
	if err := i.memory.Reset(); err != nil {
		return err
	}
	if !i.memory.settle(i.module.Memory()) {
		return errGrown
	}
	i.globals.restore()
	i.depth.Set(uint64(i.image.depth))
	i.stack = 0
	for n := len(i.functions) - 1; n >= 0; n-- {
		if size := i.functions[n].stackSize(); size > maxStack {
			i.functions = slices.Delete(i.functions, n, n+1)
		} else {
			i.stack += int64(size)
		}
	}
	return nil
}

// Why an instance cannot be used again.
var (
	errChanged = errors.New("the call changed a table or dropped a segment")
	errGrown   = errors.New("the call grew the memory to the module's own maximum")
)

// maxStack is the bytes of native stack that an idle instance may keep. wazero
// lets it grow with the depth of calls, and never shrinks it.
const maxStack = 256 << 10

// guestFunction is an export with its native stack, which is looked at each time that the
// function is interrupted.
type guestFunction struct {
	api.Function
	export  string
	returns bool
	stack   *[]byte // the slice that wazero keeps; nil where that cannot be known
}

// stackOf finds the native stack of a function: there is no other way to ask.
func stackOf(f api.Function) *[]byte {
	engine := reflect.Indirect(reflect.ValueOf(f))
	if engine.Kind() != reflect.Struct {
		return nil
	}
	stack := engine.FieldByName("stack")
	if stack.IsValid() && stack.Type() == reflect.TypeFor[[]byte]() && stack.CanAddr() {
		return (*[]byte)(unsafe.Pointer(stack.UnsafeAddr()))
	}
	return nil
}

// stackSize is the bytes of its native stack, 0 where that cannot be known.
func (f *guestFunction) stackSize() int {
	if f.stack == nil {
		return 0
	}
	return cap(*f.stack)
}

// coverStack charges the call for the native stack that the running function has
// grown to. It ends a guest for whose stack there is no memory.
func (inv *invocation) coverStack(module api.Module) {
	if inv.running == nil || inv.lease == nil {
		return
	}
	size := int64(inv.running.stackSize())
	if size <= firstStack || size <= inv.lease.stack {
		return
	}
	var linear int64
	if memory := module.Memory(); memory != nil {
		linear = int64(memory.Size())
	}
	if !inv.lease.coverStack(bytesOfStack*size, linear) {
		inv.refused = true
		panic(errStack)
	}
}

// discard closes the instance and notes why.
func (i *instance) discard(reason string) {
	i.image.tally.discard(reason)
	i.close()
}

// close frees the instance. What cannot be freed is lost: there is nobody who
// could do anything about it.
func (i *instance) close() {
	_ = i.module.Close(i.image.base)
	_ = i.memory.Close()
}

// empty is a new instance of the module, without its data, on which nothing ran.
func (i *image) empty(ctx context.Context, memory *linearMemory) (made *instance, err error) {
	defer func() {
		// wazero recovers what happens while a guest runs, but not while it makes
		// an instance, where an allocator that refuses is a panic.
		if r := recover(); r != nil {
			made, err = nil, newInstanceTrap(memory, r)
		}
	}()
	module, err := i.instantiate(ctx, memory)
	if err != nil {
		return nil, i.guestError(err)
	}
	return &instance{
		image: i, module: module, memory: memory, globals: globalsOf(module, i.globals),
		units: mutable(module, wasm.ExportUnits), depth: mutable(module, wasm.ExportDepth),
		changed: mutable(module, wasm.ExportChanged),
	}, nil
}

// initialize lays the module's data into an empty instance and runs what comes before
// the first call: its start function, and what a reactor exports for that.
func (i *instance) initialize(ctx context.Context, inv *invocation) error {
	if err := i.image.data.Lay(ctx, i.memory.Bytes()); err != nil {
		if ctx.Err() != nil {
			return errInterrupted
		}
		return err
	}
	if _, err := i.call(ctx, inv, wasm.ExportStart); err != nil || i.image.command() {
		return err
	}
	_, err := i.call(ctx, inv, abi.ExportInit)
	return err
}

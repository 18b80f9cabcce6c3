package host

import (
	"context"
	"runtime"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host/internal/wasm"
)

// A guest runs on a grant of units: the checks in its code count them down, and
// call the host when the grant is used up. The host then looks whether the call
// may continue, lets Go's scheduler and garbage collector have their turn, and
// grants more. A grant bounds how late a guest stops and how long a collection
// waits for it, and a guest has no influence on it but by the size of its memory.

// meter counts the units of one call.
type meter struct {
	limit   int64 // units that the call may use; 0: as many as it likes
	used    int64 // of earlier grants
	granted int64
}

// first is the grant with which a call begins that has so many bytes of memory.
func (m *meter) first(memory int) int64 {
	m.granted = m.clamp(wasm.Grant(memory))
	return m.granted
}

// next takes back a grant of which so many units are left, below zero as a rule,
// and gives the next one. ok is false when the call's fuel is used up.
func (m *meter) next(left int64, memory int) (grant int64, ok bool) {
	m.used += m.granted - left
	if m.limit > 0 && m.used > m.limit {
		m.granted = 0
		return 0, false
	}
	return m.first(memory), true
}

// clamp lets a grant end where the fuel does.
func (m *meter) clamp(grant int64) int64 {
	if m.limit > 0 {
		return min(grant, m.limit-m.used)
	}
	return grant
}

// total is the units that were used when so many of the last grant are left.
func (m *meter) total(left int64) int64 { return m.used + m.granted - left }

// provideInterrupt makes the function importable that the checks call.
func provideInterrupt(ctx context.Context, r wazero.Runtime) error {
	_, err := r.NewHostModuleBuilder(wasm.SandboxModule).
		NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(interrupt), []api.ValueType{api.ValueTypeI32}, nil).
		Export(wasm.ImportInterrupt).
		Instantiate(ctx)
	return err
}

// interrupt lets the guest continue or unwinds it.
func interrupt(ctx context.Context, module api.Module, stack []uint64) {
	if api.DecodeU32(stack[0]) == wasm.InterruptDepth {
		panic(errDepth) // the instance recovers it, as it does the others
	}
	inv := ctx.Value(invocationKey{}).(*invocation)
	units := inv.units
	grant, ok := inv.meter.next(int64(units.Get()), int(module.Memory().Size()))
	if !ok {
		units.Set(0)
		panic(errFuel)
	}
	units.Set(uint64(grant))
	if inv.over(ctx) {
		panic(errInterrupted)
	}
	inv.coverStack(module)
	if inv.lease != nil && inv.lease.pool.crowded.Load() {
		inv.leaveThread() // to yield from a thread of its own takes much longer
		runtime.Gosched() // wakes a processor if one is idle, which costs some microseconds
		inv.keepThread()
	}
}

// leaveThread is called before the goroutine of the call waits or yields, and keepThread
// before the guest continues.
func (inv *invocation) leaveThread() {
	if inv.memory != nil {
		inv.memory.Pause()
	}
}

func (inv *invocation) keepThread() {
	if inv.memory != nil {
		inv.memory.Resume()
	}
}

package host

import (
	"context"
	"runtime"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host/internal/wasm"
)

// A guest runs on a grant of units: the checks in its code count them down, one
// for about each instruction, and call the host when the grant is used up. The
// host then looks whether the call may go on, lets Go's scheduler and garbage
// collector have their turn, and grants more.
const (
	// slice is how long a grant is to last. It bounds how late a guest stops and
	// how long a collection waits for it.
	slice = 100 * time.Microsecond

	firstGrant = 100_000 // some 10 µs of usual code
	minGrant   = 1_000   // code that takes 200 ns for each unit
	maxGrant   = 20_000_000
)

// meter counts the units of one call. How they are granted depends on the
// machine, how many are used up does not.
type meter struct {
	limit   int64 // units that the call may use; 0: as many as it likes
	used    int64 // of earlier grants
	granted int64
	since   time.Time // of the grant
}

// first is the grant with which a call begins.
func (m *meter) first(now time.Time) int64 {
	m.granted, m.since = m.clamp(firstGrant), now
	return m.granted
}

// next takes back a grant of which so many units are left, below zero as a
// rule, and gives one that is likely to last for a slice. ok is false when the
// call's fuel is used up.
func (m *meter) next(left int64, now time.Time) (grant int64, ok bool) {
	last := m.granted - left
	m.used += last
	if m.limit > 0 && m.used > m.limit {
		m.granted = 0
		return 0, false
	}
	took := max(now.Sub(m.since), 1)
	m.granted = m.clamp(min(max(int64(float64(last)*float64(slice)/float64(took)), minGrant), maxGrant))
	m.since = now
	return m.granted, true
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

// interrupt lets the guest go on or unwinds it.
func interrupt(ctx context.Context, module api.Module, stack []uint64) {
	if api.DecodeU32(stack[0]) == wasm.InterruptDepth {
		panic(errDepth) // the instance recovers it, as it does the others
	}
	inv := ctx.Value(invocationKey{}).(*invocation)
	units := inv.units
	if units == nil { // the module's start function
		units = mutable(module, wasm.ExportUnits)
	}
	now := time.Now()
	grant, ok := inv.meter.next(int64(units.Get()), now)
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
		runtime.Gosched() // wakes a processor if one is idle, which costs some microseconds
	}
}

package wasi

import (
	"context"
	"io"
	"testing"
)

// newBenchGuest has a buffer of 64 bytes to write.
func newBenchGuest(b *testing.B, where string) *guest {
	process := &Process{Stdout: io.Discard, Nanotime: func() int64 { return 1 }, Walltime: func() (int64, int32) { return 1, 1 }, Sleep: func(int64) {}}
	g := compiledWorlds()[where].newGuest(b, withProcess(context.Background(), process), moduleConfig(process))
	g.put(atVectors, uint32(atData), uint32(64))
	return g
}

// loop calls a function through the guest, so the call into it is counted too.
func (g *guest) loop(b *testing.B, name string, params ...uint64) {
	f := g.module.ExportedFunction(name)
	stack := make([]uint64, max(1, len(params)))
	b.ReportAllocs()
	for b.Loop() {
		copy(stack, params)
		if err := f.CallWithStack(g.ctx, stack); err != nil || stack[0] != 0 {
			b.Fatal(stack[0], err)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, where := range []string{"ours", "theirs"} {
		b.Run(where, func(b *testing.B) { newBenchGuest(b, where).loop(b, "fd_write", 1, atVectors, 1, atResult) })
	}
}

func BenchmarkClock(b *testing.B) {
	for _, where := range []string{"ours", "theirs"} {
		b.Run(where, func(b *testing.B) { newBenchGuest(b, where).loop(b, "clock_time_get", 1, 0, atResult) })
	}
}

// BenchmarkCall is what a whole call costs that writes twice and looks at the
// time: a process of its own each.
func BenchmarkCall(b *testing.B) {
	g := newBenchGuest(b, "ours")
	write, clock := g.module.ExportedFunction("fd_write"), g.module.ExportedFunction("clock_time_get")
	var stack [4]uint64
	b.ReportAllocs()
	for b.Loop() {
		p := &Process{Stdout: io.Discard, Nanotime: func() int64 { return 1 }}
		ctx := withProcess(context.Background(), p)
		for range 2 {
			stack = [4]uint64{1, atVectors, 1, atResult}
			_ = write.CallWithStack(ctx, stack[:])
		}
		stack = [4]uint64{1, 0, atResult}
		_ = clock.CallWithStack(ctx, stack[:])
		p.Close()
	}
}

// A call that only writes and looks at the time allocates nothing but its
// process.
func TestHotPathAllocatesNothing(t *testing.T) {
	l := newLinear()
	copy(l.bytes()[8:], []byte{16, 0, 0, 0, 4, 0, 0, 0})
	write, clock := []uint64{1, 8, 1, 0}, []uint64{1, 0, 0}
	p := new(Process)
	allocations := testing.AllocsPerRun(100, func() {
		*p = Process{Stdout: io.Discard, Nanotime: func() int64 { return 1 }}
		if p.fdWrite(memory{l}, write)|p.clockTimeGet(memory{l}, clock) != 0 {
			t.Fatal("refused")
		}
		p.Close()
	})
	if allocations > 0 {
		t.Errorf("%v allocations", allocations)
	}
}

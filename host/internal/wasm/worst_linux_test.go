package wasm

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"golang.org/x/sys/unix"
)

var worstSeeds = flag.Int("worst.seeds", 40, "how many random guests are searched for the slowest one")

// worstYield bounds the CPU time for which a guest may run without calling the
// host.
const worstYield = timeFactor * 10 * time.Millisecond

// suspect is a guest that never ends, in which the search looks for instructions
// that take long and cost few units.
type suspect struct {
	name  string
	pages int // of memory
	file  []byte
}

// suspectLocals are the locals of a suspect's function: a random number, and a value of
// each type.
const suspectLocals = "\x06\x01\x7f\x01\x7f\x01\x7e\x01\x7d\x01\x7c\x01\x7b"

// Functions of a suspect. Those after the last one are as many as pages of code.
const (
	suspectRun    = iota
	suspectLeaf   // without a check
	suspectTree   // calls leaves
	suspectSink   // recursive: returns do work
	suspectChains // the first one of a chain that returns with work
)

func encoded(write func(w *writer)) string {
	var w writer
	write(&w)
	return string(w.out)
}

func i32Const(n int) string { return encoded(func(w *writer) { w.i32Const(int64(int32(n))) }) }

// nextRandom leaves a random number that looks at the last value, so that the
// processor cannot run ahead.
func nextRandom() string {
	return "\x20\x00\x20\x01\x6a" + i32Const(1664525) + "\x6c" + i32Const(1013904223) + "\x6a\x22\x00"
}

// address leaves a random address below 2^bits, a byte before the end of a page
// when it straddles two.
func address(bits int, straddles bool) string {
	shift, mask := nextRandom()+i32Const(32-bits)+"\x76", i32Const((1<<bits-1)&^0xfff)
	if straddles {
		return shift + mask + "\x71" + i32Const(0xfff) + "\x72"
	}
	return shift + mask + "\x71"
}

// accesses is loads and stores at random addresses, or one page after the other.
func accesses(random *rand.Rand, bits int) string {
	straddles := random.IntN(2) == 0
	at := address(bits, straddles)
	if random.IntN(2) == 0 { // each page in turn, without much computing
		at = "\x20\x01" + i32Const(4096) + "\x6a" + i32Const(1<<bits-1-8) + "\x71\x22\x01"
		if straddles {
			at += i32Const(4092) + "\x72"
		}
	}
	switch random.IntN(6) {
	case 0:
		return at + "\x28\x00\x00\x21\x01"
	case 1:
		return at + "\x29\x00\x00\x1a"
	case 2:
		return at + "\x20\x01\x36\x00\x00"
	case 3:
		return at + "\x20\x02\x37\x00\x00"
	case 4:
		return at + "\x20\x05\xfd\x0b\x00\x00"
	}
	return at + "\xfd\x00\x00\x00\x21\x05"
}

// arithmetic is an instruction on the last result of its kind, again and again.
// Not all of them are valid: those are not looked at.
func arithmetic(random *rand.Rand) string {
	unary := func(in int, op string, out int) string { return fmt.Sprintf("\x20%c%s\x21%c", in, op, out) }
	binary := func(in int, op string, out int) string { return fmt.Sprintf("\x20%c\x20%c%s\x21%c", in, in, op, out) }
	var op string
	switch random.IntN(4) {
	case 0: // the slowest ones on most machines
		return [...]string{
			"\x20\x01\x41\x03\x6d\x41\x07\x6a\x21\x01", "\x20\x02\x42\x03\x7f\x42\x7f\x85\x21\x02",
			"\x20\x02\x42\x03\x81\x42\x7f\x85\x21\x02", "\x20\x03\x91\x21\x03", "\x20\x04\x9f\x21\x04", binary(4, "\xa3", 4),
		}[random.IntN(6)]
	case 1:
		op = "\xfd" + string(uleb(0x23+random.IntN(0xff-0x23)))
	case 2:
		op = "\xfc" + string(rune(random.IntN(8)))
	default:
		op = string([]byte{byte(opI32Eqz + random.IntN(opI64Extend32-opI32Eqz+1))})
	}
	in, out := 1+random.IntN(5), 1+random.IntN(5)
	if random.IntN(2) == 0 {
		return unary(in, op, out)
	}
	return binary(in, op, out)
}

// control is calls, branches and operations on tables.
func control(random *rand.Rand, functions int) string {
	indirect := func(first, count int) string {
		return nextRandom() + i32Const(8) + "\x76" + i32Const(count) + "\x70" + i32Const(first) + "\x6a\x11\x00\x00"
	}
	switch random.IntN(12) {
	case 0:
		return fmt.Sprintf("\x10%c", suspectLeaf)
	case 1:
		return fmt.Sprintf("\x10%c", suspectTree)
	case 2:
		return fmt.Sprintf("\x10%c", suspectSink)
	case 3:
		return fmt.Sprintf("\x10%c", suspectChains)
	case 4:
		return indirect(suspectLeaf, 1)
	case 5:
		return indirect(suspectChains, functions-suspectChains)
	case 6: // pays for what it skips
		return "\x02\x40\x41\x01\x0d\x00" + strings.Repeat("\x20\x01\x41\x01\x6a\x21\x01", 500) + "\x0b"
	case 7:
		return "\x02\x40\x02\x40\x02\x40" + nextRandom() + i32Const(28) + "\x76\x0e\x02\x00\x01\x02\x0b\x20\x01\x41\x01\x6a\x21\x01\x0b\x20\x01\x41\x02\x6a\x21\x01\x0b"
	case 8:
		return fmt.Sprintf("\xd2%c\x1a", suspectLeaf)
	case 9:
		return i32Const(0) + "\x40\x00\x1a"
	case 10:
		return "\xd0\x70\x41\x00\xfc\x0f\x01\x1a" + "\x41\x01\x25\x01\x1a" + "\x41\x01\xd0\x70\x26\x01"
	}
	n := []int{0, 1, 100, 10_000, 1_000_000}[random.IntN(5)]
	return [...]string{
		"\x41\x00\xd0\x70" + i32Const(n) + "\xfc\x11\x01",
		"\x41\x00\x41\x01" + i32Const(max(n-1, 0)) + "\xfc\x0e\x01\x01",
		"\x41\x00\x41\x00" + i32Const(min(n, 2)) + "\xfc\x0c\x00\x01",
	}[random.IntN(3)]
}

// ranges is operations on ranges of all lengths.
func ranges(random *rand.Rand, bits int) string {
	n := i32Const(1<<random.IntN(bits) - random.IntN(2))
	switch random.IntN(3) {
	case 0:
		return address(bits-1, true) + "\x41\x07" + n + "\xfc\x0b\x00"
	case 1:
		return "\x41\x00\x41\x07" + n + "\xfc\x0b\x00"
	}
	return address(bits-1, true) + address(bits-1, true) + n + "\xfc\x0a\x00\x00"
}

// newSuspect puts together a guest.
func newSuspect(seed uint64) suspect {
	random := rand.New(rand.NewPCG(seed, 7))
	bits := 20 + random.IntN(9) // 1 to 256 MiB
	functions := suspectChains + 1 + 1<<random.IntN(11)
	statement := func() string {
		switch random.IntN(4) {
		case 0:
			return accesses(random, bits)
		case 1:
			return arithmetic(random)
		case 2:
			return ranges(random, bits)
		}
		return control(random, functions)
	}
	var body, what string
	for range 1 + random.IntN(3) {
		one, times := statement(), 1<<random.IntN(8)
		body += strings.Repeat(one, times)
		what += fmt.Sprintf(", %d × %x", times, one[:min(len(one), 40)])
	}
	work := strings.Repeat(accesses(random, bits), random.IntN(40))
	entries := []entry{
		function("\x00", "\x00", suspectLocals, "\x03\x40"+body+"\x0c\x00\x0b"),
		function("\x00", "\x00", suspectLocals, strings.Repeat(accesses(random, bits), random.IntN(4))),
		function("\x00", "\x00", suspectLocals, strings.Repeat(fmt.Sprintf("\x10%c", suspectLeaf), random.IntN(200))),
		function("\x00", "\x00", suspectLocals, // down to a depth that a global counts
			"\x23\x00\x41\x01\x6a\x24\x00\x23\x00"+i32Const(testDepth-10)+"\x48\x04\x40"+fmt.Sprintf("\x10%c", suspectSink)+
				"\x05\x41\x00\x24\x00\x0b"+work),
	}
	for f := suspectChains; f < functions; f++ {
		next := ""
		if f+1 < functions {
			next = "\x10" + string(uleb(f+1))
		}
		entries = append(entries, function("\x00", "\x00", suspectLocals, next+work))
	}
	pages := 1 << (bits - 16)
	elements := append(uleb(functions), func() (list []byte) {
		for f := range functions {
			list = append(list, uleb(f)...)
		}
		return
	}()...)
	return suspect{fmt.Sprintf("seed %d%s", seed, what), pages, programWith(map[byte][]byte{
		sectionMemory:  append([]byte("\x01\x00"), uleb(pages)...),
		sectionGlobal:  []byte("\x01\x7f\x01\x41\x00\x0b"),
		sectionTable:   append(append([]byte("\x02\x70\x00"), uleb(functions)...), append([]byte("\x70\x00"), uleb(1<<16-functions)...)...),
		sectionElement: append([]byte("\x01\x00\x41\x00\x0b"), elements...),
	}, entries...)}
}

// fileMemory is memory like that of the host's instances: a private mapping of a
// file, whose pages are copied when they are first written to.
type fileMemory struct{ bytes []byte }

func newFileMemory(t *testing.T, size int) *fileMemory {
	t.Helper()
	fd, err := unix.MemfdCreate("worst", unix.MFD_CLOEXEC)
	if err == nil {
		defer unix.Close(fd)
		err = unix.Ftruncate(fd, int64(size))
	}
	var m fileMemory
	if err == nil {
		m.bytes, err = unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &m
}

func (m *fileMemory) Allocate(_, _ uint64) experimental.LinearMemory { return m }
func (m *fileMemory) Free()                                          { _ = unix.Munmap(m.bytes) }

func (m *fileMemory) Reallocate(size uint64) []byte {
	if size > uint64(len(m.bytes)) {
		return nil
	}
	return m.bytes[:size]
}

// watch notes how long a guest runs from one call of the host to the next, in CPU
// time of its thread.
type watch struct {
	began, last, longest time.Duration
	budget               time.Duration
}

func threadTime() time.Duration {
	var now unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &now)
	return time.Duration(now.Nano())
}

func (w *watch) interrupt(_ context.Context, guest api.Module, stack []uint64) {
	now := threadTime()
	w.longest, w.last = max(w.longest, now-w.last), now
	if now-w.began > w.budget || api.DecodeU32(stack[0]) == InterruptDepth {
		panic(errUnwound)
	}
	mutable(guest, ExportUnits).Set(uint64(Grant(int(guest.Memory().Size()))))
	w.last = threadTime()
}

// longestRun gives the longest time for which a guest ran without calling the
// host, and false for one that is not valid.
func longestRun(t *testing.T, s suspect, budget time.Duration) (time.Duration, bool) {
	ctx := context.Background()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	defer r.Close(ctx)
	w := &watch{budget: budget}
	if _, err := r.NewHostModuleBuilder(SandboxModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(w.interrupt), []api.ValueType{api.ValueTypeI32}, nil).
		Export(ImportInterrupt).Instantiate(ctx); err != nil {
		t.Fatal(err)
	}
	m, err := Decode(s.file, Options{})
	if err != nil {
		return 0, false
	}
	rewritten := m.Rewrite(RewriteOptions{Units: LeastGrant, Depth: testDepth})
	code, err := r.CompileModule(ctx, rewritten.Binary)
	if err != nil {
		return 0, false
	}
	memory := newFileMemory(t, s.pages<<16)
	guest, err := r.InstantiateModule(experimental.WithMemoryAllocator(ctx, memory), code, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		t.Fatal(s.name, err)
	}
	run := guest.ExportedFunction("0")
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	w.began = threadTime()
	w.last = w.began
	_, err = run.Call(ctx)
	if !errors.Is(err, errUnwound) { // a trap of its own
		w.longest = max(w.longest, threadTime()-w.last)
	}
	if err != nil && !errors.Is(err, errUnwound) && !strings.Contains(err.Error(), "wasm error") {
		t.Fatal(s.name, err)
	}
	return w.longest, true
}

// TestGuestsYield searches for the guest that runs longest without a call of the
// host. It is not parallel: it measures.
func TestGuestsYield(t *testing.T) {
	var longest time.Duration
	valid := 0
	for seed := range uint64(*worstSeeds) {
		s := newSuspect(seed)
		took, ok := longestRun(t, s, 100*time.Millisecond)
		if !ok {
			continue
		}
		for tries := 0; took > worstYield/2; tries++ { // other programs use the caches, too
			if tries >= 4 && took <= worstYield || tries >= 50 {
				break
			}
			again, _ := longestRun(t, s, 100*time.Millisecond)
			took = min(took, again)
		}
		valid++
		if took > longest {
			longest = took
			t.Logf("%s: %d MiB of memory, %d bytes: %v", s.name, s.pages>>4, len(s.file), took)
		}
		if took > worstYield {
			t.Errorf("%s: %v of CPU time without a call of the host, bound %v", s.name, took, worstYield)
		}
	}
	if valid < *worstSeeds/4 {
		t.Errorf("%d of %d guests are valid", valid, *worstSeeds)
	}
}

package wasi

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero/api"
)

// linear is a memory without an instance, in the middle of bytes that nobody may
// touch.
type linear struct {
	api.Memory
	all []byte
}

const (
	linearSize = 8 << 10
	guardSize  = 256
)

func newLinear() *linear {
	l := &linear{all: bytes.Repeat([]byte{0xa5}, guardSize+linearSize+guardSize)}
	clear(l.bytes())
	return l
}

func (l *linear) bytes() []byte { return l.all[guardSize : guardSize+linearSize] }

// Read gives a slice that ends with the memory, not with what was asked for: so
// that whoever appends to it is found out.
func (l *linear) Read(offset, n uint32) ([]byte, bool) {
	if uint64(offset)+uint64(n) > linearSize {
		return nil, false
	}
	return l.bytes()[offset:][:n], true
}

func (l *linear) intact() bool {
	before, after := l.all[:guardSize], l.all[guardSize+linearSize:]
	return bytes.Count(before, []byte{0xa5}) == guardSize && bytes.Count(after, []byte{0xa5}) == guardSize
}

// program is bytes that state what to call: the number of the function, then its
// arguments, each of which begins with a byte that defines how it is to be read.
type program struct{ rest []byte }

func (p *program) next(n int) []byte {
	b := make([]byte, n)
	p.rest = p.rest[copy(b, p.rest):]
	return b
}

// value makes numbers that are worth trying likely.
func (p *program) value() uint64 {
	switch how := p.next(1)[0]; how % 8 {
	case 0, 1:
		return uint64(how / 8) // small: a descriptor, a length, flags
	case 2, 3:
		return uint64(binary.LittleEndian.Uint16(p.next(2))) % linearSize
	case 4:
		return uint64(linearSize) - uint64(how/8)
	case 5:
		return uint64(int64(-1) - int64(how/8)) // also 32 bits of it
	case 6:
		return uint64(binary.LittleEndian.Uint32(p.next(4)))
	default:
		return binary.LittleEndian.Uint64(p.next(8))
	}
}

// step calls one function. It fails on a panic other than that of proc_exit.
func (p *program) step(process *Process, m memory) (e errno, name string) {
	list := functions()
	f := list[int(p.next(1)[0])%len(list)]
	params := make([]uint64, max(1, len(f.params)))
	for i := range f.params {
		params[i] = p.value()
		if f.params[i] == 'i' {
			params[i] |= uint64(p.next(1)[0]&1) << 40 // the upper half of an i32 is not defined
		}
	}
	defer func() {
		if r := recover(); r != nil {
			if _, ok := r.(*Exit); !ok {
				panic(r)
			}
		}
	}()
	return f.call(process, m, params), f.name
}

func newFuzzProcess() (*Process, *memFS) {
	files := newMemFS("/a", "/dir/", "/dir/b", "/link->dir/b")
	files.limit = 4 << 10
	var clock int64
	return &Process{
		Args: []string{"program", "x"}, Env: []string{"A=1"}, Stdin: strings.NewReader(strings.Repeat("input", 1000)),
		Random:   rand.NewChaCha8([32]byte{}),
		Walltime: func() (int64, int32) { clock++; return clock, 0 }, Nanotime: func() int64 { clock++; return clock },
		FS: files, MaxFiles: 8,
	}, files
}

// play runs a whole program and checks what must hold whatever it did.
func play(t testing.TB, data []byte) {
	process, files := newFuzzProcess()
	l := newLinear()
	copy(l.bytes(), "a\x00dir\x00dir/b\x00link\x00../..\x00new")
	copy(l.bytes()[1024:], data) // lists of buffers and subscriptions
	p := &program{data}
	for steps := 0; len(p.rest) > 0 && steps < 200; steps++ {
		e, name := p.step(process, memory{l})
		if !l.intact() {
			t.Fatalf("%s wrote outside of the memory", name)
		}
		if e > 76 {
			t.Fatalf("%s answered %d, which is no error number", name, e)
		}
		if open := process.table.opened; open > 8 || files.open > 9 || files.open < open {
			t.Fatalf("after %s %d descriptors and %d files are open", name, open, files.open)
		}
		if n := len(process.table.slots); n > 4+8 {
			t.Fatalf("after %s the table has %d slots", name, n)
		}
	}
	open := process.table.opened
	if got := process.Close(); got != open || files.open != 0 {
		t.Fatalf("%d were open, %d were closed, %d files still are", open, got, files.open)
	}
}

func FuzzCalls(f *testing.F) {
	f.Add([]byte{})
	for seed := range uint64(30) {
		data := make([]byte, 600)
		rng := rand.NewChaCha8([32]byte{byte(seed)})
		_, _ = rng.Read(data)
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { play(t, data) })
}

func TestRandomCalls(t *testing.T) {
	t.Parallel()
	for seed := range 1000 {
		data := make([]byte, 1000)
		_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), 1}).Read(data)
		play(t, data)
	}
}

// TestAllocationsAreBounded does not run beside others: it measures what all of
// the process allocates.
func TestAllocationsAreBounded(t *testing.T) {
	rng := rand.NewChaCha8([32]byte{2})
	var before, after runtime.MemStats
	for _, f := range functions() {
		for range 100 {
			process, _ := newFuzzProcess()
			l := newLinear()
			_, _ = rng.Read(l.bytes()) // many buffers, most of them outside of the memory
			params := make([]uint64, max(1, len(f.params)))
			for i := range params {
				params[i] = []uint64{0, 3, 1 << 12, linearSize, 1<<31 - 1, 1<<32 - 1}[rng.Uint64()%6]
			}
			process.descriptors()
			runtime.ReadMemStats(&before)
			err := protect(func() { f.call(process, memory{l}, params) })
			runtime.ReadMemStats(&after)
			if err != nil && f.name != "proc_exit" {
				t.Fatalf("%s%v: %v", f.name, params, err)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > 64<<10 {
				t.Fatalf("%s%v allocated %d bytes", f.name, params, n)
			}
		}
	}
}

func protect(call func()) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("panic")
		}
	}()
	call()
	return nil
}

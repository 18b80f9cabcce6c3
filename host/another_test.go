package host_test

import (
	"bytes"
	"encoding/binary"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// interpreter is a module of the shape of a Python runtime, 13 MB: 10 MB in 24 000 data
// segments, 8 000 functions, of which 7 000 are in the table. Its function writes to some
// pages and returns.
func interpreter() []byte {
	const (
		segments, apart, size = 24_000, 456, 424
		functions, listed     = 8_000, 7_000
		steps, pages          = 40, 240
	)
	step := []byte{0x20, 0, opI32Const, 3, opI32Add, 0x20, 0, 0x6c, 0x21, 0} // local 0 = (local 0 + 3) * local 0
	body := concat([]byte{0}, bytes.Repeat(step, steps), []byte{0x20, 0, opEnd})
	body = concat(uleb(uint64(len(body))), body)
	run := []byte{0}
	for page := range 30 {
		run = concat(run, number(page*64<<10), number(1), []byte{0x36, 2, 0})
	}
	run = concat(run, []byte{opI32Const, 0, opEnd})
	var data, declared, code, indices [][]byte
	content := make([]byte, size)
	for i := range segments {
		binary.LittleEndian.PutUint32(content, uint32(i)*2_654_435_761)
		content[size-1] = byte(i)
		data = append(data, segmentAt(i*apart, content))
	}
	for range functions {
		declared, code = append(declared, []byte{1}), append(code, body)
	}
	declared, code = append(declared, []byte{0}), append(code, concat(uleb(uint64(len(run))), run))
	for f := range listed {
		indices = append(indices, uleb(uint64(f)))
	}
	return concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(secType, [][]byte{signature{results: []byte{i32}}.bytes(), signature{[]byte{i32}, []byte{i32}}.bytes()}),
		section(secFunction, declared),
		section(secTable, [][]byte{concat([]byte{0x70, 0}, uleb(listed+1))}),
		section(secMemory, [][]byte{concat([]byte{0}, uleb(pages))}),
		section(secGlobal, [][]byte{{i32, 1, opI32Const, 0, opEnd}}),
		section(secExport, [][]byte{concat(name("memory"), []byte{2, 0}), concat(name("run"), []byte{0}, uleb(functions))}),
		section(secElement, [][]byte{concat([]byte{0, opI32Const, 1, opEnd}, uleb(listed), concat(indices...))}),
		section(secCode, code),
		section(secData, data))
}

// TestDataAndStartAreThereOnce: whether a call gets the first instance, another one in its
// state, or one of its own, it finds the data segments, and what the start function has made
// of them.
func TestDataAndStartAreThereOnce(t *testing.T) {
	t.Parallel()
	at := number(7)
	value := concat(at, []byte{0x2d, 0, 0}) // i32.load8_u
	count := concat(number(0), []byte{opGlobalGet, 0}, number(1), []byte{opI32Add, opGlobalSet, 0, opDrop})
	p := program{pages: 1, start: 1, data: [][]byte{segmentAt(5, []byte("abcd")), segmentAt(7, []byte{40})}}
	p.functions = []functionEntry{
		{"run", taskFunction, concat(at, value, number(8), []byte{opI32Add, 0x3a, 0, 0}, value, []byte{opGlobalGet, 0, opI32Add})},
		{"", signature{}, concat(count, at, value, number(2), []byte{opI32Add, 0x3a, 0, 0})},
	}
	for _, engine := range []host.Engine{host.Compiler, host.Interpreter} {
		for _, fresh := range []bool{false, true} {
			for _, idle := range []int{-1, 1} {
				p.vector = fresh
				h := newHost(t, host.Config{Engine: engine, Idle: idle})
				digest := loadBytes(t, h, p.bytes())
				for range 4 {
					wantFailure(t, invoke(t, h, callOf(digest, "run", "null")), run.OutcomeFailed, "status_51")
				}
				made := int64(1)
				if idle < 0 || fresh {
					made = 4
				}
				if got := statsOf(t, h); got.Made < made || got.Made > made+1 {
					t.Errorf("engine %d, fresh %t, idle %d: %+v", engine, fresh, idle, got)
				}
			}
		}
	}
}

// TestInstancesThatCannotBegin fail in each call, and in the same words.
func TestInstancesThatCannotBegin(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	trapping := noop()
	trapping.start, trapping.functions = 1, append(trapping.functions, functionEntry{"", signature{}, []byte{opUnreachable}})
	beyond := noop()
	beyond.data = [][]byte{segmentAt(0, []byte("a")), segmentAt(1<<16, []byte("b"))}
	for want, p := range map[string]program{"unreachable": trapping, "data[1]: out of bounds memory access": beyond} {
		digest := loadBytes(t, h, p.bytes())
		for range 2 {
			if f := wantFailure(t, invoke(t, h, callOf(digest, "run", "null")), run.OutcomeTrapped, run.CodeTrap); !strings.Contains(f.Message, want) {
				t.Errorf("%q does not mention %q", f.Message, want)
			}
		}
	}
}

// segmentAt is an active data segment.
func segmentAt(start int, content []byte) []byte {
	return concat([]byte{0}, number(start), []byte{opEnd}, uleb(uint64(len(content))), content)
}

// BenchmarkAnother makes further instances of a module, and closes them.
func BenchmarkAnother(b *testing.B) {
	for _, bb := range []struct {
		name string
		path func() string
	}{
		{"noop", func() string { return writeFile(b, "noop.wasm", noop().bytes()) }},
		{"go", func() string { return guest(b, "tasks") }},
		{"python", func() string { return writeFile(b, "python.wasm", interpreter()) }},
	} {
		b.Run(bb.name, func(b *testing.B) {
			h := newHost(b, host.Config{})
			digest := load(b, h, bb.path())
			err := host.WithPlace(b.Context(), h, digest, func(another func() error) {
				b.ReportAllocs()
				for b.Loop() {
					if err := another(); err != nil {
						b.Fatal(err)
					}
				}
			})
			if err != nil {
				b.Fatal(err)
			}
		})
	}
}

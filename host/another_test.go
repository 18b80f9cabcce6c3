package host_test

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/flowhost/flowhost/host"
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
		run = concat(run, []byte{opI32Const}, sleb(int64(page)*64<<10), []byte{opI32Const, 1, 0x36, 2, 0})
	}
	run = concat(run, []byte{opI32Const, 0, opEnd})
	var data, declared, code, indices [][]byte
	content := make([]byte, size)
	for i := range segments {
		binary.LittleEndian.PutUint32(content, uint32(i)*2_654_435_761)
		content[size-1] = byte(i)
		data = append(data, concat([]byte{0, opI32Const}, sleb(int64(i)*apart), []byte{opEnd}, uleb(size), content))
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
		section(4, [][]byte{concat([]byte{0x70, 0}, uleb(listed+1))}),
		section(secMemory, [][]byte{concat([]byte{0}, uleb(pages))}),
		section(secGlobal, [][]byte{{i32, 1, opI32Const, 0, opEnd}}),
		section(secExport, [][]byte{concat(name("memory"), []byte{2, 0}), concat(name("run"), []byte{0}, uleb(functions))}),
		section(9, [][]byte{concat([]byte{0, opI32Const, 1, opEnd}, uleb(listed), concat(indices...))}),
		section(secCode, code),
		section(11, data))
}

// sleb is a number in signed LEB128.
func sleb(n int64) (b []byte) {
	for n < -64 || n > 63 {
		b = append(b, byte(n)|0x80)
		n >>= 7
	}
	return append(b, byte(n)&0x7f)
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

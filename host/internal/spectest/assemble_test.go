package spectest

import (
	"encoding/binary"
	"math"
	"slices"
)

// environment is the module "spectest" that the suite's modules import: globals,
// a table and a memory of given sizes, and functions that take values and do
// nothing, instead of printing them.
func environment() []byte {
	const i32, i64, f32, f64 = 0x7f, 0x7e, 0x7d, 0x7c
	f32Bits := binary.LittleEndian.AppendUint32(nil, math.Float32bits(666.6))
	f64Bits := binary.LittleEndian.AppendUint64(nil, math.Float64bits(666.6))
	number := leb(666)
	prints := []struct {
		name   string
		params []byte
	}{
		{"print", nil}, {"print_i32", []byte{i32}}, {"print_i64", []byte{i64}}, {"print_f32", []byte{f32}},
		{"print_f64", []byte{f64}}, {"print_i32_f32", []byte{i32, f32}}, {"print_f64_f64", []byte{f64, f64}},
	}
	exports := [][]byte{
		export("table", 1, 0), export("memory", 2, 0),
		export("global_i32", 3, 0), export("global_i64", 3, 1), export("global_f32", 3, 2), export("global_f64", 3, 3),
	}
	var types, functions, bodies [][]byte
	for i, p := range prints {
		types = append(types, slices.Concat([]byte{0x60}, leb(len(p.params)), p.params, []byte{0}))
		functions = append(functions, leb(i))
		bodies = append(bodies, []byte{2, 0, 0x0b})
		exports = append(exports, export(p.name, 0, i))
	}
	return slices.Concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(1, types...), section(3, functions...),
		section(4, []byte{0x70, 1, 10, 20}), section(5, []byte{1, 1, 2}),
		section(6,
			slices.Concat([]byte{i32, 0, 0x41}, number, []byte{0x0b}),
			slices.Concat([]byte{i64, 0, 0x42}, number, []byte{0x0b}),
			slices.Concat([]byte{f32, 0, 0x43}, f32Bits, []byte{0x0b}),
			slices.Concat([]byte{f64, 0, 0x44}, f64Bits, []byte{0x0b})),
		section(7, exports...), section(10, bodies...))
}

func export(name string, kind byte, index int) []byte {
	return slices.Concat(leb(len(name)), []byte(name), []byte{kind}, leb(index))
}

func section(id byte, entries ...[]byte) []byte {
	content := append(leb(len(entries)), slices.Concat(entries...)...)
	return slices.Concat([]byte{id}, leb(len(content)), content)
}

// leb is n in LEB128, with a last byte that is right for signed numbers as well.
func leb(n int) []byte {
	encoded := binary.AppendUvarint(nil, uint64(n))
	if last := len(encoded) - 1; encoded[last]&0x40 != 0 {
		encoded[last] |= 0x80
		encoded = append(encoded, 0)
	}
	return encoded
}

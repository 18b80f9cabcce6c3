package host_test

import (
	"encoding/binary"
	"slices"
)

// Value types, instructions and section ids of the binary format.
const (
	i32, i64, v128 = 0x7f, 0x7e, 0x7b

	opUnreachable, opLoop, opEnd, opBr, opCall, opDrop = 0x00, 0x03, 0x0b, 0x0c, 0x10, 0x1a
	opGlobalGet, opGlobalSet, opI32Const, opI32Add     = 0x23, 0x24, 0x41, 0x6a
	opMemoryGrow, noBlockType                          = 0x40, 0x40

	secType, secImport, secFunction, secTable, secMemory, secGlobal = 1, 2, 3, 4, 5, 6
	secExport, secStart, secElement, secCode, secData               = 7, 8, 9, 10, 11
)

var (
	taskFunction = signature{results: []byte{i32}}
	wasiFunction = signature{}
)

type signature struct{ params, results []byte }

// program is a small module that a test puts together by hand. It exports its
// memory, unless noMemory is set, and has one mutable global.
type program struct {
	imports   []importEntry
	functions []functionEntry
	pages     uint64 // of memory at the start
	noMemory  bool
	vector    bool   // it has a global of which no image can be made
	start     uint64 // index of the function that is run first; 0: none
	data      [][]byte
}

type importEntry struct {
	module, name string
	typ          signature
}

type functionEntry struct {
	export string
	typ    signature
	body   []byte // without the final end
}

func (p program) bytes() []byte {
	var types, imports, functions, exports, code [][]byte
	for _, i := range p.imports {
		imports = append(imports, concat(name(i.module), name(i.name), []byte{0}, uleb(uint64(len(types)))))
		types = append(types, i.typ.bytes())
	}
	for n, f := range p.functions {
		functions = append(functions, uleb(uint64(len(types))))
		types = append(types, f.typ.bytes())
		if f.export != "" {
			exports = append(exports, concat(name(f.export), []byte{0}, uleb(uint64(len(p.imports)+n))))
		}
		body := concat([]byte{0}, f.body, []byte{opEnd})
		code = append(code, concat(uleb(uint64(len(body))), body))
	}
	var memories [][]byte
	if !p.noMemory {
		memories = [][]byte{concat([]byte{0}, uleb(p.pages))}
		exports = append(exports, concat(name("memory"), []byte{2, 0}))
	}
	globals := [][]byte{{i32, 1, opI32Const, 0, opEnd}}
	if p.vector {
		globals = append(globals, concat([]byte{v128, 1, 0xfd, 12}, make([]byte, 16), []byte{opEnd}))
	}
	var start []byte
	if p.start > 0 {
		start = concat([]byte{secStart}, uleb(uint64(len(uleb(p.start)))), uleb(p.start))
	}
	return concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(secType, types), section(secImport, imports), section(secFunction, functions),
		section(secMemory, memories), section(secGlobal, globals), section(secExport, exports), start, section(secCode, code), section(secData, p.data))
}

func (s signature) bytes() []byte {
	return concat([]byte{0x60}, uleb(uint64(len(s.params))), s.params, uleb(uint64(len(s.results))), s.results)
}

// task is a program with one function, run, of that body.
func task(body ...byte) program {
	return program{pages: 1, functions: []functionEntry{{"run", taskFunction, body}}}
}

// noop returns 0 and does nothing.
func noop() program { return task(opI32Const, 0) }

// withCustomSection appends a custom section to a module.
func withCustomSection(module []byte, title, content string) []byte {
	body := concat(name(title), []byte(content))
	return concat(module, []byte{0}, uleb(uint64(len(body))), body)
}

func section(id byte, entries [][]byte) []byte {
	if len(entries) == 0 {
		return nil
	}
	body := concat(uleb(uint64(len(entries))), concat(entries...))
	return concat([]byte{id}, uleb(uint64(len(body))), body)
}

func name(s string) []byte { return concat(uleb(uint64(len(s))), []byte(s)) }

func uleb(v uint64) []byte { return binary.AppendUvarint(nil, v) }

func concat(parts ...[]byte) []byte { return slices.Concat(parts...) }

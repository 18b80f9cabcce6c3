package hostile

import (
	"encoding/binary"
	"slices"
)

// Value types.
const (
	i32, i64, f64 byte = 0x7f, 0x7e, 0x7c
	funcref       byte = 0x70
)

// code is a piece of a function's body.
type code = []byte

// Instructions without immediates, or with fixed ones.
var (
	unreachable = code{0x00}
	end         = code{0x0b}
	block       = code{0x02, 0x40} // without results
	loop        = code{0x03, 0x40}
	ifThen      = code{0x04, 0x40}
	ret         = code{0x0f}
	drop        = code{0x1a}
	load        = code{0x28, 2, 0} // i32
	load64      = code{0x29, 3, 0}
	store       = code{0x36, 2, 0} // i32
	memorySize  = code{0x3f, 0}
	memoryGrow  = code{0x40, 0}
	eqz         = code{0x45} // i32
	ne          = code{0x47} // i32
	ltU         = code{0x49} // i32
	ne64        = code{0x52}
	add         = code{0x6a} // i32
	add64       = code{0x7c}
	nullFunc    = code{0xd0, funcref}
	memoryCopy  = code{0xfc, 10, 0, 0}
	memoryFill  = code{0xfc, 11, 0}
	tableGrow   = code{0xfc, 15, 0} // of table 0, as are those that follow
	tableSize   = code{0xfc, 16, 0}
	tableFill   = code{0xfc, 17, 0}
	tableCopy   = code{0xfc, 14, 0, 0}
)

func seq(parts ...code) code { return slices.Concat(parts...) }

func op(opcode byte, index int) code { return append(code{opcode}, uleb(index)...) }

func br(depth int) code     { return op(0x0c, depth) }
func brIf(depth int) code   { return op(0x0d, depth) }
func call(f int) code       { return op(0x10, f) }
func get(local int) code    { return op(0x20, local) }
func set(local int) code    { return op(0x21, local) }
func tee(local int) code    { return op(0x22, local) }
func global(g int) code     { return op(0x23, g) }
func setGlobal(g int) code  { return op(0x24, g) }
func number(n int) code     { return append(code{0x41}, sleb(int64(int32(n)))...) }
func number64(n int64) code { return append(code{0x42}, sleb(n)...) }

// callIndirect calls entry n of table 0, whose function has the type of function f.
func callIndirect(n, f int) code { return seq(number(n), op(0x11, f), code{0}) }

func memoryInit(segment int) code { return append(op(0xfc, 8), append(uleb(segment), 0)...) }
func dataDrop(segment int) code   { return append(op(0xfc, 9), uleb(segment)...) }
func tableInit(segment int) code  { return append(op(0xfc, 12), append(uleb(segment), 0)...) }
func elemDrop(segment int) code   { return append(op(0xfc, 13), uleb(segment)...) }

// forever repeats the body without an end.
func forever(body ...code) code { return seq(loop, seq(body...), br(0), end, unreachable) }

// upTo repeats the body for n of a local from its value below the limit, by steps.
func upTo(local, limit, step int, body ...code) code {
	return seq(loop, seq(body...), get(local), number(step), add, tee(local), number(limit), ltU, brIf(0), end)
}

// guest is a module put together by hand. Function indices count imports first;
// each function has a type of its own with the same index.
type guest struct {
	imports   []imported
	functions []function
	pages     int // of memory, which is exported; 0 is one
	table     *bounds
	globals   []code // type, mutability, initial value
	elements  []code
	data      []code
	exports   []code // beside functions and memory
	start     int    // function that is run when an instance is made; 0: none, import or not
	custom    []code
}

type imported struct {
	module, name string
	kind         signature
}

type signature struct{ params, results []byte }

type function struct {
	export string // "": not exported
	kind   signature
	locals code // groups of them; nil is none
	body   code // without the last end
}

type bounds struct{ min, max int } // max -1: none

var (
	task    = signature{results: []byte{i32}}
	nothing = signature{}
)

// run is a guest whose only function has that body; it starts with no locals.
func runs(body ...code) guest {
	return guest{functions: []function{{export: "run", kind: task, body: seq(body...)}}}
}

func (g guest) bytes() []byte {
	var types, imports, functions, exports, bodies []code
	for i, f := range g.imports {
		types = append(types, f.kind.bytes())
		imports = append(imports, seq(text(f.module), text(f.name), code{0}, uleb(i)))
	}
	for i, f := range g.functions {
		index := uleb(len(g.imports) + i)
		types = append(types, f.kind.bytes())
		functions = append(functions, index)
		if f.export != "" {
			exports = append(exports, seq(text(f.export), code{0}, index))
		}
		locals := f.locals
		if locals == nil {
			locals = code{0}
		}
		bodies = append(bodies, sized(seq(locals, f.body, end)))
	}
	exports = append(exports, seq(text("memory"), code{2, 0}))
	var tables []code
	if g.table != nil {
		tables = []code{g.table.bytes()}
	}
	var start, counted code
	if g.start != 0 {
		start = seq(code{8}, sized(uleb(g.start)))
	}
	if len(g.data) > 0 {
		counted = seq(code{12}, sized(uleb(len(g.data))))
	}
	return seq(code(header),
		section(1, types...), section(2, imports...), section(3, functions...), section(4, tables...),
		section(5, append(code{0}, uleb(max(g.pages, 1))...)), section(6, g.globals...),
		section(7, append(exports, g.exports...)...), start, section(9, g.elements...), counted,
		section(10, bodies...), section(11, g.data...), seq(g.custom...))
}

func (s signature) bytes() code {
	return seq(code{0x60}, uleb(len(s.params)), s.params, uleb(len(s.results)), s.results)
}

func (b bounds) bytes() code {
	if b.max < 0 {
		return seq(code{funcref, 0}, uleb(b.min))
	}
	return seq(code{funcref, 1}, uleb(b.min), uleb(b.max))
}

// at is data that lies at an address.
func at(address int, bytes string) code { return seq(code{0}, number(address), end, text(bytes)) }

// passive is data that memory.init copies.
func passive(bytes string) code { return append(code{1}, text(bytes)...) }

// elementsAt fills table 0 from an index on.
func elementsAt(index int, functions ...int) code {
	entries := uleb(len(functions))
	for _, f := range functions {
		entries = append(entries, uleb(f)...)
	}
	return seq(code{0}, number(index), end, entries)
}

const header = "\x00asm\x01\x00\x00\x00"

// section is a vector; without entries there is none.
func section(id byte, entries ...code) code {
	if len(entries) == 0 {
		return nil
	}
	return seq(code{id}, sized(append(uleb(len(entries)), seq(entries...)...)))
}

func customSection(name, content string) code {
	return seq(code{0}, sized(seq(text(name), code(content))))
}

func sized(b []byte) code     { return append(uleb(len(b)), b...) }
func text(s string) code      { return sized([]byte(s)) }
func uleb(n int) code         { return binary.AppendUvarint(nil, uint64(n)) }
func many(n int, c code) code { return slices.Repeat(c, n) }

func sleb(n int64) code {
	var encoded code
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(encoded, b)
		}
		encoded = append(encoded, b|0x80)
	}
}

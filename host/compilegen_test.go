package host_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// genFunction is a function of a generated module.
type genFunction struct {
	params, results []byte
	locals          []byte // groups of them; nil is none
	body            []byte // without the last end
}

// genModule puts functions into a module with a memory, a table of 8 elements,
// a mutable i32 and i64, and a segment of each kind. Types are shared where they
// are equal. Block types 0 and 1 are () -> () and () -> (i32).
type genModule struct {
	types     [][]byte
	functions []genFunction
}

func (m *genModule) typeOf(params, results []byte) int {
	t := signature{params, results}.bytes()
	for i, have := range m.types {
		if slices.Equal(have, t) {
			return i
		}
	}
	m.types = append(m.types, t)
	return len(m.types) - 1
}

// bytes is the module. Its first function is exported as run.
func (m *genModule) bytes() []byte {
	var functions, bodies [][]byte
	for _, f := range m.functions {
		functions = append(functions, uleb(uint64(m.typeOf(f.params, f.results))))
		locals := f.locals
		if locals == nil {
			locals = []byte{0}
		}
		body := concat(locals, f.body, []byte{opEnd})
		bodies = append(bodies, concat(uleb(uint64(len(body))), body))
	}
	return concat([]byte("\x00asm\x01\x00\x00\x00"),
		section(secType, m.types), section(secFunction, functions),
		section(4, [][]byte{{0x70, 0, 8}}),
		section(secMemory, [][]byte{{0, 1}}),
		section(secGlobal, [][]byte{{i32, 1, opI32Const, 0, opEnd}, {i64, 1, 0x42, 0, opEnd}}),
		section(secExport, [][]byte{concat(name("memory"), []byte{2, 0}), concat(name("run"), []byte{0, 0})}),
		section(9, [][]byte{{1, 0, 1, 0}}),
		section(12, nil), []byte{12, 1, 1},
		section(secCode, bodies), section(11, [][]byte{{1, 1, 'x'}}))
}

func times(n int, part ...byte) []byte { return slices.Repeat(part, n) }

func indexed(op byte, i int) []byte { return append([]byte{op}, uleb(uint64(i))...) }

// shape is a family of functions that are hard to compile in one way, of any
// size.
type shape struct {
	name  string
	build func(m *genModule, n int)
}

// one makes a shape of one function () -> i32 with so many i64 locals, whose body
// leaves nothing on the stack.
func one(name string, locals func(n int) int, body func(n int) []byte) shape {
	return shape{name, func(m *genModule, n int) {
		f := genFunction{results: []byte{i32}, body: concat(body(n), []byte{opI32Const, 0})}
		if l := locals(n); l > 0 {
			f.locals = concat([]byte{1}, uleb(uint64(l)), []byte{i64})
		}
		m.functions = append(m.functions, f)
	}}
}

func no(int) int { return 0 }

// in puts a part into a block, from which it may branch with everything on the
// stack.
func in(part ...[]byte) []byte {
	return concat([]byte{0x02, 0x40}, concat(part...), []byte{0x0c, 0, opEnd})
}

var (
	genLoad  = []byte{opI32Const, 0, 0x28, 2, 0}
	genBrIf  = []byte{opI32Const, 1, 0x0d, 0}
	genEmpty = []byte{0x02, noBlockType, opEnd}
)

// shapes is one for each way that is known or thought to be hard.
func shapes() []shape {
	all := []shape{
		one("loads kept over br_if", no, func(n int) []byte { return in(slices.Repeat(concat(genLoad, genBrIf), n)) }),
		one("loads kept over ifs", no, func(n int) []byte {
			return in(slices.Repeat(concat(genLoad, []byte{opI32Const, 1, 0x04, noBlockType, 0x01, opEnd}), n))
		}),
		one("loads kept over loops", no, func(n int) []byte {
			return in(slices.Repeat(concat(genLoad, []byte{opLoop, noBlockType, opI32Const, 1, 0x0d, 0, opEnd}), n))
		}),
		one("ifs", no, func(n int) []byte { return slices.Repeat([]byte{opI32Const, 0, 0x04, noBlockType, 0x01, opEnd}, n) }),
		one("if and else", no, func(n int) []byte {
			return slices.Repeat([]byte{opI32Const, 0, 0x04, i32, opI32Const, 1, 0x05, opI32Const, 2, opEnd, opDrop}, n)
		}),
		one("br_if", no, func(n int) []byte { return in(times(n, genBrIf...)) }),
		one("empty loops", no, func(n int) []byte { return times(n, opLoop, noBlockType, opEnd) }),
		one("loops in each other", no, func(n int) []byte {
			n = min(n, 3_900)
			return concat(times(n, opLoop, noBlockType), times(n, opEnd))
		}),
		one("loops in each other that branch", no, func(n int) []byte {
			n = min(n, 3_900)
			return concat(times(n, opLoop, noBlockType), times(n, append(slices.Clone(genBrIf), opEnd)...))
		}),
		one("ifs in each other", no, func(n int) []byte {
			n = min(n, 3_900)
			return concat(times(n, opI32Const, 1, 0x04, noBlockType), times(n, opEnd))
		}),
		one("br_if to each of many blocks", no, func(n int) []byte {
			n = min(n, 3_900)
			out := times(n, 0x02, noBlockType)
			for i := range n {
				out = concat(out, []byte{opI32Const, 1}, indexed(0x0d, i))
			}
			return concat(out, times(n, opEnd))
		}),
		one("br_table to one block", no, func(n int) []byte {
			return in([]byte{opI32Const, 0}, indexed(0x0e, n), times(n+1, 0), nil)
		}),
		one("br_table to many blocks", no, func(n int) []byte {
			blocks := min(n/4+1, 3_900)
			out := concat(times(blocks, 0x02, noBlockType), []byte{opI32Const, 0}, indexed(0x0e, n))
			for i := range n + 1 {
				out = append(out, uleb(uint64(i%blocks))...)
			}
			return concat(out, times(blocks, opEnd))
		}),
		one("br_table over loads", no, func(n int) []byte {
			k := n / 2
			return in(slices.Repeat(genLoad, k), []byte{opI32Const, 0}, indexed(0x0e, n), times(n+1, 0))
		}),
		one("br_tables", no, func(n int) []byte {
			return in(times(n, concat([]byte{0x02, noBlockType, 0x02, noBlockType, opI32Const, 0, 0x0e, 2, 0, 1, 2, opEnd, opEnd})...))
		}),
		one("locals through loops", func(n int) int { return min(n, 5_000) }, func(n int) []byte {
			return slices.Repeat(concat([]byte{opLoop, noBlockType}, indexed(0x20, min(n, 5_000)-1), indexed(0x20, min(n, 5_000)/2), []byte{0x7c}, indexed(0x21, n%7), []byte{opEnd}), n)
		}),
		one("all locals set in loops", func(n int) int { return min(n/4+1, 5_000) }, func(n int) []byte {
			l := min(n/4+1, 5_000)
			var out []byte
			for i := range n {
				out = concat(out, []byte{opLoop, noBlockType}, indexed(0x20, i%l), []byte{0x42, 1, 0x7c}, indexed(0x21, (i+1)%l), []byte{opI32Const, 1, 0x0d, 0, opEnd})
			}
			return out
		}),
		one("all locals set in ifs", func(n int) int { return min(n/4+1, 5_000) }, func(n int) []byte {
			l := min(n/4+1, 5_000)
			var out []byte
			for i := range n {
				out = concat(out, []byte{opI32Const, 1, 0x04, noBlockType}, indexed(0x20, i%l), []byte{0x42, 1, 0x7c}, indexed(0x21, (i+1)%l), []byte{opEnd})
			}
			for i := range l {
				out = concat(out, indexed(0x20, i), []byte{opDrop})
			}
			return out
		}),
		one("values at a time", no, func(n int) []byte {
			return concat(slices.Repeat(genLoad, n+1), times(n, opI32Add), []byte{opDrop})
		}),
		one("arithmetic", no, func(n int) []byte {
			return concat(genLoad, slices.Repeat(concat(genLoad, []byte{opI32Add}), n), []byte{opDrop})
		}),
		one("divisions", no, func(n int) []byte {
			return concat(genLoad, slices.Repeat(concat(genLoad, []byte{0x6d}), n), []byte{opDrop})
		}),
		one("stores", no, func(n int) []byte { return times(n, opI32Const, 0, opI32Const, 1, 0x36, 2, 0) }),
		one("selects", no, func(n int) []byte {
			return concat(genLoad, slices.Repeat(concat(genLoad, genLoad, []byte{0x1b}), n), []byte{opDrop})
		}),
		one("globals", no, func(n int) []byte { return times(n, opGlobalGet, 0, opI32Const, 1, opI32Add, opGlobalSet, 0) }),
		one("memory.copy", no, func(n int) []byte { return times(n, opI32Const, 0, opI32Const, 0, opI32Const, 1, 0xfc, 10, 0, 0) }),
		one("memory.fill", no, func(n int) []byte { return times(n, opI32Const, 0, opI32Const, 0, opI32Const, 1, 0xfc, 11, 0) }),
		one("memory.init", no, func(n int) []byte { return times(n, opI32Const, 0, opI32Const, 0, opI32Const, 1, 0xfc, 8, 0, 0) }),
		one("memory.grow", no, func(n int) []byte { return times(n, opI32Const, 0, opMemoryGrow, 0, opDrop) }),
		one("table.copy", no, func(n int) []byte { return times(n, opI32Const, 0, opI32Const, 0, opI32Const, 1, 0xfc, 14, 0, 0) }),
		one("table.fill", no, func(n int) []byte { return times(n, opI32Const, 0, 0xd0, 0x70, opI32Const, 1, 0xfc, 17, 0) }),
		one("table.init", no, func(n int) []byte { return times(n, opI32Const, 0, opI32Const, 0, opI32Const, 1, 0xfc, 12, 0, 0) }),
		one("table.grow", no, func(n int) []byte { return times(n, 0xd0, 0x70, opI32Const, 1, 0xfc, 15, 0, opDrop) }),
		one("table.get and set", no, func(n int) []byte { return times(n, opI32Const, 0, opI32Const, 0, 0x25, 0, 0x26, 0) }),
		one("ref.func", no, func(n int) []byte { return times(n, 0xd2, 0, opDrop) }),
		one("calls", no, func(n int) []byte { return times(n, opCall, 0, opDrop) }),
		one("calls kept", no, func(n int) []byte { return in(slices.Repeat(concat([]byte{opCall, 0}, genBrIf), n)) }),
		one("conversions", no, func(n int) []byte {
			return times(n, opI32Const, 0, 0x43, 0, 0, 0, 0, 0xfc, 0, 0xb2, 0xfc, 5, 0xba, 0xfc, 2, 0x36, 2, 0)
		}),
		one("rounding", no, func(n int) []byte {
			return concat([]byte{opI32Const, 0, 0x43, 0, 0, 0, 0}, times(n, 0x8d, 0x90, 0x91), []byte{0x38, 2, 0})
		}),
		one("bits", no, func(n int) []byte {
			return concat([]byte{opI32Const, 0}, genLoad, times(n, 0x67, 0x68, 0x69), []byte{0x36, 2, 0})
		}),
	}
	for _, v := range []int{0x64, 0x6b, 0x6c, 0x80, 0x95, 0xd5, 0xdc, 0x0e, 0xb5, 0xba, 0xf1} { // binary ones of SIMD
		all = append(all, one(fmt.Sprintf("vector %#x", v), no, func(n int) []byte { return vectors(v, n) }))
	}
	return append(all, wide()...)
}

// vectors is n times a vector instruction.
func vectors(v, n int) []byte {
	op := append([]byte{0xfd}, uleb(uint64(v))...)
	zero := concat([]byte{0xfd, 12}, make([]byte, 16))
	switch v {
	case 0x64, 0x80: // any: unary ones, to i32 or a vector
		return slices.Repeat(concat(zero, op, []byte{opDrop}), n)
	case 0x6b, 0x6c: // shifts
		return concat(zero, slices.Repeat(concat(genLoad, op), n), []byte{opDrop})
	}
	return concat(zero, slices.Repeat(concat([]byte{opI32Const, 0, 0xfd, 0, 0, 0}, op), n), []byte{opDrop})
}

// wide is shapes of functions with types of many values, and of many functions.
func wide() []shape {
	values := func(k int) []byte { return times(k, i64) }
	zeros := func(k int) []byte { return times(k, 0x42, 0) }
	return []shape{
		{"calls of many values", func(m *genModule, n int) {
			m.functions = []genFunction{
				{results: []byte{i32}, body: concat(slices.Repeat(concat(zeros(128), []byte{opCall, 1}, times(128, opDrop)), n), []byte{opI32Const, 0})},
				{params: values(128), results: values(128), body: zeros(128)},
			}
		}},
		{"calls that pass on many values", func(m *genModule, n int) {
			m.functions = []genFunction{
				{results: []byte{i32}, body: concat(zeros(128), times(n, opCall, 1), times(128, opDrop), []byte{opI32Const, 0})},
				{params: values(128), results: values(128), body: zeros(128)},
			}
		}},
		{"indirect calls of many values", func(m *genModule, n int) {
			t := m.typeOf(values(128), values(128))
			m.functions = []genFunction{{results: []byte{i32}, body: concat(zeros(128),
				slices.Repeat(concat([]byte{opI32Const, 0, 0x11}, uleb(uint64(t)), []byte{0}), n), times(128, opDrop), []byte{opI32Const, 0})}}
		}},
		{"loops of many values", func(m *genModule, n int) {
			t := byte(m.typeOf(values(128), values(128)))
			m.functions = []genFunction{{results: []byte{i32}, body: concat(zeros(128), times(n, opLoop, t, opI32Const, 0, 0x0d, 0, opEnd), times(128, opDrop), []byte{opI32Const, 0})}}
		}},
		{"ifs of many values", func(m *genModule, n int) {
			t := byte(m.typeOf(values(128), values(128)))
			m.functions = []genFunction{{results: []byte{i32}, body: concat(zeros(128), times(n, opI32Const, 0, 0x04, t, 0x05, opEnd), times(128, opDrop), []byte{opI32Const, 0})}}
		}},
		{"br_table of many values", func(m *genModule, n int) {
			t := byte(m.typeOf(values(128), values(128)))
			n = min(n, 2_000)
			m.functions = []genFunction{{results: []byte{i32}, body: concat(zeros(128), []byte{0x02, t, opI32Const, 0}, indexed(0x0e, n), times(n+1, 0), []byte{opEnd}, times(128, opDrop), []byte{opI32Const, 0})}}
		}},
		{"small functions", func(m *genModule, n int) {
			m.functions = slices.Repeat([]genFunction{{results: []byte{i32}, body: []byte{opI32Const, 0}}}, min(n+1, 100_000))
		}},
		{"functions with a load", func(m *genModule, n int) {
			m.functions = slices.Repeat([]genFunction{{results: []byte{i32}, body: concat(genLoad, genEmpty)}}, min(n+1, 100_000))
		}},
		{"functions with locals", func(m *genModule, n int) {
			m.functions = slices.Repeat([]genFunction{{results: []byte{i32}, locals: []byte{1, 100, i64}, body: genLoad}}, min(n+1, 9_000))
		}},
		{"types", func(m *genModule, n int) {
			m.functions = []genFunction{{results: []byte{i32}, body: []byte{opI32Const, 0}}}
			m.typeOf(nil, []byte{i32})
			for i := range min(n, 190) {
				params := times(128, i64)
				for b := range 14 {
					if i>>b&1 == 1 {
						params[b] = i32
					}
				}
				m.types = append(m.types, signature{params, values(128)}.bytes())
			}
		}},
	}
}

// fragments are what random functions are made of. Each leaves as much on the
// stack as the number says, of i32.
var fragments = []struct {
	code   []byte
	leaves int
}{
	{genLoad, 1}, {genBrIf, 0}, {[]byte{opI32Const, 1, 0x04, noBlockType, 0x01, opEnd}, 0}, {[]byte{opLoop, noBlockType, opEnd}, 0},
	{[]byte{opLoop, noBlockType, opI32Const, 1, 0x0d, 0, opEnd}, 0}, {[]byte{opI32Const, 0, 0x0e, 7, 0, 0, 0, 0, 0, 0, 0, 0}, -100},
	{[]byte{opCall, 0}, 1}, {[]byte{opI32Const, 0, 0x11, 0, 0}, 1}, {[]byte{0x20, 0, 0x42, 1, 0x7c, 0x21, 1}, 0},
	{[]byte{0x20, 1, 0x42, 1, 0x7c, 0x21, 0}, 0}, {[]byte{opI32Const, 0, opI32Const, 1, 0x36, 2, 0}, 0},
	{[]byte{opI32Const, 0, opI32Const, 0, opI32Const, 1, 0xfc, 11, 0}, 0}, {[]byte{opGlobalGet, 0}, 1}, {[]byte{opI32Const, 0, opMemoryGrow, 0}, 1},
	{[]byte{opI32Const, 0, 0xd0, 0x70, opI32Const, 1, 0xfc, 17, 0}, 0}, {concat(genLoad, genLoad, []byte{0x6d}), 1},
	{concat(genLoad, genLoad, genLoad, []byte{0x1b}), 1}, {[]byte{opI32Const, 1, 0x04, i32, opI32Const, 1, 0x05, opI32Const, 2, opEnd}, 1},
	{[]byte{opGlobalGet, 1, 0x21, 2}, 0}, {[]byte{0x20, 3, 0xa7}, 1},
}

// mix is a random sequence of fragments that is repeated.
type mix []int

func randomMix(r *rand.Rand) mix {
	m := make(mix, 1+r.IntN(6))
	for i := range m {
		m[i] = r.IntN(len(fragments))
	}
	return m
}

// mutated is like m but for one fragment.
func (m mix) mutated(r *rand.Rand) mix {
	out := slices.Clone(m)
	switch at := r.IntN(len(out)); r.IntN(3) {
	case 0:
		out[at] = r.IntN(len(fragments))
	case 1:
		out = slices.Insert(out, at, r.IntN(len(fragments)))
	default:
		if len(out) > 1 {
			out = slices.Delete(out, at, at+1)
		}
	}
	return out
}

// shape is the function that repeats the mix, with as many locals as it says.
func (m mix) shape(locals int) shape {
	var unit []byte
	for _, f := range m {
		part := fragments[f]
		if part.leaves < 0 { // ends its block: what comes then is not reached
			unit = concat(unit, []byte{0x02, noBlockType}, part.code, []byte{opEnd})
		} else {
			unit = append(unit, part.code...)
		}
	}
	return one(fmt.Sprintf("mix %v, %d locals", []int(m), locals), func(int) int { return max(locals, 4) }, func(n int) []byte {
		return in(slices.Repeat(unit, n))
	})
}

package wasm

import "math/rand/v2"

// Types of a random program, by their indices. The functions have types
// typeUnary to typeLast.
const (
	typeNothing = iota // () -> ()
	typeUnary          // (i32) -> (i32)
	typePair           // (i32) -> (i32, i64)
	typeBinary         // (i32, i32) -> ()
	typeLast           // (i32, i64) -> (i64)
	typeTwo            // () -> (i32, i64), of blocks
)

var randomTypes = [...]struct{ params, results string }{
	{"", ""}, {"\x7f", "\x7f"}, {"\x7f", "\x7f\x7e"}, {"\x7f\x7f", ""}, {"\x7f\x7e", "\x7e"}, {"", "\x7f\x7e"},
}

// The parts of a random program that its functions use.
const (
	randomGlobals  = 3 // i32, i64, i32; the last one is how many loops and calls there may still be
	randomPatience = 400
	randomTable    = 8
)

// randomizer writes a random program, a valid one that ends. What it does is
// decided by a sequence of numbers, so that a fuzzer can search in it.
type randomizer struct {
	writer
	random    func(n int) int
	functions []int // types of all functions, the imported one first
	locals    []byte
	labels    []string // what a branch to each open block passes, the innermost last
	left      int      // how many more instructions there should be, about
}

// randomProgram is a program that a seed and the fuzzer's bytes decide: as long
// as there are bytes each decides something.
func randomProgram(seed uint64, decisions []byte) []byte {
	source := rand.New(rand.NewPCG(seed, 1))
	r := &randomizer{functions: []int{typeUnary}}
	r.random = func(n int) int {
		if len(decisions) > 0 && n <= 256 {
			d := int(decisions[0])
			decisions = decisions[1:]
			return d % n
		}
		return source.IntN(n)
	}
	for range 2 + r.random(4) {
		r.functions = append(r.functions, typeUnary+r.random(typeLast))
	}
	return r.module()
}

func (r *randomizer) module() []byte {
	var types, declared, exports, bodies [][]byte
	for _, t := range randomTypes {
		types = append(types, []byte("\x60"+string(uleb(len(t.params)))+t.params+string(uleb(len(t.results)))+t.results))
	}
	export := func(name string, kind, index byte) {
		exports = append(exports, append(append(uleb(len(name)), name...), kind, index))
	}
	for i, t := range r.functions[1:] {
		declared = append(declared, uleb(t))
		export("f"+string(rune('0'+i)), KindFunction, byte(i+1))
		body := r.function(t)
		bodies = append(bodies, append(uleb(len(body)), body...))
	}
	export("memory", KindMemory, 0)
	for i := range byte(randomGlobals) {
		export("g"+string(rune('0'+i)), KindGlobal, i)
	}
	declared = append(declared, uleb(typeNothing))
	start := r.startFunction()
	bodies = append(bodies, append(uleb(len(start)), start...))
	data := [][]byte{[]byte("\x01\x0aabcdefghij")}
	for range r.random(5) { // over each other, and over what the start function writes to
		data = append(data, active(r.random(64), []byte("ABCDEFGHIJKLMNOPQRSTUVWXYZ")[:r.random(27)]))
	}
	elements := "\x00\x41\x00\x0b\x06\x00\x01\x02\x00\x01\x02"
	return module(
		section(sectionType, vector(types...)),
		section(sectionImport, []byte("\x01\x03env\x06triple\x00\x01")),
		section(sectionFunction, vector(declared...)),
		section(sectionTable, []byte("\x01\x70\x00\x08")),
		section(sectionMemory, []byte("\x01\x01\x01\x03")),
		section(sectionGlobal, []byte("\x03\x7f\x01\x41\x05\x0b\x7e\x01\x42\x06\x0b\x7f\x01\x41\x90\x03\x0b")),
		section(sectionExport, vector(exports...)),
		section(sectionStart, uleb(len(r.functions))),
		section(sectionElement, []byte("\x02"+elements+"\x01\x00\x02\x01\x02")),
		section(sectionDataCount, uleb(len(data))),
		section(sectionCode, vector(bodies...)),
		section(sectionData, vector(data...)),
	)
}

// startFunction gives the body of a function that nothing else calls: it puts what it
// finds in the memory into a global, and something else into the memory.
func (r *randomizer) startFunction() []byte {
	r.out = []byte{0}
	r.i32Const(int64(r.random(64)))
	r.bytes(0x29, 0, 0) // i64.load
	r.global(opGlobalSet, 1)
	r.i32Const(int64(r.random(64)))
	r.global(opGlobalGet, 0)
	r.bytes(0x36, 0, 0) // i32.store
	r.bytes(opEnd)
	return r.out
}

// function gives the body of a function of that type: its parameters, then
// locals of both types.
func (r *randomizer) function(t int) []byte {
	r.out = []byte{2, 3, typeI32, 2, typeI64}
	r.locals = append([]byte(randomTypes[t].params), typeI32, typeI32, typeI32, typeI64, typeI64)
	r.labels = []string{randomTypes[t].results}
	r.left = 10 + 2*r.random(250)
	r.spendPatience()
	for r.left > 0 {
		r.statement()
	}
	r.values(randomTypes[t].results)
	r.bytes(opEnd)
	return r.out
}

// spendPatience traps when there were too many loops and calls.
func (r *randomizer) spendPatience() {
	r.addTo(2, -1)
	r.global(opGlobalGet, 2)
	r.i32Const(0)
	r.bytes(opI32LtS, opIf, noType, opUnreachable, opEnd)
}

func (r *randomizer) statements() {
	for range 1 + r.random(5) {
		r.statement()
	}
}

// statement writes something that neither takes nor leaves values.
func (r *randomizer) statement() {
	r.left--
	switch kind := r.random(18); {
	case r.left < 0 || kind == 0:
		r.bytes(opNop)
	case kind < 4:
		r.set()
	case kind == 4:
		r.store()
	case kind == 5:
		r.value(typeI32)
		r.bytes(opIf)
		r.block("\x40", "", r.statements, maybe)
	case kind == 6:
		r.loop()
	case kind < 9:
		r.smallLoop()
	case kind == 9:
		r.bytes(opBlock)
		r.block("\x40", "", r.statements, never)
	case kind < 12:
		r.branch()
	case kind == 12:
		r.call(r.random(len(r.functions)))
	case kind == 13:
		r.callIndirect()
	case kind == 14:
		r.bulk()
	case kind == 15:
		r.tableOperation()
	case kind == 16:
		r.drop("\x7f\x7e", func() { r.values("\x7f\x7e") })
	default:
		r.twoValues()
	}
}

// Whether a block has an else.
const (
	never = iota
	maybe
	always
)

// block writes the rest of a block: its type, what is in it, its end. A branch
// to it passes values of the given types. It may have an else, with the same.
func (r *randomizer) block(typ, label string, content func(), elses int) {
	r.out = append(r.out, typ...)
	r.labels = append(r.labels, label)
	content()
	if elses == always || elses == maybe && r.random(2) == 0 {
		r.bytes(opElse)
		content()
	}
	r.bytes(opEnd)
	r.labels = r.labels[:len(r.labels)-1]
}

// drop writes content and drops what it leaves.
func (r *randomizer) drop(types string, content func()) {
	content()
	for range types {
		r.bytes(opDrop)
	}
}

// twoValues is a block with several results, or one with a parameter.
func (r *randomizer) twoValues() {
	r.bytes(opBlock)
	r.drop("\x7f\x7e", func() {
		r.block(string(rune(typeTwo)), "\x7f\x7e", func() {
			r.statements()
			r.values("\x7f\x7e")
		}, never)
	})
	r.values("\x7f")
	r.bytes(opBlock)
	r.drop("\x7f", func() {
		r.block(string(rune(typeUnary)), "\x7f", r.statements, never)
	})
}

// loop writes a loop of any type; how often it runs is limited by patience.
func (r *randomizer) loop() {
	body := func() {
		r.spendPatience()
		r.statements()
		if r.random(2) == 0 {
			r.value(typeI32)
			r.branchIf(0)
		}
	}
	switch r.random(3) {
	case 0:
		r.bytes(opLoop)
		r.block("\x40", "", body, never)
	case 1: // with a result
		r.bytes(opLoop)
		r.drop("\x7f", func() {
			r.block("\x7f", "", func() { body(); r.value(typeI32) }, never)
		})
	case 2: // with a parameter, which stays at the bottom
		r.value(typeI32)
		r.bytes(opLoop)
		r.drop("\x7f", func() {
			r.block(string(rune(typeUnary)), "\x7f", func() { r.bytes(opDrop); body(); r.value(typeI32) }, never)
		})
	}
}

// smallLoop writes a loop that is likely to be unrolled, with little in it.
func (r *randomizer) smallLoop() {
	r.bytes(opLoop)
	r.block("\x40", "", func() {
		r.spendPatience()
		left := r.left
		r.left = min(left, 2)
		switch r.random(3) {
		case 0:
			r.statement()
		case 1:
			r.branch()
		}
		r.left = left
		r.global(opGlobalGet, 2)
		r.i32Const(int64(r.random(randomPatience)))
		r.bytes(0x4a) // i32.gt_s
		r.branchIf(0)
	}, never)
}

// branchIf writes a br_if and drops what stays if it does not branch.
func (r *randomizer) branchIf(depth int) {
	types := r.label(depth)
	if types != "" { // the values come below the condition
		r.bytes(opDrop)
		r.values(types)
		r.value(typeI32)
	}
	r.bytes(opBrIf)
	r.uvarint(depth)
	for range types {
		r.bytes(opDrop)
	}
}

func (r *randomizer) label(depth int) string { return r.labels[len(r.labels)-1-depth] }

// branch writes a branch, conditional or in a block of its own so that what
// follows can still be reached.
func (r *randomizer) branch() {
	depth := r.random(len(r.labels))
	if r.random(3) > 0 {
		r.value(typeI32)
		r.branchIf(depth)
		return
	}
	r.value(typeI32)
	r.bytes(opIf)
	r.block("\x40", "", func() {
		depth := r.random(len(r.labels))
		switch r.random(4) {
		case 0:
			r.values(r.labels[0])
			r.bytes(opReturn)
		case 1:
			r.values(r.label(depth))
			r.bytes(opBr)
			r.uvarint(depth)
		case 2:
			r.branchTable(depth)
		case 3:
			if r.random(4) == 0 {
				r.bytes(opUnreachable)
			}
		}
	}, never)
}

// branchTable writes a br_table whose targets all pass what one does.
func (r *randomizer) branchTable(depth int) {
	types := r.label(depth)
	var targets []int
	for i := range r.labels {
		if r.label(i) == types {
			targets = append(targets, i)
		}
	}
	r.values(types)
	r.value(typeI32)
	r.bytes(opBrTable)
	n := r.random(4)
	r.uvarint(n)
	for range n + 1 {
		r.uvarint(targets[r.random(len(targets))])
	}
}

// call writes a call and drops the results.
func (r *randomizer) call(function int) {
	t := randomTypes[r.functions[function]]
	r.values(t.params)
	r.drop(t.results, func() { r.writer.call(function) })
}

func (r *randomizer) callIndirect() {
	t := typeUnary + r.random(typeLast)
	r.values(randomTypes[t].params)
	r.i32Const(int64(r.random(randomTable + 1)))
	r.drop(randomTypes[t].results, func() {
		r.bytes(opCallIndirect)
		r.uvarint(t)
		r.uvarint(0)
	})
}

// set sets a local or a global, but not that of the patience.
func (r *randomizer) set() {
	if i := r.random(len(r.locals) + 2); i < len(r.locals) {
		r.value(r.locals[i])
		r.bytes(0x21, byte(i))
	} else {
		i -= len(r.locals)
		r.value([]byte{typeI32, typeI64}[i])
		r.global(opGlobalSet, i)
	}
}

func (r *randomizer) store() {
	r.value(typeI32)
	r.bytes(opI32Const, 0xff, 0xff, 0x04, 0x71) // i32.and: mostly within the memory
	if r.random(2) == 0 {
		r.value(typeI32)
		r.bytes(0x36, 2, 4)
	} else {
		r.value(typeI64)
		r.bytes(0x37, 3, 0)
	}
}

// bulk writes an operation on a range of the memory.
func (r *randomizer) bulk() {
	small := func(n int) { r.i32Const(int64(r.random(n))) }
	switch r.random(5) {
	case 0:
		small(70_000)
		r.value(typeI32)
		small(200)
		r.bytes(opBulk, bulkMemoryFill, 0)
	case 1:
		small(70_000)
		small(70_000)
		small(200)
		r.bytes(opBulk, bulkMemoryCopy, 0, 0)
	case 2:
		small(70_000)
		small(8)
		small(6)
		r.bytes(opBulk, bulkMemoryInit, 0, 0)
	case 3:
		r.bytes(opBulk, bulkDataDrop, 0)
	case 4:
		small(2)
		r.bytes(opMemoryGrow, 0, opDrop)
	}
}

func (r *randomizer) tableOperation() {
	small := func(n int) { r.i32Const(int64(r.random(n))) }
	reference := func() { r.bytes(opRefFunc, byte(r.random(3))) }
	switch r.random(6) {
	case 0:
		small(randomTable + 1)
		reference()
		r.bytes(opTableSet, 0)
	case 1:
		reference()
		small(3)
		r.bytes(opBulk, bulkTableGrow, 0, opDrop)
	case 2:
		small(randomTable)
		small(2)
		small(2)
		r.bytes(opBulk, bulkTableInit, 1, 0)
	case 3:
		small(randomTable)
		small(randomTable)
		small(3)
		r.bytes(opBulk, bulkTableCopy, 0, 0)
	case 4:
		small(randomTable)
		reference()
		small(3)
		r.bytes(opBulk, bulkTableFill, 0)
	case 5:
		r.bytes(opBulk, bulkElemDrop, 1)
	}
}

func (r *randomizer) values(types string) {
	for _, t := range []byte(types) {
		r.value(t)
	}
}

// value writes an expression that gives one value.
func (r *randomizer) value(t byte) {
	r.left--
	kind := r.random(9)
	if r.left < 0 {
		kind %= 3
	}
	switch kind {
	case 0:
		r.constant(t)
	case 1, 2:
		r.variable(t)
	case 3, 4:
		r.value(t)
		r.value(t)
		operators := "\x6a\x6b\x6c\x71\x72\x73\x74\x6d\x70" // add sub mul and or xor shl div_s rem_u
		if t == typeI64 {
			operators = "\x7c\x7d\x7e\x83\x84\x85\x86\x7f\x82"
		}
		r.bytes(operators[r.random(len(operators))])
	case 5:
		r.value(typeI32 + typeI64 - t)
		r.bytes(map[byte]byte{typeI32: 0xa7, typeI64: 0xac}[t]) // wrap, extend
	case 6:
		r.value(typeI32)
		r.bytes(opIf)
		r.block(string([]byte{t}), string([]byte{t}), func() { r.value(t) }, always)
	case 7:
		r.value(typeI32)
		r.bytes(opI32Const, 0xff, 0xff, 0x03, 0x71)
		r.bytes(map[byte]byte{typeI32: 0x2d, typeI64: 0x29}[t], 0, 0) // load8_u, load
	case 8:
		r.value(t)
		r.value(t)
		r.value(typeI32)
		r.bytes(opSelect)
	}
}

func (r *randomizer) constant(t byte) {
	n := int64(r.random(256)) - 128
	if t == typeI32 {
		r.i32Const(n)
	} else {
		r.i64Const(n << r.random(40))
	}
}

func (r *randomizer) variable(t byte) {
	at := r.random(len(r.locals))
	for i := range r.locals {
		if i := (at + i) % len(r.locals); r.locals[i] == t {
			r.bytes(opLocalGet, byte(i))
			return
		}
	}
}

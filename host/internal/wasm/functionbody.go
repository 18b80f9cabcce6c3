package wasm

import "fmt"

// body is a walk over one function's code.
type body struct {
	*decoder
	index     int   // of the function, imports included
	start     int   // where its locals are declared
	labels    []int // how many values a branch to each open block passes, the innermost last
	variables int   // parameters and locals
	operands  int   // passed so far
	function  int   // that the last call or reference named
	number    int   // of the last operation on a range
	segment   int   // of data, that it named
}

func (d *decoder) readCode() { d.eachBody(d.readBody) }

// eachBody reads the code section, and the instructions of each body with read.
func (d *decoder) eachBody(read func(*body)) {
	at := d.pos
	n := d.count("function bodies", 3, d.limits.Functions, "Functions")
	if d.err == nil && n != d.Figures.Functions {
		d.malformed(at, "it has %d function bodies and %d functions are declared", n, d.Figures.Functions)
	}
	b := body{decoder: d}
	section := d.end
	for i := 0; i < n && d.err == nil; i++ {
		b.index = len(d.functions) - n + i
		b.read(section, read)
	}
	d.end = section
	d.bodies = n
}

// read reads the body that comes next in a code section that ends there.
func (b *body) read(section int, instructions func(*body)) {
	at := b.pos
	size := b.u32()
	if size > b.limits.FunctionBody {
		b.over(at, b.limits.FunctionBody, "FunctionBody", "%s is %d bytes long", b.subject(), size)
		return
	}
	if size > b.left() {
		b.malformed(at, "%s is %d bytes long and %d are left", b.subject(), size, b.left())
		return
	}
	b.start, b.end = b.pos, b.pos+size
	b.readLocals()
	instructions(b)
	b.end = section
	b.Figures.FunctionBody = max(b.Figures.FunctionBody, size)
}

func (b *body) subject() string { return fmt.Sprintf("function %d", b.index) }

func (b *body) readLocals() {
	at := b.pos
	sum := 0
	for range b.count("groups of locals", 2, b.limits.Locals, "Locals") {
		sum += b.u32()
		b.valueType()
		if b.err != nil || sum > b.limits.Locals {
			break
		}
	}
	b.variables = b.types[b.functions[b.index]].params + sum
	b.Figures.ModuleLocals += sum
	b.Figures.Locals = max(b.Figures.Locals, sum)
	if sum > b.limits.Locals {
		b.over(at, b.limits.Locals, "Locals", "%s has %d locals or more", b.subject(), sum)
	} else if total := b.Figures.ModuleLocals; total > b.limits.ModuleLocals {
		b.over(at, b.limits.ModuleLocals, "ModuleLocals", "the functions up to %d have %d locals", b.index, total)
	}
}

// readInstructions reads up to the end that closes the function, which must be
// the body's last byte.
func (b *body) readInstructions() {
	b.open()
	for len(b.labels) > 0 && b.err == nil {
		b.step()
	}
	if b.err == nil && b.pos != b.end {
		b.malformed(b.pos, "%s has %d bytes after its end", b.subject(), b.end-b.pos)
	}
	b.Figures.Operands = max(b.Figures.Operands, b.operands)
}

// open opens the block that the function itself is.
func (b *body) open() {
	b.labels = append(b.labels[:0], b.types[b.functions[b.index]].results)
	b.operands = 0
}

// control reads what has to do with blocks, branches and calls.
func (b *body) control(at int, op byte) {
	switch op {
	case opUnreachable, opNop, opElse:
	case opBlock, opIf:
		b.enter(at, b.blockType().results)
	case opLoop:
		b.enter(at, b.blockType().params)
	case opEnd:
		b.labels = b.labels[:len(b.labels)-1]
	case opBr, opBrIf:
		b.branch()
	case opBrTable:
		for i, n := 0, b.count("targets of a branch", 1, b.limits.FunctionBody, "FunctionBody"); i <= n && b.err == nil; i++ {
			b.branch() // the last one is the default
		}
	case opReturn:
		b.pass(at, b.labels[0])
	case opCall:
		b.function = b.functionIndex()
		b.passType(at, b.functions[b.function])
	case opCallIndirect:
		b.passType(at, b.readTypeIndex())
		b.u32() // the table
	default:
		b.unknown(at, op)
	}
}

func (b *body) enter(at, values int) {
	b.labels = append(b.labels, values)
	depth := len(b.labels) - 1
	b.Figures.Nesting = max(b.Figures.Nesting, depth)
	if depth > b.limits.Nesting {
		b.over(at, b.limits.Nesting, "Nesting", "%s nests %d blocks", b.subject(), depth)
	}
}

// blockType reads the type of a block: none, one result, or a function type.
func (b *body) blockType() arity {
	at := b.pos
	if b.left() > 0 {
		switch t := b.module[at]; {
		case t == noType:
			b.pos++
			return arity{}
		case t > noType && t < 0x80:
			b.valueType()
			return arity{results: 1}
		}
	}
	i := b.signed(33)
	if b.err != nil {
		return arity{}
	}
	if i < 0 || i >= int64(len(b.types)) {
		b.malformed(at, "%s has a block of type %d and there are %d", b.subject(), i, len(b.types))
		return arity{}
	}
	t := b.types[i]
	b.pass(at, t.params+t.results)
	return t
}

func (b *body) branch() {
	at := b.pos
	depth := b.u32()
	if depth >= len(b.labels) {
		b.malformed(at, "%s branches out of %d blocks and is in %d", b.subject(), depth+1, len(b.labels))
		return
	}
	if b.onLabel != nil {
		b.onLabel(at, depth)
	}
	b.pass(at, b.labels[len(b.labels)-1-depth])
}

// passType counts what a call of a function of that type passes.
func (b *body) passType(at, i int) {
	if b.err == nil {
		b.pass(at, b.types[i].params+b.types[i].results)
	}
}

// pass counts values that an instruction passes.
func (b *body) pass(at, values int) {
	if b.operands += values; b.operands > b.limits.Operands {
		b.over(at, b.limits.Operands, "Operands", "the calls and branches of %s pass %d values or more", b.subject(), b.operands)
	}
}

package wasm

// instrumenter writes the bodies of functions with checks in them.
type instrumenter struct {
	*copier
	*body
	rewriter *rewriter
	plan     *plan
	next     int  // stretch
	left     int  // bytes that copies of loops may still add to the function
	counted  bool // the function counts depth
	leaves   bool // it has a check at its end

	targets []int // for each label, how many blocks are around what it means now
	nesting int   // how many blocks are open now, the function's included

	shiftFunction, shiftLabel func(at, index int)
}

// instrument writes the bodies of the code section.
func (r *rewriter) instrument(c *copier) {
	w := &instrumenter{copier: c, rewriter: r, plan: newPlan(r.analysis.functions, r.analysis.indirectLeaf)}
	w.shiftLabel = w.label
	w.shiftFunction = func(at, index int) {
		if w.module[at-1] != opRefFunc { // see refer
			c.shiftFunction(at, index)
		}
	}
	c.from.eachBody(w.write)
}

// write writes a body: first it is read to plan it, then it is copied with
// insertions.
func (w *instrumenter) write(b *body) {
	instructions := b.pos
	w.plan.read(b)
	b.pos = instructions
	b.open()
	b.onFunction, b.onLabel = w.shiftFunction, w.shiftLabel
	facts := w.rewriter.analysis.functions[b.index-b.imported.functions]
	w.body, w.counted, w.leaves = b, facts.counted, facts.leaves
	w.next, w.left = 1, unrolledInAll
	w.targets, w.nesting = append(w.targets[:0], 0), 1

	w.copied = b.start
	size := w.reserve()
	w.copyTo(instructions)
	w.enter()
	if facts.entry {
		w.payEntry()
	}
	w.until(0)
	w.leave()
	w.bytes(opEnd)
	w.copied = w.pos
	w.patch(size)
}

// enter counts down the depth. All of the instructions of a function that has
// something to do at its end come into a block, so that all ways out of it lead
// through leave; branches to the label of the function are branches to that
// block's.
func (w *instrumenter) enter() {
	if !w.leaves {
		return
	}
	if w.counted {
		w.addTo(w.rewriter.depth, -1)
		w.global(opGlobalGet, w.rewriter.depth)
		w.i32Const(0)
		w.bytes(opI32LtS)
		w.interruptIf(InterruptDepth, w.rewriter.interrupt)
	}
	w.bytes(opBlock)
	switch t := w.types[w.functions[w.index]]; t.results {
	case 0:
		w.bytes(noType)
	case 1:
		w.bytes(w.binary[t.at])
	default:
		w.varint(int64(w.rewriter.blocks[w.functions[w.index]]))
	}
}

// leave ends the block, counts up the depth and checks: functions that return
// one after the other may have much to do in between.
func (w *instrumenter) leave() {
	if !w.leaves {
		return
	}
	w.bytes(opEnd)
	if w.counted {
		w.addTo(w.rewriter.depth, 1)
	}
	w.interruptBelowZero(w.rewriter.units, w.rewriter.interrupt)
}

// payEntry pays for the function's first stretch, or lets a loop do it that
// comes anyway.
func (w *instrumenter) payEntry() {
	own := w.plan.stretches[0].units
	if w.plan.leads && own <= w.plan.stretches[1].units {
		w.plan.stretches[1].units += own
		return
	}
	w.check(own)
	w.rewriter.result.Entries++
}

// check pays units, and calls the host when they are used up.
func (w *instrumenter) check(units int64) {
	if w.plan.many() {
		w.i64Const(units)
		w.call(w.rewriter.spend)
		return
	}
	w.subtract(w.rewriter.units, units)
	w.interruptBelowZero(w.rewriter.units, w.rewriter.interrupt)
}

// payAt pays for the stretches that begin at an offset.
func (w *instrumenter) payAt(at int) {
	for w.next < len(w.plan.stretches) && int(w.plan.stretches[w.next].at) == at && !w.plan.stretches[w.next].loop {
		switch s := &w.plan.stretches[w.next]; {
		case s.checked:
			w.copyTo(at)
			w.check(s.units)
		case s.units > 0:
			w.copyTo(at)
			w.subtract(w.rewriter.units, s.units)
		}
		w.next++
	}
}

// until writes instructions up to the end after which so many labels are left,
// and without that.
func (w *instrumenter) until(labels int) {
	for {
		w.payAt(w.pos)
		at, op := w.step()
		if len(w.labels) == labels {
			w.copyTo(at)
			return
		}
		w.instruction(at, op)
	}
}

// push opens blocks. A label of the module means one of them from now on, that
// with so many inside.
func (w *instrumenter) push(blocks, inner int) {
	w.nesting += blocks
	w.targets = append(w.targets, w.nesting-1-inner)
}

func (w *instrumenter) pop(blocks int) {
	w.nesting -= blocks
	w.targets = w.targets[:len(w.labels)]
}

// instruction writes what has to come before an instruction, or instead of it.
func (w *instrumenter) instruction(at int, op byte) {
	switch op {
	case opBlock, opIf:
		w.push(1, 0)
	case opEnd:
		w.pop(1)
	case opLoop:
		w.enterLoop(at)
	case opReturn:
		if w.leaves {
			w.copyTo(at)
			w.bytes(opBr)
			w.uvarint(w.nesting - 1)
			w.copied = w.pos
		}
	case opMemoryGrow:
		w.instead(at, w.rewriter.grow, 1)
	case opTableSet:
		w.copyTo(at)
		w.change()
	case opRefFunc:
		w.refer(at)
	case opBulk:
		w.bulk(at)
	}
}

// bulk writes what belongs to an operation on a range. Those on memory are
// functions, which do it in pieces.
func (w *instrumenter) bulk(at int) {
	switch {
	case w.number == bulkMemoryFill:
		w.instead(at, w.rewriter.fill, 1)
	case w.number == bulkMemoryCopy:
		w.instead(at, w.rewriter.copy, 2)
	case w.number == bulkMemoryInit && w.rewriter.inits[w.segment] != 0 && w.module[at+1] < 0x80:
		w.instead(at, w.rewriter.inits[w.segment], 1)
	case isRange(w.number):
		w.copyTo(at)
		w.call(w.rewriter.spendRange)
	}
	if isChange(w.number) {
		w.copyTo(at)
		w.change()
	}
}

// instead writes a call of a function for an instruction that ends with so many
// indices of memories. One that is padded is malformed, and stays so.
func (w *instrumenter) instead(at, function, memories int) {
	for i := range memories {
		if w.module[w.pos-1-i] != 0 {
			return
		}
	}
	if w.module[w.pos-1-memories] >= 0x80 {
		return
	}
	w.copyTo(at)
	w.call(function)
	w.copied = w.pos
}

// refer gets a reference to a function from the global that holds it.
func (w *instrumenter) refer(at int) {
	w.copyTo(at)
	w.global(opGlobalGet, w.rewriter.references[w.function])
	w.copied = w.pos
}

// change notes an instruction that Rewritten.Changes reports.
func (w *instrumenter) change() {
	w.i32Const(1)
	w.global(opGlobalSet, w.rewriter.changed)
}

func (w *instrumenter) enterLoop(at int) {
	first := &w.plan.stretches[w.next]
	w.next++
	w.rewriter.result.Loops++
	more := (unrolledCopies - 1) * int(first.size)
	switch typ := w.module[at+1 : w.pos]; {
	case w.plan.many() || !first.closed:
		w.copyTo(w.pos)
		w.check(first.units)
		w.push(1, 0)
	case first.small() && more <= w.left:
		w.left -= more
		w.copyTo(at)
		w.unroll(first)
	default:
		w.copyTo(at)
		w.guard(first, typ)
	}
}

// guard writes a loop without parameters whose check does not return to where it
// came from, but begins again, and gets back what it paid. So nothing in the loop
// has to be ready for a call, and the call is out of the way:
//
//	block loop block
//	  PAY ; br_if 0, when the units are used up
//	  block BODY end br 2
//	end
//	INTERRUPT ; take PAY back ; br 0
//	end end
func (w *instrumenter) guard(first *stretch, typ []byte) {
	units := w.rewriter.units
	for _, op := range [...]byte{opBlock, opLoop} {
		w.bytes(op)
		w.bytes(typ...)
	}
	w.bytes(opBlock, noType)
	w.subtract(units, first.units)
	w.global(opGlobalGet, units)
	w.i64Const(0)
	w.bytes(opI64LtS, opBrIf, 0, opBlock)
	w.copied = w.pos - len(typ)
	w.push(4, 2)
	w.until(len(w.labels) - 1)
	w.pop(4)
	w.bytes(opEnd, opBr, 2, opEnd)
	w.i32Const(InterruptUnits)
	w.call(w.rewriter.interrupt)
	w.subtract(units, -first.units)
	w.bytes(opBr, 0, opEnd, opEnd)
	w.copied = w.pos
}

// unroll writes an innermost loop with one check for several copies of its body:
//
//	block loop CHECK
//	  block BODY br 2 end ; and so on: a branch to the loop's label leads to the next copy
//	  BODY
//	end end
//
// In the last copy the label is the loop's. There the end of the body stays the
// end of the loop, so that a body whose types are wrong stays wrong.
func (w *instrumenter) unroll(first *stretch) {
	w.bytes(opBlock, noType, opLoop, noType)
	w.check(first.units * unrolledCopies)
	next, labels := w.next, len(w.labels)
	for range unrolledCopies - 1 {
		w.bytes(opBlock, noType)
		w.copyBody(first, labels, 3)
		w.bytes(opBr, 2, opEnd)
		w.next = next // the same stretches come again
	}
	w.copyBody(first, labels, 2)
	w.bytes(opEnd, opEnd)
	w.copied = w.pos
}

// copyBody writes a copy of a loop's body, in so many blocks instead of one.
func (w *instrumenter) copyBody(first *stretch, labels, blocks int) {
	w.labels = w.labels[:labels]
	w.operands = 0 // each copy is within the limits
	w.pos, w.copied = int(first.at), int(first.at)
	w.push(blocks, 0)
	w.until(labels - 1)
	w.pop(blocks)
}

// label writes the label of a branch, if there are more blocks on the way now.
func (w *instrumenter) label(at, depth int) {
	if now := w.nesting - 1 - w.targets[len(w.labels)-1-depth]; now != depth {
		w.replace(at, now)
	}
}

package wasm

// growUnits is what memory.grow costs.
const growUnits = 4096

// weaver writes the bodies of functions with checks in them.
type weaver struct {
	*copier
	*body
	rewriter *rewriter
	plan     *plan
	next     int  // stretch
	left     int  // bytes that copies of loops may still add to the function
	counted  bool // the function counts depth

	shiftFunction, shiftLabel func(at, index int)

	// While a copy of a loop's body is written:
	loopLabels int // how many labels there are in it, when no block of it is open
	shift      int // how many more blocks than before are around it; 0 outside
}

// weave writes the bodies of the code section.
func (r *rewriter) weave(c *copier) {
	w := &weaver{copier: c, rewriter: r, plan: newPlan(r.survey.functions)}
	w.shiftFunction, w.shiftLabel = c.shiftFunction, w.label
	c.from.eachBody(w.write)
}

// write writes a body: first it is read to plan it, then it is copied with
// insertions.
func (w *weaver) write(b *body) {
	instructions := b.pos
	w.plan.read(b)
	b.pos = instructions
	b.open()
	b.onFunction, b.onLabel = w.shiftFunction, w.shiftLabel
	facts := w.rewriter.survey.functions[b.index-b.imported.functions]
	w.body, w.counted = b, facts.counted
	w.next, w.left = 1, unrolledInAll

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

// enter counts down the depth. All of the function's instructions come into a
// block, so that all ways out of it lead through leave; branches to the label of
// the function are branches to that block's.
func (w *weaver) enter() {
	if !w.counted {
		return
	}
	w.addTo(w.rewriter.depth, -1)
	w.global(opGlobalGet, w.rewriter.depth)
	w.i32Const(0)
	w.bytes(opI32LtS)
	w.interruptIf(InterruptDepth, w.rewriter.interrupt)
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

// leave ends the block and counts up the depth.
func (w *weaver) leave() {
	if w.counted {
		w.bytes(opEnd)
		w.addTo(w.rewriter.depth, 1)
	}
}

// payEntry pays for the function's first stretch, or lets a loop do it that
// comes anyway.
func (w *weaver) payEntry() {
	own := w.plan.stretches[0].units
	if w.plan.leads && own <= w.plan.stretches[1].units {
		w.plan.stretches[1].units += own
		return
	}
	w.check(own)
	w.rewriter.result.Entries++
}

// check pays units, and calls the host when they are used up.
func (w *weaver) check(units int64) {
	if w.plan.many() {
		w.i64Const(units)
		w.call(w.rewriter.spend)
		return
	}
	w.subtract(w.rewriter.units, units)
	w.interruptBelowZero(w.rewriter.units, w.rewriter.interrupt)
}

// payAt pays for the stretch that begins at an offset, if there is one.
func (w *weaver) payAt(at int) {
	if w.next == len(w.plan.stretches) || w.plan.stretches[w.next].at != at {
		return
	}
	if units := w.plan.stretches[w.next].units; units > 0 {
		w.copyTo(at)
		w.subtract(w.rewriter.units, units)
	}
	w.next++
}

// until writes instructions up to the end after which so many labels are left,
// and without that.
func (w *weaver) until(labels int) {
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

// instruction writes what has to come before an instruction, or instead of it.
func (w *weaver) instruction(at int, op byte) {
	switch op {
	case opLoop:
		w.enterLoop(at)
	case opReturn:
		if w.counted {
			w.copyTo(at)
			w.bytes(opBr)
			w.uvarint(len(w.labels) - 1 + w.shift)
			w.copied = w.pos
		}
	case opMemoryGrow:
		w.copyTo(at)
		w.i64Const(growUnits)
		w.call(w.rewriter.spend)
	case opTableSet:
		w.copyTo(at)
		w.change()
	case opBulk:
		w.copyTo(at)
		if isRange(w.number) {
			w.call(w.rewriter.spendRange)
		}
		if isChange(w.number) {
			w.change()
		}
	}
}

// change notes that an instruction comes that Rewritten.Changes tells of.
func (w *weaver) change() {
	w.i32Const(1)
	w.global(opGlobalSet, w.rewriter.changed)
}

func (w *weaver) enterLoop(at int) {
	first := &w.plan.stretches[w.next]
	w.next++
	w.rewriter.result.Loops++
	more := (unrolledCopies - 1) * first.size
	if first.small() && more <= w.left && !w.plan.many() {
		w.left -= more
		w.copyTo(at)
		w.unroll(first)
		return
	}
	w.copyTo(w.pos)
	w.check(first.units)
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
func (w *weaver) unroll(first *stretch) {
	w.bytes(opBlock, noType, opLoop, noType)
	w.check(first.units * unrolledCopies)
	w.loopLabels = len(w.labels)
	for range unrolledCopies - 1 {
		w.bytes(opBlock, noType)
		w.copyBody(first, 2)
		w.bytes(opBr, 2, opEnd)
	}
	w.copyBody(first, 1)
	w.bytes(opEnd, opEnd)
	w.copied = w.pos
}

// copyBody writes a copy of a loop's body with so many more blocks around it.
func (w *weaver) copyBody(first *stretch, shift int) {
	next := w.next
	w.labels = w.labels[:w.loopLabels]
	w.blocks, w.operands = 0, 0 // each copy is within the limits
	w.pos, w.copied = first.at, first.at
	w.shift = shift
	w.until(w.loopLabels - 1)
	w.shift = 0
	if shift > 1 {
		w.next = next // the same stretches come again
	}
}

// label writes the label of a branch: one that is outside of the loop that is
// being unrolled is farther away.
func (w *weaver) label(at, depth int) {
	if w.shift > 0 && depth > len(w.labels)-w.loopLabels {
		w.replace(at, depth+w.shift)
	}
}

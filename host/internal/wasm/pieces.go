package wasm

// piece is the bytes of memory that one instruction may fill or copy.
const piece = 64 << 10

// Parameters of the functions that work in pieces, as both instructions have them.
const (
	localTo     = 0
	localFrom   = 1 // of memory.fill the byte
	localLength = 2
)

// growBody is a function that does what memory.grow does, and lets the host look
// at the memory's new size.
func (r *rewriter) growBody() writer {
	var w writer
	w.subtract(r.units, growUnits)
	w.bytes(opLocalGet, 0, opMemoryGrow, 0)
	w.i32Const(InterruptGrown)
	w.call(r.interrupt)
	w.bytes(opEnd)
	return w
}

// fillBody is a function that does what memory.fill does.
func (r *rewriter) fillBody() writer {
	var w writer
	fill := func() {
		w.bytes(opBulk, bulkMemoryFill, 0)
	}
	w.ifLong()
	w.unlessInside(fill, localTo)
	r.pieces(&w, func() {
		w.bytes(opLocalGet, localTo, opLocalGet, localFrom)
		w.i32Const(piece)
		fill()
		w.move(localTo)
	})
	w.bytes(opEnd)
	r.rest(&w, fill)
	return w
}

// copyBody is a function that does what memory.copy does: from the end, when the
// bytes are moved up and might be overwritten before they are read.
func (r *rewriter) copyBody() writer {
	var w writer
	copies := func() { w.bytes(opBulk, bulkMemoryCopy, 0, 0) }
	w.ifLong()
	w.unlessInside(copies, localTo, localFrom)
	w.bytes(opLocalGet, localTo, opLocalGet, localFrom, opI32LeU, opIf, noType)
	r.pieces(&w, func() {
		w.bytes(opLocalGet, localTo, opLocalGet, localFrom)
		w.i32Const(piece)
		copies()
		w.move(localTo)
		w.move(localFrom)
	})
	w.bytes(opElse)
	r.pieces(&w, func() {
		for _, local := range [...]byte{localTo, localFrom} {
			w.bytes(opLocalGet, local, opLocalGet, localLength, opI32Add)
			w.i32Const(piece)
			w.bytes(opI32Sub)
		}
		w.i32Const(piece)
		copies()
	})
	w.bytes(opEnd, opEnd)
	r.rest(&w, copies)
	return w
}

// ifLong begins what is for more than a piece.
func (w *writer) ifLong() {
	w.bytes(opLocalGet, localLength)
	w.i32Const(piece)
	w.bytes(opI32GtU, opIf, noType)
}

// unlessInside does the whole operation at once if one of the ranges ends beyond
// the memory: that traps before anything is written.
func (w *writer) unlessInside(operation func(), ranges ...byte) {
	for i, start := range ranges {
		w.bytes(opLocalGet, start, opI64ExtendI32U, opLocalGet, localLength, opI64ExtendI32U, opI64Add)
		w.bytes(opMemorySize, 0, opI64ExtendI32U)
		w.i64Const(16)
		w.bytes(opI64Shl, opI64GtU)
		if i > 0 {
			w.bytes(opI32Or)
		}
	}
	w.bytes(opIf, noType, opLocalGet, localTo, opLocalGet, localFrom, opLocalGet, localLength)
	operation()
	w.bytes(opEnd)
}

// pieces repeats what is done for a piece until no more than one is left.
func (r *rewriter) pieces(w *writer, do func()) {
	w.bytes(opLoop, noType)
	w.subtract(r.units, piece/16)
	w.interruptBelowZero(r.units, r.interrupt)
	do()
	w.bytes(opLocalGet, localLength)
	w.i32Const(piece)
	w.bytes(opI32Sub, opLocalTee, localLength)
	w.i32Const(piece)
	w.bytes(opI32GtU, opBrIf, 0, opEnd)
}

// rest does what is left.
func (r *rewriter) rest(w *writer, operation func()) {
	r.payRange(w, localLength)
	w.bytes(opLocalGet, localTo, opLocalGet, localFrom, opLocalGet, localLength)
	operation()
	w.bytes(opEnd)
}

// move adds a piece to a local.
func (w *writer) move(local byte) {
	w.bytes(opLocalGet, local)
	w.i32Const(piece)
	w.bytes(opI32Add, opLocalSet, local)
}

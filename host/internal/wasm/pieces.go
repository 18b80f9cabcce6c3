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
	w.unlessInside(fill, bound{localTo, inMemory})
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
	w.unlessInside(copies, bound{localTo, inMemory}, bound{localFrom, inMemory})
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

// initBody is a function that does what memory.init does with a segment of that
// size. If the segment was dropped, the first piece traps.
func (r *rewriter) initBody(segment, size int) writer {
	var w writer
	initialize := func() {
		w.bytes(opBulk, bulkMemoryInit)
		w.uvarint(segment)
		w.bytes(0)
	}
	w.ifLong()
	w.unlessInside(initialize, bound{localTo, inMemory}, bound{localFrom, size})
	r.pieces(&w, func() {
		w.bytes(opLocalGet, localTo, opLocalGet, localFrom)
		w.i32Const(piece)
		initialize()
		w.move(localTo)
		w.move(localFrom)
	})
	w.bytes(opEnd)
	r.rest(&w, initialize)
	return w
}

// ifLong begins what is for more than a piece.
func (w *writer) ifLong() {
	w.bytes(opLocalGet, localLength)
	w.i32Const(piece)
	w.bytes(opI32GtU, opIf, noType)
}

// bound is so many bytes, in which a range must lie that begins at the address in a local.
type bound struct {
	start byte
	size  int
}

// inMemory is a size that the guest can change.
const inMemory = -1

// unlessInside does the whole operation at once if one of the ranges ends beyond
// its bound: that traps before anything is written.
func (w *writer) unlessInside(operation func(), bounds ...bound) {
	for i, b := range bounds {
		w.bytes(opLocalGet, b.start, opI64ExtendI32U, opLocalGet, localLength, opI64ExtendI32U, opI64Add)
		if b.size == inMemory {
			w.bytes(opMemorySize, 0, opI64ExtendI32U)
			w.i64Const(16)
			w.bytes(opI64Shl)
		} else {
			w.i64Const(int64(b.size))
		}
		w.bytes(opI64GtU)
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

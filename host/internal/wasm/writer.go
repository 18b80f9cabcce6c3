package wasm

import "encoding/binary"

// writer writes the binary format.
type writer struct{ out []byte }

func (w *writer) bytes(b ...byte) { w.out = append(w.out, b...) }

// uvarint writes an unsigned LEB128 number.
func (w *writer) uvarint(n int) { w.out = binary.AppendUvarint(w.out, uint64(n)) }

// varint writes a signed LEB128 number.
func (w *writer) varint(n int64) {
	for n < -64 || n > 63 {
		w.out = append(w.out, byte(n)|0x80)
		n >>= 7
	}
	w.out = append(w.out, byte(n)&0x7f)
}

func (w *writer) name(s string) {
	w.uvarint(len(s))
	w.out = append(w.out, s...)
}

const reserved = 5 // bytes of any number of 32 bits, padded

// reserve leaves room for the size of what is written next. It gives what patch needs.
func (w *writer) reserve() (at int) {
	w.out = append(w.out, make([]byte, reserved)...)
	return len(w.out)
}

// patch puts in how much was written since reserve.
func (w *writer) patch(at int) {
	size := len(w.out) - at
	for i := range reserved {
		w.out[at-reserved+i] = byte(size>>(7*i)) | 0x80
	}
	w.out[at-1] &= 0x7f
}

func (w *writer) i32Const(n int64) {
	w.bytes(opI32Const)
	w.varint(n)
}

func (w *writer) i64Const(n int64) {
	w.bytes(opI64Const)
	w.varint(n)
}

func (w *writer) global(op byte, index int) {
	w.bytes(op)
	w.uvarint(index)
}

func (w *writer) call(function int) {
	w.bytes(opCall)
	w.uvarint(function)
}

// addTo adds to an i32.
func (w *writer) addTo(global int, n int64) {
	w.global(opGlobalGet, global)
	w.i32Const(n)
	w.bytes(opI32Add)
	w.global(opGlobalSet, global)
}

// subtract subtracts from an i64.
func (w *writer) subtract(global int, n int64) {
	w.global(opGlobalGet, global)
	w.i64Const(n)
	w.bytes(opI64Sub)
	w.global(opGlobalSet, global)
}

// interruptBelowZero calls the host when the units are below zero.
func (w *writer) interruptBelowZero(units, interrupt int) {
	w.global(opGlobalGet, units)
	w.i64Const(0)
	w.bytes(opI64LtS)
	w.interruptIf(InterruptUnits, interrupt)
}

// interruptIf calls the host when the i32 on the stack is not zero.
func (w *writer) interruptIf(why int64, interrupt int) {
	w.bytes(opIf, noType)
	w.i32Const(why)
	w.call(interrupt)
	w.bytes(opEnd)
}

// copier writes parts of a module that are edited.
type copier struct {
	*writer
	from   *decoder
	copied int // offset up to where the module has been copied
}

// copyTo copies what comes before an offset.
func (c *copier) copyTo(at int) {
	c.bytes(c.from.module[c.copied:at]...)
	c.copied = at
}

// replace writes a number instead of the one between at and the decoder's position.
func (c *copier) replace(at, n int) {
	c.copyTo(at)
	c.uvarint(n)
	c.copied = c.from.pos
}

// shiftFunction writes an index of a function, which is one higher for those
// that the module defines, as there is one more import.
func (c *copier) shiftFunction(at, index int) {
	if index >= c.from.imported.functions {
		c.replace(at, index+1)
	}
}

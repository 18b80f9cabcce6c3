package wasm

import (
	"context"
	"errors"
	"slices"
)

// Data is what active data segments write into a memory, in their order: of each one the
// address, the length, both in unsigned LEB128, and the bytes.
type Data []byte

// errData is for data that Rewrite has not made, or that another memory is for.
var errData = errors.New("the data segments of the module are damaged, or do not fit into its memory")

// Lay writes the segments into a new memory. It fails with the cause with which ctx
// ended, or when a segment does not fit.
func (d Data) Lay(ctx context.Context, memory []byte) error {
	const (
		each  = 4 << 10 // in bytes: what a segment costs, as it may be the first one in its page
		pause = 1 << 20 // bytes between two looks at ctx, and of one copy, which nothing can interrupt
	)
	work := pause // a context that has ended is noticed at once
	for r := (reader{module: d, end: len(d)}); r.left() > 0; {
		start, size := r.u32(), r.u32()
		content := d[r.pos:]
		if r.skip(size); r.err != nil || start+size > len(memory) {
			return errData
		}
		for part := range slices.Chunk(content[:size], pause) {
			if work >= pause {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				work = 0
			}
			work += len(part)
			start += copy(memory[start:], part)
		}
		work += each
	}
	return nil
}

// dataPlan is what becomes of the data section.
type dataPlan struct {
	moved bool // it changes at all
	taken Data
	left  writer // its entries now
	count int
}

// passiveNothing is a passive data segment without bytes. Code cannot distinguish it
// from an active one, which is dropped while its instance is made.
const passiveNothing = "\x01\x00"

// planData takes the active segments out of the module, and all that no code can
// name. If one does not fit into the memory, it stays, alone, for the runtime to fail
// as it would have done. A module whose segments depend on what it imports, or that
// lacks a memory, stays as it is.
func (r *rewriter) planData() dataPlan {
	s := r.find(sectionData)
	if s.id != sectionData {
		return dataPlan{}
	}
	defines := r.find(sectionMemory).id == sectionMemory &&
		!slices.ContainsFunc(r.Interface.Imports, func(i Import) bool { return i.Kind == KindMemory })
	named := r.analysis.drops || len(r.analysis.inits) > 0
	p, taken, fits := dataPlan{moved: true}, writer{make([]byte, 0, s.end-s.body)}, true
	d := r.again(s)
	for range d.u32() {
		at := d.pos
		segment := d.readDataSegment()
		p.count++
		if !segment.passive && !(defines && segment.known) {
			return dataPlan{}
		}
		beyond := !segment.passive && segment.start+len(segment.content) > r.memory*memoryPage
		switch {
		case fits && (beyond || segment.passive && named):
			p.left.bytes(d.module[at:d.pos]...)
			fits = !beyond
			continue
		case fits && !segment.passive:
			taken.uvarint(segment.start)
			taken.uvarint(len(segment.content))
			taken.bytes(segment.content...)
		}
		p.left.bytes([]byte(passiveNothing)...)
	}
	if !fits {
		return p
	}
	if !named {
		p.left, p.count = writer{}, 0
	}
	if len(taken.out) > 0 {
		p.taken = taken.out
	}
	return p
}

// data writes the data section.
func (r *rewriter) data(s span) {
	switch {
	case !r.plan.moved:
		r.bytes(r.binary[s.start:s.end]...)
	case r.plan.count > 0:
		r.bytes(sectionData)
		size := r.reserve()
		r.uvarint(r.plan.count)
		r.bytes(r.plan.left.out...)
		r.patch(size)
	}
}

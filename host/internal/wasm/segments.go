package wasm

// Bits of the number that begins an element segment, section 5.5.12.
const (
	segmentPassive     = 1 << iota // or declared, when explicit too
	segmentExplicit                // states its table, or is declared
	segmentExpressions             // elements are expressions, not indices
)

func (d *decoder) readElementSegments() {
	n := d.count("element segments", 3, d.limits.ElementSegments, "ElementSegments")
	for i := 0; i < n && d.err == nil; i++ {
		d.readElementSegment()
	}
	d.Figures.ElementSegments = n
}

func (d *decoder) readElementSegment() {
	at := d.pos
	form := d.u32()
	if form > segmentPassive|segmentExplicit|segmentExpressions {
		d.malformed(at, "an element segment has the form %d", form)
	}
	active, explicit := form&segmentPassive == 0, form&segmentExplicit != 0
	if active && explicit {
		d.u32() // the table
	}
	if active {
		d.constant()
	}
	if !active || explicit {
		d.readElementKind(form)
	}
	at = d.pos
	n := d.count("elements", 1, d.limits.Elements, "Elements")
	d.Figures.Elements += n
	if total := d.Figures.Elements; total > d.limits.Elements {
		d.over(at, d.limits.Elements, "Elements", "the segments have %d elements or more", total)
	}
	for i := 0; i < n && d.err == nil; i++ {
		if form&segmentExpressions != 0 {
			d.constant()
		} else {
			d.declare()
		}
	}
}

// readElementKind reads what the elements are.
func (d *decoder) readElementKind(form int) {
	if form&segmentExpressions != 0 {
		d.referenceType()
		return
	}
	at := d.pos
	if kind := d.byte(); kind != 0 {
		d.malformed(at, "elements are of the kind %#x", kind)
	}
}

// readDataCount reads how many data segments will come, in a later section.
func (d *decoder) readDataCount() {
	at := d.pos
	d.dataCount = d.u32()
	if d.dataCount > d.limits.DataSegments {
		d.over(at, d.limits.DataSegments, "DataSegments", "it announces %d data segments", d.dataCount)
	}
}

func (d *decoder) readDataSegments() {
	n := d.count("data segments", 2, d.limits.DataSegments, "DataSegments")
	for i := 0; i < n && d.err == nil; i++ {
		at := d.pos
		d.readDataSegment()
		if pages := d.Figures.DataPages; d.err == nil && pages > d.limits.DataPages {
			d.over(at, d.limits.DataPages, "DataPages", "the data segments are written to %d pages of 4 KiB or more", pages)
		}
	}
	d.Figures.DataSegments = n
}

// readDataSegment gives the bytes of the segment.
func (d *decoder) readDataSegment() (size int) {
	at := d.pos
	form := d.u32()
	address := d.reader
	switch form {
	case 0:
		d.constant()
	case 1: // passive
	case 2:
		d.onlyMemory("a data segment")
		address = d.reader
		d.constant()
	default:
		d.malformed(at, "a data segment has the form %d", form)
	}
	size = d.u32()
	d.skip(size)
	if form != 1 && size > 0 && d.err == nil {
		d.countPages(address, size)
	}
	return size
}

// countPages counts the pages that a segment of that size is written to, but for one
// to which the segment before it was written.
func (d *decoder) countPages(address reader, size int) {
	const page = 4096
	start := 0
	if address.byte() == opI32Const {
		start = int(uint32(address.signed(32)))
	}
	first, end := start/page, (start+size-1)/page+1
	d.Figures.DataPages += end - first
	if first+1 == d.dataEnd {
		d.Figures.DataPages--
	}
	d.dataEnd = end
}

// onlyMemory reads the index of a memory.
func (r *reader) onlyMemory(what string) {
	at := r.pos
	if r.u32() != 0 {
		r.unsupported(at, what, memories)
	}
}

// constant reads a constant expression: one instruction and an end.
func (d *decoder) constant() {
	r := &d.reader
	at := r.pos
	switch op := r.byte(); op {
	case opI32Const:
		r.signed(32)
	case opI64Const:
		r.signed(64)
	case opF32Const:
		r.skip(4)
	case opF64Const:
		r.skip(8)
	case opGlobalGet:
		d.globalIndex()
	case opRefFunc:
		d.declare()
	case opRefNull:
		r.referenceType()
	case opVector:
		if r.byte() != vectorConst {
			r.malformed(at, "an expression is not constant")
		}
		r.skip(16)
	case opCollector:
		r.unsupported(at, "a constant expression", collector)
	default:
		r.malformed(at, "a constant expression begins with the instruction %#x", op)
	}
	at = r.pos
	switch op := r.byte(); op {
	case opEnd:
	case opI32Const, opI64Const, opGlobalGet, 0x6a, 0x6b, 0x6c, 0x7c, 0x7d, 0x7e: // add, sub and mul follow
		r.unsupported(at, "a constant expression", extended)
	default:
		r.malformed(at, "a constant expression continues with the instruction %#x", op)
	}
}

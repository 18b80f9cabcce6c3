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
		d.readDataSegment()
	}
	d.Figures.DataSegments = n
}

// dataSegment is one entry of the data section. Its content is the module's bytes.
type dataSegment struct {
	passive bool
	known   bool // an active one whose address is start, and not that of a global
	start   int
	content []byte
}

func (d *decoder) readDataSegment() (s dataSegment) {
	at := d.pos
	switch form := d.u32(); form {
	case 0, 2:
		if form == 2 {
			d.onlyMemory("a data segment")
		}
		address := d.reader
		d.constant()
		if d.err == nil && address.byte() == opI32Const {
			s.known, s.start = true, int(uint32(address.signed(32)))
		}
	case 1:
		s.passive = true
	default:
		d.malformed(at, "a data segment has the form %d", form)
	}
	size := d.u32()
	if d.skip(size); d.err == nil {
		s.content = d.module[d.pos-size : d.pos]
	}
	return s
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

package wasm

import "slices"

const (
	// maxGap is how many zeros between two data segments are written out to make
	// one of them. Go's linker leaves out each run of zeros: a small guest has 40 000
	// segments, for each of which a runtime keeps a record in each instance. With 32
	// some 200 are left, and the section grows by a tenth.
	maxGap = 32

	// maxData is the bytes of one data segment. A runtime copies a segment in one go,
	// and nothing can interrupt it.
	maxData = 1 << 20

	// maxRuns is how many merged segments are remembered to find out whether the
	// bytes between two others are still zero.
	maxRuns = 1000
)

// dataRun is segments that have become one.
type dataRun struct {
	start, end int // in memory
	content    []byte
}

// dataMerger writes data segments, those that lie behind each other as one, and
// large ones as several.
type dataMerger struct {
	writer
	count int
	run   dataRun
	done  []dataRun // earlier ones, without content
	blind bool      // a segment has come of which it is not known where it writes

	scratch []byte // for the content of the next run
}

// numbered reports whether code uses the numbers of data segments.
func (a *analysis) numbered() bool { return a.drops || len(a.inits) > 0 }

// mergeable reports whether segments may be merged: their numbers are not used, and
// memory is zero before them.
func (r *rewriter) mergeable() bool {
	return !r.analysis.numbered() &&
		!slices.ContainsFunc(r.Interface.Imports, func(i Import) bool { return i.Kind == KindMemory })
}

// data writes the data section with fewer segments.
func (r *rewriter) data(s span) {
	if !r.mergeable() {
		r.bytes(r.binary[s.start:s.end]...)
		return
	}
	d := r.again(s)
	m := dataMerger{scratch: make([]byte, 0, s.end-s.body)}
	m.out = make([]byte, 0, (s.end-s.body)*5/4)
	for range d.u32() {
		m.segment(d)
	}
	m.flush()
	r.bytes(sectionData)
	size := r.reserve()
	r.uvarint(m.count)
	r.bytes(m.out...)
	r.patch(size)
}

// segment reads the next segment.
func (m *dataMerger) segment(d *decoder) {
	at := d.pos
	if d.u32() != 0 || d.module[d.pos] != opI32Const {
		d.pos = at
		d.readDataSegment()
		m.flush()
		m.bytes(d.module[at:d.pos]...)
		m.count++
		m.blind = true
		return
	}
	d.pos++
	start := int(uint32(d.signed(32)))
	d.pos++ // the end of the expression
	size := d.u32()
	content := d.module[d.pos : d.pos+size]
	d.skip(size)
	if m.run.content == nil || start < m.run.end || start > m.run.end+maxGap || !m.zero(m.run.end, start) {
		m.flush()
		m.run = dataRun{start: start, end: start, content: m.scratch[:0]}
	}
	var zeros [maxGap]byte
	m.run.content = append(m.run.content, zeros[:start-m.run.end]...)
	m.run.content = append(m.run.content, content...)
	m.run.end = start + size
}

// zero reports whether no earlier segment has written between two addresses.
func (m *dataMerger) zero(start, end int) bool {
	if start == end {
		return true
	}
	return !m.blind && len(m.done) < maxRuns && !slices.ContainsFunc(m.done, func(r dataRun) bool {
		return start < r.end && r.start < end
	})
}

// flush writes the segment that was merged so far.
func (m *dataMerger) flush() {
	if m.run.content == nil {
		return
	}
	start := m.run.start
	for part := range slices.Chunk(m.run.content, maxData) {
		m.active(start, part)
		start += len(part)
	}
	if len(m.run.content) == 0 { // its address may be beyond the memory
		m.active(start, nil)
	}
	if len(m.done) < maxRuns {
		m.done = append(m.done, dataRun{start: m.run.start, end: m.run.end})
	}
	m.scratch, m.run = m.run.content, dataRun{}
}

func (m *dataMerger) active(start int, content []byte) {
	m.uvarint(0)
	m.i32Const(int64(int32(start)))
	m.bytes(opEnd)
	m.uvarint(len(content))
	m.bytes(content...)
	m.count++
}

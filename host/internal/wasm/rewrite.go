package wasm

import (
	"encoding/binary"
	"slices"
)

// Names through which a rewritten module and its host speak with each other.
// Modules that import or export a name beginning with SandboxModule are refused
// by [Decode].
const (
	SandboxModule = "flowhost:sandbox" // what the module imports from

	// ImportInterrupt is a function (i32) -> () that the module calls with
	// one of the reasons below. The host may unwind the guest, or set the
	// units to a new value, not below zero, and return.
	ImportInterrupt = "interrupt"

	// ExportUnits is a mutable i64: the units that are left. A check subtracts
	// what the instructions that follow cost and calls the host below zero.
	ExportUnits = SandboxModule + "/units"

	// ExportDepth is a mutable i32: how many more calls of functions may be nested
	// of which each recursion has one. Each of them subtracts one, calls the host
	// below zero, and adds one when it returns; a trap leaves it as it is.
	ExportDepth = SandboxModule + "/depth"

	// ExportChanged is a mutable i32 that becomes 1 right before an instruction
	// that [Rewritten].Changes reports. Only modules that have any export it.
	ExportChanged = SandboxModule + "/changed"

	// ExportStart is a function () -> () that does what the module's start function
	// does. Only modules with a start function export it; see [Rewritten].
	ExportStart = SandboxModule + "/start"

	exportGlobal = SandboxModule + "/global/" // and the global's index
)

// Why a module calls ImportInterrupt.
const (
	InterruptUnits = 0 // the units are used up
	InterruptDepth = 1 // too many calls are nested
	InterruptGrown = 2 // the memory was to grow; units may be left, and may be fewer than before
)

// RewriteOptions of [Module.Rewrite].
type RewriteOptions struct {
	TableMaximum int   // elements of all tables, as Limits.TableMaximum, with the same default
	Units        int64 // initial value of ExportUnits
	Depth        int32 // initial value of ExportDepth
}

// Rewritten is a module that can be interrupted and brought back to its first state.
//
// An instance of Binary becomes one of the module when its host has laid Data into the
// memory and then has called ExportStart, if there is one. An instance that gets the
// memory and the globals of another one needs neither.
type Rewritten struct {
	Binary  []byte   `json:"-"`
	Data    Data     `json:"-"` // the active data segments, which Binary does not have
	Globals []Global // mutable ones that the module defines, in its order
	Changes bool     // it has table.set/grow/init/fill/copy, data.drop or elem.drop
	Loops   int      // that have a check
	Entries int      // of functions that have a check

	References   int // functions that code refers to, each of which has a global
	DataSegments int // that Binary has

	// Elements of all tables, at the start and at most.
	TableMinimum, TableMaximum int
}

// Global is a mutable global of a rewritten module.
type Global struct {
	Export string
	Type   byte // as the binary format states it: 0x7f for i32
}

// Rewrite gives a module that does what the decoded one does, and besides
//
//   - counts down units at each loop, at the entry of each function unless it is
//     small and calls nothing, and before instructions that take long: every
//     instruction that runs is paid for, and some that do not;
//   - counts how deep calls are nested, at functions of which each recursion has
//     one, provided that imported functions do not call the module back;
//   - exports its mutable globals, and states when it changes what is neither in a
//     global nor in a memory;
//   - has a maximum for each table, so that all of them are within one (minima
//     count where they are larger): a table that does not grow any further is
//     within the specification;
//   - gets references to functions from added globals, of which an instance
//     has as many as the code refers to;
//   - leaves its active data segments and its start function to the host;
//   - has no custom sections.
//
// A unit is about an instruction. The same module gives the same binary and the
// same counts. Any module that Decode accepts can be rewritten; types that are
// wrong stay wrong. The binary is at most 16 times as long as the module, and 32
// times as much and 1 MiB is allocated; a Go guest grows by a fifth.
func (m *Module) Rewrite(options RewriteOptions) *Rewritten {
	options.TableMaximum = Limits{TableMaximum: options.TableMaximum}.withDefaults().TableMaximum
	r := &rewriter{Module: m, options: options, analysis: m.analyze()}
	r.plan = r.planData()
	if r.result.DataSegments = m.Figures.DataSegments; r.plan.moved {
		r.result.DataSegments = r.plan.count
	}
	r.layOut()
	r.out = make([]byte, 0, r.size())
	r.out = append(r.out, m.binary[:headerSize]...)
	for _, id := range [...]byte{sectionType, sectionImport, sectionFunction, sectionTable, sectionMemory, sectionGlobal,
		sectionExport, sectionElement, sectionDataCount, sectionCode, sectionData} {
		r.section(id)
	}
	r.result.Binary, r.result.Data = r.out, r.plan.taken
	r.result.Changes = r.analysis.changes
	return &r.result
}

// size is about the size of the rewritten module.
func (r *rewriter) size() int {
	size := len(r.binary) + r.analysis.growth + 256
	for i := range r.added {
		size += len(r.added[i].entries.out)
	}
	return size
}

// section writes the section of that id, if there is one or something is added.
func (r *rewriter) section(id byte) {
	s, added := r.find(id), r.added[id]
	if s.id != id && added.count == 0 || id == sectionDataCount && r.plan.moved && r.plan.count == 0 {
		return
	}
	switch id {
	case sectionTable:
		r.tables()
	case sectionData:
		r.data(s)
	case sectionMemory, sectionDataCount:
		r.bytes(r.binary[s.start:s.end]...)
	default:
		r.bytes(id)
		size := r.reserve()
		r.content(s, added)
		r.patch(size)
	}
}

// tableMaxima is how many elements each table may have: what it states, within
// one maximum for all tables, of which none gets less than its minimum.
func tableMaxima(tables []Table, maximum int) []int {
	for _, t := range tables {
		maximum -= t.Min
	}
	left, maxima := max(maximum, 0), make([]int, len(tables))
	for i, t := range tables {
		maxima[i] = t.Min + left/(len(tables)-i)
		if t.Bounded {
			maxima[i] = min(maxima[i], t.Max)
		}
		left -= maxima[i] - t.Min
	}
	return maxima
}

// tables writes the table section.
func (r *rewriter) tables() {
	content := binary.AppendUvarint(nil, uint64(len(r.Tables)))
	for i, high := range tableMaxima(r.Tables, r.options.TableMaximum) {
		content = append(content, r.Tables[i].Type, 1)
		content = binary.AppendUvarint(content, uint64(r.Tables[i].Min))
		content = binary.AppendUvarint(content, uint64(high))
		r.result.TableMinimum += r.Tables[i].Min
		r.result.TableMaximum += high
	}
	if !r.analysis.growsTables {
		r.result.TableMaximum = r.result.TableMinimum
	}
	r.bytes(sectionTable)
	r.uvarint(len(content))
	r.bytes(content...)
}

// content writes the content of a section with function indices in it, or with
// something added.
func (r *rewriter) content(s span, added addition) {
	if s.id == 0 {
		r.uvarint(added.count)
		r.bytes(added.entries.out...)
		return
	}
	d := r.again(s)
	c := &copier{writer: &r.writer, from: d, copied: s.body}
	r.uvarint(d.u32() + added.count)
	c.copied, d.pos = d.pos, s.body
	switch s.id {
	case sectionGlobal, sectionExport, sectionElement:
		d.onFunction = c.shiftFunction
		d.readContent(s.id)
	case sectionCode:
		r.instrument(c)
	}
	c.copyTo(s.end)
	r.bytes(added.entries.out...)
}

// find gives the section of that id, or one of id 0.
func (m *Module) find(id byte) span {
	for _, s := range m.sections {
		if s.id == id {
			return s
		}
	}
	return span{}
}

// again is a decoder for another walk over a section of a decoded module.
func (m *Module) again(s span) *decoder {
	scratch := *m
	scratch.Figures = Limits{Functions: m.Figures.Functions}
	scratch.globals = slices.Clip(m.globals) // walks add to it
	return &decoder{
		reader: reader{module: m.binary, pos: s.body, end: s.end, section: sectionName(s.id)},
		Module: &scratch,
	}
}

package wasm

import (
	"maps"
	"slices"
	"strconv"
)

// rewriter writes a module again.
type rewriter struct {
	*Module
	writer
	options  RewriteOptions
	analysis *analysis
	plan     dataPlan
	result   Rewritten

	added [sectionTag]addition // to each section

	// Indices of what is added.
	interrupt             int // functions; those that follow are 0 if not needed
	spend, spendRange     int
	grow, fill, copy      int
	units, depth, changed int         // globals
	blocks                map[int]int // types () -> (results) by the type of a function
	references            map[int]int // globals that hold references to functions, by function
	inits                 map[int]int // functions instead of memory.init, by segment
}

// addition is entries that are put behind those of a vector.
type addition struct {
	count   int
	entries writer
}

// next is the writer of one more entry.
func (a *addition) next() *writer {
	a.count++
	return &a.entries
}

// layOut decides what is added.
func (r *rewriter) layOut() {
	r.interrupt = r.imported.functions
	imports := r.added[sectionImport].next()
	imports.name(SandboxModule)
	imports.name(ImportInterrupt)
	imports.bytes(KindFunction)
	imports.uvarint(r.addType([]byte{typeI32}, nil))

	r.units = r.addGlobal(typeI64, ExportUnits, r.options.Units)
	r.depth = r.addGlobal(typeI32, ExportDepth, int64(r.options.Depth))
	if r.analysis.changes {
		r.changed = r.addGlobal(typeI32, ExportChanged, 0)
	}
	if r.analysis.spends {
		r.spend = r.addFunction([]byte{typeI64}, nil, r.spendBody())
	}
	if r.analysis.ranges {
		r.spendRange = r.addFunction([]byte{typeI32}, []byte{typeI32}, r.spendRangeBody())
	}
	if r.analysis.grows {
		r.grow = r.addFunction([]byte{typeI32}, []byte{typeI32}, r.growBody())
	}
	if r.analysis.fills {
		r.fill = r.addFunction([]byte{typeI32, typeI32, typeI32}, nil, r.fillBody())
	}
	if r.analysis.copies {
		r.copy = r.addFunction([]byte{typeI32, typeI32, typeI32}, nil, r.copyBody())
	}
	r.addInits()
	r.addStart()
	r.addBlockTypes()
	r.addReferences()
	r.exportGlobals()
}

// addInits adds a function for each segment that code copies from and that is longer
// than a piece.
func (r *rewriter) addInits() {
	r.inits = map[int]int{}
	s := r.find(sectionData)
	if len(r.analysis.inits) == 0 || s.id != sectionData {
		return
	}
	d := r.again(s)
	for segment := range d.u32() {
		if size := len(d.readDataSegment().content); size > piece && r.analysis.inits[segment] {
			r.inits[segment] = r.addFunction([]byte{typeI32, typeI32, typeI32}, nil, r.initBody(segment, size))
		}
	}
}

// addStart adds a function that calls the start function, whose type the runtime checks
// as it would have done: it must be () -> ().
func (r *rewriter) addStart() {
	s := r.find(sectionStart)
	if s.id != sectionStart {
		return
	}
	start := r.again(s).u32()
	if start >= r.imported.functions {
		start++ // the host's import is before it
	}
	var w writer
	w.call(start)
	w.bytes(opEnd)
	r.addExport(ExportStart, KindFunction, r.addFunction(nil, nil, w))
}

// addReferences adds a global for each function that code refers to, with the
// reference in it: wazero makes one on the host's heap each time that ref.func
// runs, and frees it with the instance.
func (r *rewriter) addReferences() {
	r.references = map[int]int{}
	r.result.References = len(r.analysis.references)
	for _, f := range slices.Sorted(maps.Keys(r.analysis.references)) {
		r.references[f] = len(r.globals) + r.added[sectionGlobal].count
		w := r.added[sectionGlobal].next()
		if f >= r.imported.functions {
			f++ // the host's import is before it
		}
		w.bytes(typeFuncref, 0, opRefFunc)
		w.uvarint(f)
		w.bytes(opEnd)
	}
}

// addType adds a type of functions and gives its index.
func (r *rewriter) addType(params, results []byte) int {
	index := len(r.types) + r.added[sectionType].count
	w := r.added[sectionType].next()
	w.bytes(typeFunction)
	w.uvarint(len(params))
	w.bytes(params...)
	w.uvarint(len(results))
	w.bytes(results...)
	return index
}

// addGlobal adds a mutable global of an integer type and gives its index.
func (r *rewriter) addGlobal(typ byte, export string, value int64) int {
	index := len(r.globals) + r.added[sectionGlobal].count
	w := r.added[sectionGlobal].next()
	w.bytes(typ, 1)
	if typ == typeI32 {
		w.i32Const(value)
	} else {
		w.i64Const(value)
	}
	w.bytes(opEnd)
	r.addExport(export, KindGlobal, index)
	return index
}

func (r *rewriter) addExport(name string, kind byte, index int) {
	w := r.added[sectionExport].next()
	w.name(name)
	w.bytes(kind)
	w.uvarint(index)
}

// addFunction adds a function without locals and gives its index, which comes
// after those of the module's own functions.
func (r *rewriter) addFunction(params, results []byte, instructions writer) int {
	index := len(r.functions) + 1 + r.added[sectionFunction].count
	r.added[sectionFunction].next().uvarint(r.addType(params, results))
	w := r.added[sectionCode].next()
	w.uvarint(len(instructions.out) + 1)
	w.bytes(0)
	w.bytes(instructions.out...)
	return index
}

// spendBody is a function that takes an i64, subtracts that many units and
// calls the host below zero.
func (r *rewriter) spendBody() writer {
	var w writer
	w.global(opGlobalGet, r.units)
	w.bytes(opLocalGet, 0, opI64Sub)
	w.global(opGlobalSet, r.units)
	w.interruptBelowZero(r.units, r.interrupt)
	w.bytes(opEnd)
	return w
}

// spendRangeBody is a function that takes the length of a range, pays for it and
// gives the length back.
func (r *rewriter) spendRangeBody() writer {
	var w writer
	r.payRange(&w, 0)
	w.bytes(opLocalGet, 0, opEnd)
	return w
}

// payRange pays for a range whose length is in a local: a unit for each 16.
func (r *rewriter) payRange(w *writer, length byte) {
	w.global(opGlobalGet, r.units)
	w.bytes(opLocalGet, length)
	w.i32Const(4)
	w.bytes(opI32ShrU, opI64ExtendI32U, opI64Sub)
	w.i64Const(rangeUnits)
	w.bytes(opI64Sub)
	w.global(opGlobalSet, r.units)
	w.interruptBelowZero(r.units, r.interrupt)
}

// addBlockTypes adds the types of the blocks around bodies that have several results.
func (r *rewriter) addBlockTypes() {
	r.blocks = map[int]int{}
	for i, f := range r.analysis.functions {
		t := r.functions[r.imported.functions+i]
		results := r.types[t].results
		if _, known := r.blocks[t]; known || !f.counted || results < 2 {
			continue
		}
		at := r.types[t].at
		r.blocks[t] = r.addType(nil, r.binary[at:at+results])
	}
}

func (r *rewriter) exportGlobals() {
	defined := len(r.globals) - r.imported.globals
	r.result.Globals = make([]Global, 0, defined)
	entries := &r.added[sectionExport].entries
	entries.out = slices.Grow(entries.out, defined*(len(exportGlobal)+10))
	for i := r.imported.globals; i < len(r.globals); i++ {
		if g := r.globals[i]; g.mutable {
			name := exportGlobal + strconv.Itoa(i)
			r.addExport(name, KindGlobal, i)
			r.result.Globals = append(r.result.Globals, Global{name, g.typ})
		}
	}
}

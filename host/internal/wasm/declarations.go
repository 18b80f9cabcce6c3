package wasm

import (
	"bytes"
	"fmt"
)

// Kinds of imports and exports.
const (
	KindFunction byte = iota
	KindTable
	KindMemory
	KindGlobal
	kindTag // of the exceptions proposal
)

// Table is a table that the module defines.
type Table struct {
	Type     byte // of its elements, as the binary format states it
	Min, Max int  // elements
	Bounded  bool // Max is stated
}

// Types of values.
const (
	typeI32, typeI64, typeF32, typeF64, typeV128 = 0x7f, 0x7e, 0x7d, 0x7c, 0x7b
	typeFuncref, typeExternref                   = 0x70, 0x6f
	typeExnref                                   = 0x69
	typeRefNull, typeRef                         = 0x63, 0x64
	typeFunction                                 = 0x60
)

const (
	maxPages   = 1 << 16 // of a 32-bit memory
	memoryPage = 1 << 16 // bytes
)

func (d *decoder) readTypes() {
	n := d.count("types", 3, d.limits.Types, "Types")
	d.types = make([]arity, 0, n)
	for range n {
		at := d.pos
		switch form := d.byte(); form {
		case typeFunction:
			t := arity{params: d.readValueTypes("parameters")}
			paramsEnd := d.pos
			t.results = d.readValueTypes("results")
			if d.err != nil {
				return
			}
			t.at = d.pos - t.results // each takes a byte
			d.types = append(d.types, t)
			d.Interface.Types = append(d.Interface.Types, typeText(d.module[paramsEnd-t.params:paramsEnd], d.module[t.at:d.pos]))
		case 0x4e, 0x4f, 0x50, 0x5e, 0x5f: // recursive, final, sub, array, struct
			d.unsupported(at, "a type", collector)
		default:
			d.malformed(at, "a type begins with %#x", form)
		}
		if d.err != nil {
			return
		}
	}
	d.Figures.Types = n
}

// readValueTypes reads a vector of types and gives its length.
func (d *decoder) readValueTypes(what string) int {
	at := d.pos
	n := d.count(what+" of a type", 1, d.limits.Parameters, "Parameters")
	if d.Figures.TypeValues += n; d.Figures.TypeValues > d.limits.TypeValues {
		d.over(at, d.limits.TypeValues, "TypeValues", "the types have %d parameters and results or more", d.Figures.TypeValues)
	}
	for range n {
		d.valueType()
	}
	d.Figures.Parameters = max(d.Figures.Parameters, n)
	return n
}

// valueType reads the type of a value.
func (r *reader) valueType() byte {
	at := r.pos
	t := r.byte()
	switch t {
	case typeI32, typeI64, typeF32, typeF64, typeV128, typeFuncref, typeExternref:
	default:
		r.wrongType(at, t)
	}
	return t
}

// referenceType reads the type of a reference.
func (r *reader) referenceType() byte {
	at := r.pos
	t := r.byte()
	if t != typeFuncref && t != typeExternref {
		r.wrongType(at, t)
	}
	return t
}

func (r *reader) wrongType(at int, t byte) {
	switch {
	case t == typeExnref:
		r.unsupported(at, "a value", exceptions)
	case t == typeRefNull || t == typeRef:
		r.unsupported(at, "a value", references)
	case t > typeRef && t <= 0x74: // abstract heap types
		r.unsupported(at, "a value", collector)
	default:
		r.malformed(at, "no value has the type %#x", t)
	}
}

func (d *decoder) readImports() {
	n := d.count("imports", 4, d.limits.Imports, "Imports")
	d.Interface.Imports = make([]Import, 0, n)
	for range n {
		i := Import{Module: string(d.freeName()), Name: string(d.freeName())}
		at := d.pos
		i.Kind = d.byte()
		switch i.Kind {
		case KindFunction:
			i.Type = d.readTypeIndex()
			d.functions = append(d.functions, i.Type)
		case KindTable:
			d.readTable()
		case KindMemory:
			d.readMemory()
		case KindGlobal:
			d.globals = append(d.globals, d.readGlobalType())
		case kindTag:
			d.unsupported(at, "an import", exceptions)
		default:
			d.malformed(at, "no import has the kind %d", i.Kind)
		}
		if d.err != nil {
			return
		}
		d.Interface.Imports = append(d.Interface.Imports, i)
	}
	d.Figures.Imports = n
	d.imported.functions, d.imported.globals = len(d.functions), len(d.globals)
}

// freeName reads a name that the author of the module has chosen.
func (d *decoder) freeName() []byte {
	at := d.pos
	name := d.name()
	if d.Figures.NameBytes += len(name); d.Figures.NameBytes > d.limits.NameBytes {
		d.over(at, d.limits.NameBytes, "NameBytes", "the names of imports and exports are %d bytes long or more", d.Figures.NameBytes)
		return nil
	}
	if !d.rewritten && bytes.HasPrefix(name, []byte(SandboxModule)) {
		d.refuse(at, Error{
			Reason: fmt.Sprintf("the name %.80q begins with %s, and such names are the host's own", name, SandboxModule),
			Hint:   "give it another name",
		})
	}
	return name
}

func (d *decoder) readTypeIndex() int {
	at := d.pos
	i := d.u32()
	if d.err == nil && i >= len(d.types) {
		d.malformed(at, "type %d is used and there are %d", i, len(d.types))
		return 0
	}
	return i
}

func (d *decoder) readFunctions() {
	n := d.count("functions", 1, d.limits.Functions, "Functions")
	all := make([]int, len(d.functions), len(d.functions)+n)
	copy(all, d.functions)
	d.functions = all
	for range n {
		d.functions = append(d.functions, d.readTypeIndex())
	}
	d.Figures.Functions = n
}

func (d *decoder) readTables() {
	n := d.count("tables", 3, d.limits.Tables, "Tables")
	for range n {
		d.Tables = append(d.Tables, d.readTable())
	}
	d.Figures.Tables = n
}

func (d *decoder) readTable() Table {
	at := d.pos
	if d.left() > 0 && d.module[at] == 0x40 { // begins a table with an initial value
		d.unsupported(at, "a table", references)
	}
	t := Table{Type: d.referenceType()}
	at = d.pos
	t.Min, t.Max, t.Bounded = d.readLimits("a table")
	if d.Figures.TableMinimum += t.Min; d.Figures.TableMinimum > d.limits.TableMinimum {
		d.over(at, d.limits.TableMinimum, "TableMinimum", "the tables start with %d elements or more", d.Figures.TableMinimum)
	}
	return t
}

func (d *decoder) readMemories() {
	at := d.pos
	n := d.u32()
	if n > 1 {
		d.unsupported(at, "the module", memories)
	}
	for range min(n, 1) {
		d.memory = d.readMemory()
	}
}

// readMemory gives the pages with which a memory begins.
func (d *decoder) readMemory() int {
	at := d.pos
	low, high, bounded := d.readLimits("a memory")
	if low > maxPages || bounded && high > maxPages {
		d.malformed(at, "a memory has more than %d pages", maxPages)
	}
	d.Interface.Memories = append(d.Interface.Memories, Memory{low, high, bounded})
	return low
}

// readLimits reads the bounds of a table or memory.
func (d *decoder) readLimits(what string) (low, high int, bounded bool) {
	at := d.pos
	switch flags := d.byte(); {
	case flags > 0x0f:
		d.malformed(at, "%s has bounds of the form %#x", what, flags)
	case flags&0x08 != 0:
		d.unsupported(at, what, pageSizes)
	case flags&0x04 != 0:
		d.unsupported(at, what, memory64)
	case flags&0x02 != 0:
		d.unsupported(at, what, threads)
	default:
		bounded = flags&0x01 != 0
	}
	low = d.u32()
	if bounded {
		if high = d.u32(); high < low {
			d.malformed(at, "%s has the maximum %d, less than its minimum %d", what, high, low)
		}
	}
	return low, high, bounded
}

func (d *decoder) readGlobals() {
	n := d.count("globals", 5, d.limits.Globals, "Globals")
	for i := 0; i < n && d.err == nil; i++ {
		g := d.readGlobalType()
		d.constant() // which may use those before it
		d.globals = append(d.globals, g)
	}
	d.Figures.Globals = n
}

func (d *decoder) readGlobalType() global {
	t := d.valueType()
	at := d.pos
	mutability := d.byte()
	if mutability&^0x03 != 0 {
		d.malformed(at, "a global has the mutability %#x", mutability)
	} else if mutability&0x02 != 0 {
		d.unsupported(at, "a global", threads)
	}
	return global{t, mutability&0x01 != 0}
}

// globalIndex reads which global is used. There must be one, for the host adds
// its own behind the module's.
func (d *decoder) globalIndex() int {
	at := d.pos
	i := d.u32()
	if d.err == nil && i >= len(d.globals) {
		d.malformed(at, "global %d is used and there are %d", i, len(d.globals))
	}
	return i
}

// functionIndex reads which function is used. There must be one, see globalIndex.
func (d *decoder) functionIndex() int {
	at := d.pos
	i := d.u32()
	if i >= len(d.functions) {
		d.malformed(at, "function %d is used and there are %d", i, len(d.functions))
		return 0
	}
	if d.onFunction != nil {
		d.onFunction(at, i)
	}
	return i
}

// declare reads which function is used, outside of code: code may refer to it.
func (d *decoder) declare() int {
	i := d.functionIndex()
	if d.err == nil {
		if d.declared == nil {
			d.declared = make([]bool, len(d.functions))
		}
		d.declared[i] = true
	}
	return i
}

// reference reads to which function code refers. It must be declared, because
// wazero does not see these instructions, see instrumenter.refer.
func (b *body) reference(at int) {
	b.function = b.functionIndex()
	if b.err == nil && b.checks && (b.declared == nil || !b.declared[b.function]) {
		b.malformed(at, "%s refers to function %d, which nothing else refers to or exports", b.subject(), b.function)
	}
}

func (d *decoder) readExports() {
	n := d.count("exports", 3, d.limits.Exports, "Exports")
	for i := 0; i < n && d.err == nil; i++ {
		e := Export{Name: string(d.freeName())}
		d.HasExport = d.HasExport || d.options.Export != "" && e.Name == d.options.Export
		at := d.pos
		switch e.Kind = d.byte(); e.Kind {
		case KindFunction:
			e.Index = d.declare()
			if d.err == nil {
				e.Type = d.functions[e.Index]
			}
		case KindGlobal:
			e.Index = d.globalIndex()
		case KindTable, KindMemory:
			e.Index = d.u32()
		case kindTag:
			d.unsupported(at, "an export", exceptions)
		default:
			d.malformed(at, "no export has the kind %d", e.Kind)
		}
		d.Interface.Exports = append(d.Interface.Exports, e)
	}
	d.Figures.Exports = n
}

func (d *decoder) readStart() { d.functionIndex() }

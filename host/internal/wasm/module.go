package wasm

import (
	"bytes"
	"fmt"
)

// Section ids of the binary format, section 5.5.2 of the specification.
const (
	sectionCustom = iota
	sectionType
	sectionImport
	sectionFunction
	sectionTable
	sectionMemory
	sectionGlobal
	sectionExport
	sectionStart
	sectionElement
	sectionCode
	sectionData
	sectionDataCount
	sectionTag // of the exceptions proposal
)

const headerSize = 8

// Options of [Decode]. The zero value works.
type Options struct {
	Limits Limits

	// Custom names the custom section to keep, of CustomSize bytes at most.
	// Default: none is kept.
	Custom     string
	CustomSize int

	// Export names the export to look for. Default: none.
	Export string
}

// Module is what is known of a module that is within the limits. It refers to
// the decoded bytes, which must not change.
type Module struct {
	Interface Interface
	Tables    []Table
	Custom    []byte // content of the first custom section of the asked name; nil without
	Names     Names  // of functions
	Figures   Limits // what the module has of each; the largest one of what is limited singly

	HasExport bool // there is one of the asked name

	binary    []byte
	limits    Limits // with all defaults
	sections  []span // without custom sections
	types     []arity
	functions []int    // types of imported and defined functions
	globals   []global // imported and defined ones
	imported  struct{ functions, globals int }
	memory    int // pages with which the memory begins that the module defines; 0 without
}

// span is where a section is: its id at start, its content from body to end.
type span struct {
	id               byte
	start, body, end int
}

// arity is how many values a function or block takes and gives. The types of a
// function's results are stated at an offset of the file.
type arity struct{ params, results, at int }

// global is a variable of the module.
type global struct {
	typ     byte
	mutable bool
}

// Decode walks a module. It fails with an *[Error].
func Decode(binary []byte, options Options) (*Module, error) {
	if fault := checkHeader(binary); fault != nil {
		return nil, fault
	}
	d := &decoder{
		reader:  reader{module: binary, pos: headerSize, end: len(binary)},
		options: options, dataCount: -1, readBody: (*body).readInstructions, checks: true,
		Module: &Module{binary: binary, limits: options.Limits.withDefaults()},
	}
	last := byte(sectionCustom)
	for d.pos < len(binary) && d.err == nil {
		last = d.readSection(last)
	}
	d.checkCounts()
	if d.err != nil {
		return nil, d.err
	}
	return d.Module, nil
}

// decoder is a walk over one module.
type decoder struct {
	reader
	*Module
	options   Options
	bodies    int
	dataCount int // -1 without that section

	// What is to be called with each index of a function and each label of a
	// branch, and the offset where it begins; nil for nothing.
	onFunction, onLabel func(at, index int)

	declared  []bool      // functions that code may refer to, see declare
	readBody  func(*body) // reads each function's instructions
	checks    bool        // functions that code refers to must be declared
	rewritten bool        // the module may have the host's own names
}

// readSection reads the next section, which comes after the last one, and
// gives its id unless it is a custom one.
func (d *decoder) readSection(last byte) byte {
	start := d.pos
	id := d.byte()
	d.section = sectionName(id)
	if !d.inOrder(start, id, last) {
		return last
	}
	size := d.u32()
	if size > d.left() {
		d.malformed(start, "it is %d bytes long and the file ends after %d of them", size, d.left())
		return last
	}
	s := span{id, start, d.pos, d.pos + size}
	d.end = s.end
	d.readContent(id)
	if d.err == nil && d.pos != s.end {
		d.malformed(d.pos, "%d bytes are left at its end", s.end-d.pos)
	}
	d.end = len(d.module)
	if id == sectionCustom {
		return last
	}
	d.sections = append(d.sections, s)
	return id
}

func (d *decoder) readContent(id byte) {
	switch id {
	case sectionCustom:
		d.readCustom()
	case sectionType:
		d.readTypes()
	case sectionImport:
		d.readImports()
	case sectionFunction:
		d.readFunctions()
	case sectionTable:
		d.readTables()
	case sectionMemory:
		d.readMemories()
	case sectionGlobal:
		d.readGlobals()
	case sectionExport:
		d.readExports()
	case sectionStart:
		d.readStart()
	case sectionElement:
		d.readElementSegments()
	case sectionDataCount:
		d.readDataCount()
	case sectionCode:
		d.readCode()
	case sectionData:
		d.readDataSegments()
	}
}

// inOrder checks that a section may come after the last one.
func (d *decoder) inOrder(at int, id, last byte) bool {
	switch {
	case id == sectionCustom:
	case id == sectionTag:
		d.unsupported(at, "the module", exceptions)
	case id > sectionTag:
		d.malformed(at, "no section has the number %d", id)
	case id == last:
		d.malformed(at, "there are two of it")
	case rank(id) < rank(last):
		d.malformed(at, "it comes after %s", sectionName(last))
	}
	return d.err == nil
}

// rank is a section's place. The data count section came late and got the last
// number, but comes before the code that is checked with it.
func rank(id byte) int {
	if id == sectionDataCount {
		return 2*sectionElement + 1
	}
	return 2 * int(id)
}

func sectionName(id byte) string {
	names := [...]string{"custom", "type", "import", "function", "table", "memory", "global",
		"export", "start", "element", "code", "data", "data count", "tag"}
	if int(id) >= len(names) {
		return "an unknown section"
	}
	return "the " + names[id] + " section"
}

// readCustom passes over a custom section, unless it is the one to keep.
func (d *decoder) readCustom() {
	start := d.pos
	name, from := d.name(), d.pos
	d.pos = d.end
	if size := d.end - from; d.err == nil && string(name) == "name" && d.Names.section == nil && size <= maxNames {
		d.Names.section = append([]byte{}, d.module[from:d.end]...)
	}
	if d.err != nil || d.Custom != nil || d.options.Custom == "" || string(name) != d.options.Custom {
		return
	}
	if size := d.end - from; size > d.options.CustomSize {
		d.refuse(start, Error{
			Limit:  d.options.CustomSize,
			Reason: fmt.Sprintf("%s is %d bytes long and the limit is %d", name, size, d.options.CustomSize),
			Hint:   "make it smaller",
		})
		return
	}
	d.Custom = append([]byte{}, d.module[from:d.end]...)
}

// checkCounts compares sections that must agree with each other.
func (d *decoder) checkCounts() {
	if d.err != nil {
		return
	}
	if d.bodies != d.Figures.Functions {
		d.section = sectionName(sectionCode)
		d.malformed(len(d.module), "it is missing, and %d functions are declared", d.Figures.Functions)
	}
	if d.dataCount >= 0 && d.dataCount != d.Figures.DataSegments {
		d.section = sectionName(sectionDataCount)
		d.malformed(len(d.module), "it announces %d data segments and there are %d", d.dataCount, d.Figures.DataSegments)
	}
}

// checkHeader identifies other kinds of files than core modules.
func checkHeader(file []byte) *Error {
	const build = "a Go program is built for it with GOOS=wasip1 GOARCH=wasm"
	switch {
	case bytes.HasPrefix(file, []byte("\x00asm\x01\x00\x00\x00")):
		return nil
	case bytes.HasPrefix(file, []byte("\x00asm\x0d\x00\x01\x00")):
		return &Error{
			Reason: "a component, and only core modules can be hosted",
			Hint:   "build it as a core module for wasip1 (wasm32-wasip1), or take the core module out with wasm-tools component unbundle",
		}
	case bytes.HasPrefix([]byte("\x00asm"), file), bytes.HasPrefix(file, []byte("\x00asm")) && len(file) < headerSize:
		return &Error{Reason: "not a whole WebAssembly module: the file ends early", Hint: "build or copy it again"}
	case bytes.HasPrefix(file, []byte("\x00asm")):
		return &Error{Reason: "a WebAssembly module of an unknown version", Hint: "build it as a core module, version 1"}
	case bytes.HasPrefix(bytes.TrimSpace(file), []byte("(module")):
		return &Error{Reason: "WebAssembly in its text form", Hint: "assemble it with wat2wasm"}
	}
	return &Error{Reason: "not a WebAssembly module", Hint: build}
}

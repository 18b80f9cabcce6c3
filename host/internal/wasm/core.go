package wasm

import (
	"encoding/binary"
	"slices"
)

// Core is the module without its custom sections, and with a maximum of that
// many elements for each table that states none or a larger one; a table's
// minimum counts if it is larger. A table that does not grow any further is
// within the specification: table.grow may fail at any time. 0 stands for the
// default of [Limits].TableMaximum.
func (m *Module) Core(tableMaximum int) []byte {
	tableMaximum = Limits{TableMaximum: tableMaximum}.withDefaults().TableMaximum
	core := make([]byte, 0, len(m.binary)+8*len(m.Tables))
	core = append(core, m.binary[:headerSize]...)
	for _, s := range m.sections {
		if s.id == sectionTable {
			core = appendTables(core, m.Tables, tableMaximum)
		} else {
			core = append(core, m.binary[s.start:s.end]...)
		}
	}
	return slices.Clip(core)
}

// appendTables appends a table section.
func appendTables(module []byte, tables []Table, maximum int) []byte {
	content := binary.AppendUvarint(nil, uint64(len(tables)))
	for _, t := range tables {
		high := max(maximum, t.Min)
		if t.Bounded {
			high = min(high, t.Max)
		}
		content = append(content, t.Type, 1)
		content = binary.AppendUvarint(content, uint64(t.Min))
		content = binary.AppendUvarint(content, uint64(high))
	}
	module = append(module, sectionTable)
	module = binary.AppendUvarint(module, uint64(len(content)))
	return append(module, content...)
}

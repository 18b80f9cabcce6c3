package wasm

import "slices"

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

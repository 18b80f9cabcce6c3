package host

import (
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/run"
)

// Bytes that an instance takes beside its linear memory, see
// TestFootprintCoversInstances.
const (
	bytesOfInstance = 19 << 10 // with its first native stack
	bytesOfElement  = 56       // of an element segment: each is a function
	bytesOfEntry    = 8        // of a table
	bytesOfGrowth   = 18       // of an entry that a table may grow by, with the copy that growing makes
	bytesOfGlobal   = 120
	bytesOfSegment  = 28
	bytesOfImport   = 48

	firstStack   = 10 << 10 // which is part of an instance
	bytesOfStack = 2        // for each byte: while it grows it is there twice
)

// footprint is the bytes that each instance of a module takes beside its linear
// memory and its native stack.
func footprint(m *wasm.Prepared) int64 {
	f := m.Figures
	return bytesOfInstance + bytesOfElement*int64(f.Elements+m.References) +
		bytesOfEntry*int64(m.TableMinimum) + bytesOfGrowth*int64(m.TableMaximum-m.TableMinimum) +
		bytesOfGlobal*int64(f.Globals+m.References) + bytesOfSegment*int64(m.DataSegments+f.ElementSegments) + bytesOfImport*int64(f.Imports)
}

// beside is what a call holds beside linear memory and native stack: its instance,
// its output and its log.
func (i *image) overhead(limits run.Limits) int64 {
	return i.footprint + limits.Output + limits.Log
}

package host

import (
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/run"
)

// Bytes that an instance takes beside its linear memory, see
// TestFootprintCoversInstances.
const (
	bytesOfInstance = 24 << 10 // with its first native stack
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
func footprint(walked *wasm.Module, rewritten *wasm.Rewritten) int64 {
	f := walked.Figures
	return bytesOfInstance + bytesOfElement*int64(f.Elements+rewritten.References) +
		bytesOfEntry*int64(rewritten.TableMinimum) + bytesOfGrowth*int64(rewritten.TableMaximum-rewritten.TableMinimum) +
		bytesOfGlobal*int64(f.Globals+rewritten.References) + bytesOfSegment*int64(f.DataSegments+f.ElementSegments) + bytesOfImport*int64(f.Imports)
}

// beside is what a call holds beside linear memory and native stack: its instance,
// its output and its log.
func (i *image) overhead(limits run.Limits) int64 {
	return i.footprint + limits.Output + limits.Log
}

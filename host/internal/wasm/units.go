package wasm

// What instructions cost beside the one unit of all others, so that a unit never
// takes much longer than others do: the worst that a search has found, on a
// virtual machine whose page faults take 3 µs, is in docs/host.md.
const (
	loadUnits     = 5  // it misses all caches, or is the first access to a page
	storeUnits    = 14 // it is the first write to a page, or to two
	divideUnits   = 4  // also square roots
	branchUnits   = 2  // it is predicted wrongly
	dispatchUnits = 4  // the same, to code that is in no cache
	callUnits     = 4
	indirectUnits = 8
	tableUnits    = 2
	refUnits      = 64   // wazero leaves its native code
	growUnits     = 4096 // the same, and asks the system for memory
	rangeUnits    = 16   // of an operation on a range, which has a unit for each 16 bytes besides
)

// units is what the instruction that was read last costs, without functions that
// it calls and with none of the elements of a range.
func (b *body) units(op byte) int64 {
	switch {
	case op >= opI32Load && op <= opI64Load32U:
		return loadUnits
	case op > opI64Load32U && op <= opI64Store32:
		return storeUnits
	case op >= opI32DivS && op <= opI32RemU, op >= opI64DivS && op <= opI64RemU,
		op == opF32Sqrt, op == opF32Div, op == opF64Sqrt, op == opF64Div:
		return divideUnits
	}
	switch op {
	case opIf, opBr, opBrIf:
		return branchUnits
	case opBrTable:
		return dispatchUnits
	case opCall:
		return callUnits
	case opCallIndirect:
		return indirectUnits
	case opTableGet, opTableSet:
		return tableUnits
	case opRefFunc:
		return refUnits
	case opVector:
		return vectorUnits(b.number)
	}
	return 1
}

// vectorUnits is what a vector instruction costs.
func vectorUnits(number int) int64 {
	switch {
	case number == vectorStore, number >= vectorStoreLane-3 && number <= vectorStoreLane:
		return storeUnits
	case number < vectorStore, number >= vectorLoadLane && number <= vectorLoadZero:
		return loadUnits
	case number > vectorLaneLast: // arithmetic, of which some is a dozen instructions
		return divideUnits / 2
	}
	return 1
}

// What a host grants at a time, for which the costs were found. How long a grant
// lasts depends on the guest: usual code uses it up in some 100 µs, the worst code
// in a few milliseconds.
const (
	usualGrant = 400_000

	// largeGrant is for guests with more bytes of memory than largeMemory, of which
	// so many pages may still be without contents that each store takes 3 µs.
	largeGrant  = 16_000
	largeMemory = 8 << 20
)

// Grant is the units that a guest with so many bytes of memory may use before the
// host looks at it again.
func Grant(memory int) int64 {
	if memory > largeMemory {
		return largeGrant
	}
	return usualGrant
}

// LeastGrant is the grant of a guest whose memory is not known.
const LeastGrant = largeGrant

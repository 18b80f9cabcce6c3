package wasm

// Instructions that the package distinguishes, section 5.4 of the specification.
const (
	opUnreachable   = 0x00
	opNop           = 0x01
	opBlock         = 0x02
	opLoop          = 0x03
	opIf            = 0x04
	opElse          = 0x05
	opEnd           = 0x0b
	opBr            = 0x0c
	opBrIf          = 0x0d
	opBrTable       = 0x0e
	opReturn        = 0x0f
	opCall          = 0x10
	opCallIndirect  = 0x11
	opDrop          = 0x1a
	opSelect        = 0x1b
	opSelectTyped   = 0x1c
	opLocalGet      = 0x20
	opLocalSet      = 0x21
	opLocalTee      = 0x22
	opGlobalGet     = 0x23
	opGlobalSet     = 0x24
	opTableGet      = 0x25
	opTableSet      = 0x26
	opI32Load       = 0x28
	opI64Load32U    = 0x35
	opI64Store32    = 0x3e
	opMemorySize    = 0x3f
	opMemoryGrow    = 0x40
	opI32Const      = 0x41
	opI64Const      = 0x42
	opF32Const      = 0x43
	opF64Const      = 0x44
	opI32Eqz        = 0x45 // the first one of arithmetic
	opI64LtS        = 0x53
	opI32Add        = 0x6a
	opI32DivS       = 0x6d
	opI32RemU       = 0x70
	opI64DivS       = 0x7f
	opI64RemU       = 0x82
	opI32LtS        = 0x48
	opI32GtU        = 0x4b
	opI32LeU        = 0x4d
	opI64GtU        = 0x56
	opI32Sub        = 0x6b
	opI32Or         = 0x72
	opI64Add        = 0x7c
	opI64Shl        = 0x86
	opI32ShrU       = 0x76
	opF32Sqrt       = 0x91
	opF32Div        = 0x95
	opF64Sqrt       = 0x9f
	opF64Div        = 0xa3
	opI64Sub        = 0x7d
	opI64ExtendI32U = 0xad
	opI64Extend32   = 0xc4 // the last one
	noType          = 0x40 // of a block: no parameters and results
	opRefNull       = 0xd0
	opRefIsNull     = 0xd1
	opRefFunc       = 0xd2
	opCollector     = 0xfb // prefixes, followed by the instruction's number
	opBulk          = 0xfc
	opVector        = 0xfd
	opAtomic        = 0xfe
)

// step reads the next instruction and gives its code and where it was.
func (b *body) step() (at int, op byte) {
	at = b.pos
	op = b.byte()
	b.instruction(at, op)
	return at, op
}

// instruction reads one instruction whose code is op, found at an offset.
// Arithmetic and locals come first, they are most of any program.
func (b *body) instruction(at int, op byte) {
	switch {
	case op >= opI32Eqz && op <= opI64Extend32:
	case op >= opLocalGet && op <= opLocalTee, op == opTableGet, op == opTableSet:
		b.u32()
	case op == opGlobalGet, op == opGlobalSet:
		b.globalIndex()
	case op >= opI32Load && op <= opI64Store32:
		b.memoryArgument()
	case op <= opCallIndirect:
		b.control(at, op)
	default:
		b.other(at, op)
	}
}

func (b *body) other(at int, op byte) {
	switch op {
	case opI32Const:
		b.signed(32)
	case opI64Const:
		b.signed(64)
	case opF32Const:
		b.skip(4)
	case opF64Const:
		b.skip(8)
	case opDrop, opSelect, opRefIsNull:
	case opSelectTyped:
		if n := b.u32(); n != 1 {
			b.malformed(at, "a select gives %d values", n)
		}
		b.valueType()
	case opMemorySize, opMemoryGrow:
		b.onlyMemory("an instruction")
	case opRefNull:
		b.referenceType()
	case opRefFunc:
		b.reference(at)
	case opBulk:
		b.bulk(at)
	case opVector:
		b.vector(at)
	default:
		b.unknown(at, op)
	}
}

// unknown refuses an instruction by the proposal it belongs to.
func (b *body) unknown(at int, op byte) {
	switch op {
	case 0x06, 0x07, 0x08, 0x09, 0x0a, 0x18, 0x19, 0x1f: // try, catch, throw, rethrow, throw_ref, delegate, catch_all, try_table
		b.unsupported(at, b.subject(), exceptions)
	case 0x12, 0x13, 0x15: // return_call, return_call_indirect, return_call_ref
		b.unsupported(at, b.subject(), tailCalls)
	case 0x14, 0xd4, 0xd5, 0xd6: // call_ref, ref.as_non_null, br_on_null, br_on_non_null
		b.unsupported(at, b.subject(), references)
	case 0xd3, opCollector: // ref.eq
		b.unsupported(at, b.subject(), collector)
	case opAtomic:
		b.unsupported(at, b.subject(), threads)
	default:
		b.malformed(at, "%s has the unknown instruction %#x", b.subject(), op)
	}
}

// memoryArgument reads alignment and offset of an access to memory. Bit 6 of
// the alignment announces the index of a memory.
func (b *body) memoryArgument() {
	at := b.pos
	if align := b.u32(); align&^0x3f == 0x40 {
		b.unsupported(at, b.subject(), memories)
	} else if align > 0x3f {
		b.malformed(at, "%s has an access to memory with the alignment %#x", b.subject(), align)
	}
	b.u32()
}

// vectorNumber reads which vector instruction it is. The number must be as
// short as it can be, because wazero reads its first byte only.
func (b *body) vectorNumber() int {
	at := b.pos
	n := b.u32()
	if length := b.pos - at; n < 0x80 && length > 1 || n < 0x4000 && length > 2 {
		b.malformed(at, "%s has a vector instruction whose number is padded", b.subject())
	}
	return n
}

// Numbers of operations on whole ranges.
const (
	bulkMemoryInit = 8 + iota
	bulkDataDrop
	bulkMemoryCopy
	bulkMemoryFill
	bulkTableInit
	bulkElemDrop
	bulkTableCopy
	bulkTableGrow
	bulkTableSize
	bulkTableFill
)

// bulk reads conversions that saturate and operations on whole ranges.
func (b *body) bulk(at int) {
	b.number = b.u32()
	switch b.number {
	case 0, 1, 2, 3, 4, 5, 6, 7: // conversions
	case bulkMemoryInit:
		b.segment = b.u32()
		b.onlyMemory("an instruction")
	case bulkMemoryCopy:
		b.onlyMemory("an instruction")
		b.onlyMemory("an instruction")
	case bulkMemoryFill:
		b.onlyMemory("an instruction")
	case bulkDataDrop:
		b.segment = b.u32()
	case bulkElemDrop, bulkTableGrow, bulkTableSize, bulkTableFill:
		b.u32()
	case bulkTableInit, bulkTableCopy:
		b.u32()
		b.u32()
	default:
		b.malformed(at, "%s has the unknown instruction 0xfc %d", b.subject(), b.number)
	}
}

// Numbers of vector instructions that have operands in the code.
const (
	vectorStore     = 0x0b // the last one of plain loads and stores
	vectorConst     = 0x0c
	vectorShuffle   = 0x0d
	vectorLane      = 0x15 // the first one that names a lane
	vectorLaneLast  = 0x22
	vectorLoadLane  = 0x54 // the first one that loads or stores a lane
	vectorStoreLane = 0x5b // the last one
	vectorLoadZero  = 0x5d // the last one that loads and fills with zeros
	vectorLast      = 0xff
)

// vector reads an instruction of fixed-width SIMD.
func (b *body) vector(at int) {
	b.number = b.vectorNumber()
	switch n := b.number; {
	case n > vectorLast:
		b.unsupported(at, b.subject(), relaxed)
	case n <= vectorStore:
		b.memoryArgument()
	case n == vectorConst, n == vectorShuffle:
		b.skip(16)
	case n >= vectorLane && n <= vectorLaneLast:
		b.skip(1)
	case n >= vectorLoadLane && n <= vectorStoreLane:
		b.memoryArgument()
		b.skip(1)
	case n > vectorStoreLane && n <= vectorLoadZero:
		b.memoryArgument()
	case isVectorGap(n):
		b.malformed(at, "%s has the unknown instruction 0xfd %d", b.subject(), n)
	}
}

// isVectorGap reports whether the specification gives the number to nothing.
func isVectorGap(n int) bool {
	switch n {
	case 0x9a, 0xa2, 0xa5, 0xa6, 0xaf, 0xb0, 0xb2, 0xb3, 0xb4, 0xbb, 0xc2, 0xc5, 0xc6, 0xcf, 0xd0, 0xd2, 0xd3, 0xd4, 0xe2, 0xee:
		return true
	}
	return false
}

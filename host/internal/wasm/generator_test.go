package wasm

import (
	"bytes"
	"encoding/binary"
	"slices"
)

const header = "\x00asm\x01\x00\x00\x00"

// many is a count of 2^32-1 in LEB128.
const many = "\xff\xff\xff\xff\x0f"

// module puts sections behind the header.
func module(sections ...[]byte) []byte {
	return append([]byte(header), slices.Concat(sections...)...)
}

// section is a section of that content.
func section(id byte, content ...[]byte) []byte {
	joined := slices.Concat(content...)
	return append(binary.AppendUvarint([]byte{id}, uint64(len(joined))), joined...)
}

// vector is the count, then the entries.
func vector(entries ...[]byte) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(entries))), slices.Concat(entries...)...)
}

// repeated is a vector of n times the entry.
func repeated(n int, entry string) []byte {
	return append(uleb(n), bytes.Repeat([]byte(entry), n)...)
}

func uleb(n int) []byte { return binary.AppendUvarint(nil, uint64(n)) }

func custom(name, content string) []byte {
	return section(sectionCustom, uleb(len(name)), []byte(name), []byte(content))
}

// code is a module with one function () -> () of that code. It begins with the
// groups of locals and closes all blocks.
func code(locals, instructions string) []byte {
	return functions([]byte(locals + instructions))
}

// oneType is the type () -> (), oneImport a function of it, and oneGlobal a
// mutable i32.
var (
	oneType   = section(sectionType, []byte("\x01\x60\x00\x00"))
	oneImport = section(sectionImport, []byte("\x01\x01a\x01f\x00\x00"))
	oneGlobal = section(sectionGlobal, []byte("\x01\x7f\x01\x41\x00\x0b"))
)

// functions is a module with functions () -> () of those bodies, and a global.
func functions(bodies ...[]byte) []byte {
	var entries [][]byte
	for _, body := range bodies {
		entries = append(entries, append(uleb(len(body)), body...))
	}
	return module(oneType,
		section(sectionFunction, repeated(len(bodies), "\x00")),
		oneGlobal,
		section(sectionCode, vector(entries...)))
}

// complete is a small module that has all sections.
func complete() []byte {
	return module(
		section(sectionType, []byte("\x02\x60\x00\x00\x60\x01\x7f\x01\x7f")),
		section(sectionImport, []byte("\x04\x01a\x01f\x00\x00\x01a\x01t\x01\x70\x00\x01\x01a\x01m\x02\x01\x01\x02\x01a\x01g\x03\x7f\x00")),
		section(sectionFunction, []byte("\x01\x01")),
		section(sectionTable, []byte("\x02\x70\x00\x05\x6f\x01\x01\x02")),
		section(sectionGlobal, []byte("\x02\x7f\x01\x41\x2a\x0b\x7b\x00\xfd\x0c0123456789abcdef\x0b")),
		section(sectionExport, []byte("\x02\x03run\x00\x01\x01m\x02\x00")),
		section(sectionStart, []byte("\x00")),
		section(sectionElement, []byte("\x02\x00\x41\x00\x0b\x01\x00\x05\x70\x01\xd2\x01\x0b")),
		section(sectionDataCount, []byte("\x02")),
		section(sectionCode, []byte("\x01\x08\x01\x02\x7e\x20\x00\x0f\x00\x0b")),
		custom("between", "sections"),
		section(sectionData, []byte("\x02\x00\x41\x00\x0b\x03abc\x01\x01x")),
		custom("manifest", `{"abi":1}`),
		custom("name", "\x01"+many),
	)
}

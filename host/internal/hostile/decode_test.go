package hostile

import (
	"fmt"
	"strings"
)

const huge = "\xff\xff\xff\xff\x0f" // 2^32-1 in LEB128

// decodeBombs is modules whose size is a lie. Each must be refused before
// anything is made of that size.
func decodeBombs() []attack {
	raw := func(sections ...code) func() []byte {
		return func() []byte { return seq(code(header), seq(sections...)) }
	}
	section := func(id byte, content string) code { return seq(code{id}, sized(code(content))) }
	oneFunction := seq(section(1, "\x01\x60\x00\x00"), section(3, "\x01\x00"))
	attacks := []attack{
		{name: "decode/parameters", what: "a type of 2^32-1 parameters", module: raw(section(1, "\x01\x60"+huge))},
		{name: "decode/results", what: "a type of 2^32-1 results", module: raw(section(1, "\x01\x60\x00"+huge))},
		{name: "decode/element init", what: "an element segment of 2^32-1 functions", module: raw(section(9, "\x01\x00\x41\x00\x0b"+huge))},
		{name: "decode/local groups", what: "a function with 2^32-1 groups of locals", module: raw(oneFunction, section(10, "\x01\x07\x00"+huge+"\x0b"))},
		{name: "decode/locals", what: "a function with 2^32-1 locals", module: raw(oneFunction, section(10, "\x01\x08\x01"+huge+"\x7f\x0b"))},
		{name: "decode/branch table", what: "a branch with 2^32-1 targets", module: raw(oneFunction, section(10, "\x01\x0a\x00\x41\x00\x0e"+huge+"\x0b"))},
		{name: "decode/export name", what: "a name of 256 MiB", module: raw(section(7, "\x01\xff\xff\xff\x7f\x00\x00"))},
		{name: "decode/data init", what: "a data segment of 256 MiB", module: raw(section(11, "\x01\x01\xff\xff\xff\x7f"))},
		{name: "decode/section size", what: "a section of 4 GiB in a file of 14 bytes", module: raw(code("\x01" + huge))},
		{name: "decode/memory", what: "a memory of more than 4 GiB", module: raw(section(5, "\x01\x00\x81\x80\x04"))},
		{name: "decode/large tables", what: "4 tables of 2^27 elements, a GiB each", module: raw(section(4, "\x04"+strings.Repeat("\x70\x00\x80\x80\x80\x40", 4)))},
		{name: "decode/many tables", what: "100 tables of 2^27 elements, 100 GiB in 612 bytes", module: raw(section(4, "\x64"+strings.Repeat("\x70\x00\x80\x80\x80\x40", 100)))},
		{name: "decode/deep nesting", what: "blocks in blocks, for a recursive walk", module: func() []byte {
			return runs(many(60_000, block), many(60_000, end), number(0)).bytes()
		}},
		{name: "decode/long body", what: "a function of 577 KiB, which takes a compiler 46 s", module: func() []byte {
			return runs(many(577<<10/6, seq(number(0), ifThen, code{0x01}, end)), number(0)).bytes()
		}},
		{name: "decode/component", what: "a binary of another kind", module: func() []byte { return []byte("\x00asm\x0d\x00\x01\x00") }},
		{name: "decode/nothing", what: "an empty file", module: func() []byte { return nil }},
	}
	for id, name := range map[byte]string{
		1: "types", 2: "imports", 3: "functions", 4: "tables", 5: "memories", 6: "globals",
		7: "exports", 9: "element segments", 10: "bodies", 11: "data segments", 12: "data count",
	} {
		attacks = append(attacks, attack{
			name: "decode/" + name, what: fmt.Sprintf("a section of 2^32-1 %s", name), module: raw(section(id, huge)),
		})
	}
	for i := range attacks {
		attacks[i].want, attacks[i].peak = refused, 100
	}
	return append(attacks, attack{
		name: "decode/names", what: "debugging names of 2^32-1 functions, which nobody needs",
		module: func() []byte {
			g := runs(number(0))
			g.custom = []code{customSection("name", "\x01\x05"+huge), customSection("name", "\x02\x07\x01\x00"+huge)}
			return g.bytes()
		}, want: succeeds, peak: 100,
	})
}

package hostile

import (
	"slices"
	"time"
)

// branchBombs is modules of some 100 KB that take a compiler minutes and gigabytes,
// because each branch begins a block.
func branchBombs() []attack {
	const patience = 90 * time.Second
	kept := seq(block, many(16_000, seq(number(0), load, number(1), brIf(0))), br(0), end, number(0))
	table := seq(block, number(0), op(0x0e, 120_000), many(120_001, code{0}), end, number(0))
	var locals code
	for i := range 4_000 {
		locals = append(locals, seq(number(1), ifThen, get(i%1_000), number64(1), add64, set((i+1)%1_000), end)...)
	}
	return []attack{
		{name: "compile/branches over values", what: "16 000 values that live over 16 000 branches", slow: true, prepares: patience,
			either: true, want: refused + "|" + succeeds, module: func() []byte { return runs(kept).bytes() }}, // within the budget of a child on a fast machine
		{name: "compile/targets", what: "a table of 120 000 branches", slow: true, prepares: patience, want: succeeds, module: func() []byte { return runs(table).bytes() }},
		{name: "compile/locals in ifs", what: "1 000 locals that are set in 4 000 ifs", slow: true, prepares: patience, want: succeeds, module: func() []byte {
			g := runs(locals, number(0))
			g.functions[0].locals = seq(code{1}, uleb(1_000), code{i64})
			return g.bytes()
		}},
	}
}

// unaccounted is modules that hold memory of the host outside of their own.
func unaccounted() []attack {
	const peak = 120
	referring := guest{
		functions: []function{{export: "run", kind: task, body: forever(code{0xd2, 0}, drop)}},
		elements:  []code{{0x03, 0x00, 0x01, 0x00}}, // declares it
	}
	elements := code{0x01, 0x00}
	elements = append(elements, uleb(100_000)...)
	elements = append(elements, slices.Repeat(code{0}, 100_000)...)
	return []attack{
		{name: "account/references", what: "makes references to a function for ever", deadline: time.Second, peak: peak, want: timesOut,
			module: func() []byte { return referring.bytes() }},
		{name: "account/elements", what: "100 000 references in an element segment", peak: peak, deadline: 10 * time.Second, want: succeeds,
			module: func() []byte {
				return guest{functions: runs(number(0)).functions, elements: []code{elements}}.bytes()
			}},
		{name: "account/table", what: "grows its table as far as it goes", peak: peak, want: succeeds, module: func() []byte {
			return guest{functions: runs(loop, nullFunc, number(1_000), tableGrow, number(-1), ne, brIf(0), end, number(0)).functions, table: &bounds{min: 1, max: -1}}.bytes()
		}},
	}
}

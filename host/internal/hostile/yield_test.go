package hostile

// yields is guests that do much between two checks, or try to. Each has its
// deadline of 100 ms, and is late by what it does without a check.
func yields() []attack {
	const pages = 3_000
	// miss leaves the sum of a local and what lies at a random address.
	miss := seq(get(0), number(1664525), code{0x6c}, number(1013904223), add, tee(0), number(4), code{0x76},
		number(pages<<16/2-1), code{0x71}, load, get(1), add, set(1))
	locals := code{1, 2, i32}
	down := seq(global(0), number(1), add, setGlobal(0), global(0), number(9_000), ltU, ifThen, call(1), end)
	counter := []code{{i32, 1, 0x41, 0, 0x0b}}
	row := guest{pages: pages, functions: []function{{export: "run", kind: task, body: seq(call(1), number(0))}}}
	for f := 2; f <= 300; f++ {
		row.functions = append(row.functions, function{kind: nothing, locals: locals, body: seq(call(f), many(20, miss))})
	}
	row.functions = append(row.functions, inner())
	attacks := []attack{
		{name: "yield/returns of a recursion", what: "9 000 nested calls, each of which has its work before it when it is returned to",
			module: guest{pages: pages, globals: counter, functions: []function{
				{export: "run", kind: task, body: seq(call(1), number(0))},
				{kind: nothing, locals: locals, body: seq(down, many(2_000, miss))},
			}}.bytes},
		{name: "yield/returns of a row", what: "300 functions that call each other, and then work", module: row.bytes},
		{name: "yield/indirect leaves", what: "indirect calls of functions that are too small for a check",
			module: guest{pages: pages, table: &bounds{2, 2}, elements: []code{elementsAt(0, 0, 1)}, functions: []function{
				{export: "run", kind: task, body: seq(forever(many(2_000, callIndirect(1, 1))))},
				{kind: nothing, body: many(15, seq(number(64), load, load, drop))},
			}}.bytes},
		{name: "yield/skipped code", what: "code that is paid for and skipped, then memory that is in no cache",
			module: guest{pages: pages, functions: []function{{export: "run", kind: task, locals: locals, body: forever(
				code{0x02, 0x40}, number(1), brIf(0), many(3_000, seq(get(1), set(1))), end, many(1_000, miss))}}}.bytes},
		{name: "yield/references", what: "references to a function without an end", peak: 300,
			module: guest{functions: []function{{export: "run", kind: task, body: forever(many(1_000, code{0xd2, 0, 0x1a}))}}}.bytes},
		{name: "yield/fill", what: "the whole memory filled again and again",
			module: guest{pages: pages, functions: []function{{export: "run", kind: task,
				body: forever(number(0), number(7), number(pages<<16), memoryFill)}}}.bytes, peak: 500},
		{name: "yield/copy", what: "the whole memory moved by a byte again and again",
			module: guest{pages: pages, functions: []function{{export: "run", kind: task,
				body: forever(number(1), number(0), number(pages<<16-1), memoryCopy)}}}.bytes, peak: 500},
		{name: "yield/random", what: "random numbers for the whole memory", module: guest{
			pages: pages, imports: []imported{{"wasi_snapshot_preview1", "random_get", signature{[]byte{i32, i32}, []byte{i32}}}},
			functions: []function{{export: "run", kind: task, body: forever(number(0), number(pages<<16), call(0), drop)}},
		}.bytes, peak: 500},
	}
	for i := range attacks {
		attacks[i].want = timesOut
		if attacks[i].peak == 0 {
			attacks[i].peak = 450
		}
	}
	attacks[0].want, attacks[1].want = timesOut+"|"+succeeds, timesOut+"|"+succeeds
	return attacks
}

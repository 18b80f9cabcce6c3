package hostile

// loops is guests that do not end by themselves.
func loops() []attack {
	attacks := []attack{
		{name: "loop/empty", what: "a loop of one instruction", module: runs(forever()).bytes},
		{name: "loop/conditional", what: "a loop that goes on by a condition",
			module: runs(loop, number(1), brIf(0), end, unreachable).bytes},
		{name: "loop/nested", what: "loops in loops that each end, 2^40 turns in all", module: nestedLoops},
		{name: "loop/dispatched", what: "a branch table back to the loop's head",
			module: runs(loop, number(5), code{0x0e, 2, 0, 0, 0}, end, unreachable).bytes},
		{name: "loop/calls", what: "a loop that calls the host each time", module: guest{
			imports:   []imported{{"flowhost:task/v1", "should_stop", task}},
			functions: []function{{export: "run", kind: task, body: forever(call(0), drop)}},
		}.bytes},
		{name: "loop/start section", what: "a loop before anything is called", module: guest{
			functions: []function{{export: "run", kind: task, body: number(0)}, inner(forever())},
			start:     1,
		}.bytes},
		{name: "loop/_initialize", what: "a loop in the reactor's initialization", module: guest{
			functions: []function{{export: "run", kind: task, body: number(0)}, {export: "_initialize", kind: nothing, body: forever()}},
		}.bytes},
		{name: "loop/_start", what: "a loop in a command", module: guest{
			functions: []function{{export: "_start", kind: nothing, body: forever()}},
		}.bytes},
		{name: "calls/doubling", what: "no loop: each of 40 functions calls the next twice", module: doubling(call)},
		{name: "calls/indirect doubling", what: "the same through a table",
			module: doubling(func(f int) code { return callIndirect(f, 1) })},
		{name: "calls/doubling in start", what: "the same before anything is called", module: doublingStart},
	}
	for i := range attacks {
		attacks[i].want = timesOut
	}
	return attacks
}

// nestedLoops is 5 loops in each other of 256 turns each.
func nestedLoops() []byte {
	body := code{}
	for local := range 5 {
		body = seq(number(0), set(local), upTo(local, 256, 1, body))
	}
	return guest{functions: []function{{
		export: "run", kind: task, locals: code{1, 5, i32}, body: seq(body, number(0)),
	}}}.bytes()
}

// doubling is function 0, run, that calls the last one of a row: each calls the
// one before it twice, and the first, function 1, does nothing.
func doubling(call func(int) code) func() []byte {
	return func() []byte {
		const row = 40
		g := guest{table: &bounds{row + 2, row + 2}}
		g.functions = []function{{export: "run", kind: task, body: seq(call(row+1), number(0))}, inner()}
		indices := []int{0, 1}
		for f := 2; f <= row+1; f++ {
			g.functions = append(g.functions, inner(call(f-1), call(f-1)))
			indices = append(indices, f)
		}
		g.elements = []code{elementsAt(0, indices...)}
		return g.bytes()
	}
}

func doublingStart() []byte {
	g := guest{start: 41, functions: []function{{export: "run", kind: task, body: number(0)}, inner()}}
	for f := 2; f <= 41; f++ {
		g.functions = append(g.functions, inner(call(f-1), call(f-1)))
	}
	return g.bytes()
}

package hostile

import "time"

// recursions is guests that call themselves without an end. wazero lets a stack
// grow to some 150 MiB: the bounds leave room for that once, not for ten.
func recursions() []attack {
	counts := signature{params: []byte{i32}, results: []byte{i32}}
	attacks := []attack{
		{name: "recursion/plain", what: "a function that calls itself", module: guest{functions: []function{
			{export: "run", kind: task, body: seq(number(0), call(1))},
			{kind: counts, body: seq(get(0), number(1), add, call(1))},
		}}.bytes},
		{name: "recursion/task", what: "the task's own function calls itself", module: runs(call(0)).bytes},
		{name: "recursion/mutual", what: "two functions that call each other", module: guest{functions: []function{
			{export: "run", kind: task, body: seq(number(0), call(1))},
			{kind: counts, body: seq(get(0), call(2))},
			{kind: counts, body: seq(get(0), call(1))},
		}}.bytes},
		{name: "recursion/indirect", what: "a function that calls itself through a table", module: guest{
			functions: []function{
				{export: "run", kind: task, body: seq(number(0), call(1))},
				{kind: counts, body: seq(get(0), callIndirect(0, 1))},
			},
			table: &bounds{1, 1}, elements: []code{elementsAt(0, 1)},
		}.bytes},
		{name: "recursion/start", what: "recursion before anything is called", module: guest{
			functions: []function{{export: "run", kind: task, body: number(0)}, inner(call(1))}, start: 1,
		}.bytes},
		{name: "recursion/in a loop", what: "a function that calls itself in an endless loop", module: guest{functions: []function{
			{export: "run", kind: task, body: seq(call(1), number(0))}, inner(forever(call(1))),
		}}.bytes},
		{name: "recursion/with the host", what: "recursion that logs at each level", module: guest{
			imports: []imported{{"flowhost:task/v1", "log", signature{[]byte{i32, i32, i32, i32, i32}, []byte{i32}}}},
			functions: []function{
				{export: "run", kind: task, body: seq(call(2), number(0))},
				inner(number(1), number(0), number(100), number(0), number(0), call(0), drop, call(2)),
			},
		}.bytes},
		{name: "recursion/after memory", what: "recursion of a guest that was refused memory before", module: guest{functions: []function{
			{export: "run", kind: task, body: seq(number(65_535), memoryGrow, drop, call(1), number(0))}, inner(call(1)),
		}}.bytes},
		{name: "recursion/huge frames", what: "2 000 numbers that live across each call", deadline: 2 * time.Second, answers: 4 * time.Second, module: hugeFrames},
	}
	for i := range attacks {
		attacks[i].want, attacks[i].peak = tooDeep, 500
	}
	return attacks
}

// hugeFrames reads its variables before the recursive call and adds them up
// after it, so that all have to be kept in the frame.
func hugeFrames() []byte {
	const variables = 2_000
	var before, after code
	for i := range variables {
		before = append(before, seq(number(8*i), load64, set(i))...)
		after = append(after, seq(get(i), add64)...)
	}
	return guest{functions: []function{
		{export: "run", kind: task, body: seq(call(1), drop, number(0))},
		{kind: signature{results: []byte{i64}}, locals: seq(code{1}, uleb(variables), code{i64}),
			body: seq(before, call(1), after)},
	}}.bytes()
}

package hostile

import "slices"

// spoilers is guests that change all they can reach, end in different ways, and
// are then called again. The export "check" returns 0 only in an instance that
// nobody has touched; it gives the number of what is not as it was.
func spoilers() []attack {
	var all []step
	var attacks []attack
	for _, how := range []step{
		{"returns", succeeds}, {"traps", traps}, {"exits", exits}, {"loops", timesOut}, {"recurses", tooDeep}, {"fails", "failed status_1"},
	} {
		attacks = append(attacks, attack{
			name: "spoil/" + how.function, what: "all state that a guest has, then it " + how.function,
			module: spoiler, calls: slices.Repeat([]step{{"check", succeeds}, how, {"check", succeeds}}, 4),
		})
		all = append(all, how, step{"check", succeeds})
	}
	return append(attacks, attack{
		name: "spoil/in turn", what: "all of these, one after the other", module: spoiler, calls: slices.Repeat(all, 3), slow: true,
	})
}

// Parts of the spoiler: functions, segments and what the table's entry gives.
const (
	spoil, answer        = 1, 2
	deeper               = 10   // calls itself
	copied, listed       = 1, 1 // passive data, passive elements
	tableEntries         = 4
	memoryPages          = 2
	firstBytes           = 0x73697270 // "pris" as a number
	scratch              = 200        // address
	wholeAnswer    int64 = 1 << 40
)

func spoiler() []byte {
	ending := func(name string, last ...code) function {
		return function{export: name, kind: task, body: seq(call(spoil), seq(last...))}
	}
	return guest{
		imports: []imported{procExit}, pages: memoryPages,
		table: &bounds{tableEntries, -1},
		globals: []code{
			seq(code{i32, 1}, number(7), end), seq(code{i64, 1}, number64(wholeAnswer), end),
		},
		functions: []function{
			inner(spoils()),
			{kind: task, body: number(42)},
			ending("returns", number(0)),
			ending("traps", unreachable),
			ending("exits", number(3), call(0), number(0)),
			ending("loops", forever()),
			{export: "recurses", kind: task, body: seq(call(spoil), call(deeper), number(0))},
			ending("fails", number(1)),
			{export: "check", kind: task, body: checks()},
			inner(call(deeper)),
		},
		elements: []code{elementsAt(0, answer, answer, answer, answer), {1, 0, 1, answer}},
		data:     []code{at(0, "pristine"), passive("data")},
	}.bytes()
}

// spoils overwrites memory, globals and table, makes them grow, and drops the
// segments from which they could be filled again.
func spoils() code {
	return seq(
		number(99), setGlobal(0), number64(-1), setGlobal(1),
		number(0), number(0xff), number(memoryPages*pageSize), memoryFill,
		number(0), nullFunc, number(tableEntries), tableFill,
		nullFunc, number(10), tableGrow, drop,
		number(1), memoryGrow, drop,
		dataDrop(copied), elemDrop(listed))
}

func checks() code {
	// differs returns n if the condition, an i32, holds.
	differs := func(n int, condition ...code) code { return seq(seq(condition...), ifThen, number(n), ret, end) }
	return seq(
		differs(11, global(0), number(7), ne),
		differs(12, global(1), number64(wholeAnswer), ne64),
		differs(13, number(0), load, number(firstBytes), ne),
		differs(14, number(scratch), load),
		differs(15, number(memoryPages*pageSize-4), load),
		differs(16, memorySize, number(memoryPages), ne),
		differs(17, tableSize, number(tableEntries), ne),
		differs(18, callIndirect(3, answer), number(42), ne),
		number(scratch), number(0), number(4), memoryInit(copied), // traps when it was dropped
		differs(19, number(scratch), load, eqz),
		number(3), number(0), number(1), tableInit(listed), // the same
		number(0))
}

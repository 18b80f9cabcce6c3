package hostile

import (
	"os"
	"time"

	"github.com/flowhost/flowhost/host"
)

// compileCommand is this program as a child that compiles a module.
func compileCommand() []string { return []string{os.Args[0], host.CompileArgument} }

// compileBombs is modules within all limits that are as much work for a compiler
// as these allow. They may take their time to be prepared, in which other calls
// continue, but not forever.
func compileBombs() []attack {
	const patience = 20 * time.Second
	of := func(locals code, body ...code) func() []byte {
		return func() []byte {
			return guest{functions: []function{{export: "run", kind: task, locals: locals, body: seq(append(body, number(0))...)}}}.bytes()
		}
	}
	return []attack{
		{name: "compile/many blocks", what: "10 000 blocks one after the other", slow: true, prepares: patience, want: succeeds,
			module: of(nil, many(10_000, seq(number(0), ifThen, code{0x01}, end)))},
		{name: "compile/blocks", what: "4 900 blocks one after the other", want: succeeds,
			module: of(nil, many(4_900, seq(number(0), ifThen, code{0x01}, end)))},
		{name: "compile/loops", what: "4 900 loops one after the other", slow: true, prepares: patience, want: succeeds,
			module: of(nil, many(4_900, seq(loop, end)))},
		{name: "compile/nested loops", what: "3 900 loops in each other", slow: true, prepares: patience, want: succeeds,
			module: of(nil, many(3_900, loop), many(3_900, end))},
		{name: "compile/locals", what: "1 000 locals that live through 1 900 loops", slow: true, prepares: patience, want: succeeds,
			module: of(seq(code{1}, uleb(1_000), code{i64}), many(1_900, seq(loop, get(999), get(500), add64, set(7), end)))},
		{name: "compile/pressure", what: "15 000 values that are needed at a time", slow: true, prepares: patience, want: succeeds,
			module: of(nil, many(15_000, seq(number(0), load)), many(14_999, add), drop)},
		{name: "compile/many functions", what: "15 functions of 4 900 blocks, one after the other", slow: true, prepares: patience, want: succeeds,
			module: func() []byte {
				g := runs(number(0))
				for range 15 {
					g.functions = append(g.functions, inner(many(4_900, seq(number(0), ifThen, code{0x01}, end))))
				}
				return g.bytes()
			}},
		{name: "compile/in the way", what: "4 900 loops, and other modules that are new to the host meanwhile", slow: true, abandon: true, want: timesOut,
			module: of(nil, many(4_900, seq(loop, end)), number(1), drop)},
	}
}

// inner is one that is called by others only, without parameters and results.
func inner(body ...code) function { return function{kind: nothing, body: seq(body...)} }

package hostile

import (
	"time"

	"github.com/flowhost/flowhost/run"
)

const (
	pageSize = 64 << 10
	mebi     = 1 << 20
)

// memoryBombs is guests that take memory, or that keep the host busy with it.
// Operations on much memory are where neither loops nor calls are needed to use
// up time.
func memoryBombs() []attack {
	const patience = time.Second // for guests that end by themselves
	small := run.Limits{Memory: 64 * mebi}
	storm := func(pages int, body ...code) func() []byte {
		g := runs(forever(body...))
		g.pages = pages
		return g.bytes
	}
	straight := func(pages, times int, body ...code) func() []byte {
		return func() []byte {
			g := runs(many(times, seq(body...)), number(0))
			g.pages = pages
			return g.bytes()
		}
	}
	growsBy := func(pages int) code { return seq(number(pages), memoryGrow) }
	const large = 1 << 10 // pages: 64 MiB
	fill := seq(number(0), number(1), number(large*pageSize), memoryFill)
	shift := seq(number(1), number(0), number(large*pageSize-1), memoryCopy)
	return []attack{
		{name: "memory/grow until refused", what: "all of the memory there is, page by page", want: succeeds, limits: small, deadline: patience, peak: 300,
			module: runs(loop, growsBy(1), number(-1), ne, brIf(0), end, number(0)).bytes},
		{name: "memory/grow and touch", what: "the same, and a byte of each page written", want: succeeds, limits: small, deadline: patience, peak: 300,
			module: runs(block, loop, growsBy(1), number(-1), ne, eqz, brIf(1),
				memorySize, number(-1), add, number(pageSize), code{0x6c}, number(1), store, br(0), end, end, number(0)).bytes},
		{name: "memory/grow in one go", what: "4 GiB at once", want: succeeds,
			module: runs(growsBy(65_535), drop, number(0)).bytes},
		{name: "memory/grow for ever", what: "growth that is refused, again and again", want: timesOut,
			module: storm(1, growsBy(65_535), drop)},
		{name: "memory/grow by nothing", what: "growth by 0 pages, which may not be free", want: timesOut,
			module: storm(1, growsBy(0), drop)},
		{name: "memory/trap at the limit", what: "a guest that breaks for lack of memory", want: "trapped memory", limits: small, deadline: patience, peak: 300,
			module: runs(loop, growsBy(16), number(-1), ne, brIf(0), end, unreachable).bytes},
		{name: "memory/minimum over the limit", what: "more memory at the start than a call may have", want: "rejected memory",
			module: func() []byte { g := runs(number(0)); g.pages = 65_536; return g.bytes() }},
		{name: "memory/fill", what: "64 MiB filled in a loop", want: timesOut, module: storm(large, fill), peak: 300},
		{name: "memory/copy", what: "64 MiB shifted by a byte in a loop", want: timesOut, module: storm(large, shift), peak: 300},
		{name: "memory/fill without a loop", what: "64 MiB filled 2 000 times, one after the other", want: timesOut,
			module: straight(large, 2_000, fill), peak: 400},
		{name: "memory/copy without a loop", what: "64 MiB shifted 2 000 times, one after the other", want: timesOut,
			module: straight(large, 2_000, shift), peak: 400},
		{name: "memory/random numbers", what: "64 MiB of random numbers, 2 000 times", want: timesOut, module: func() []byte {
			g := guest{imports: []imported{{"wasi_snapshot_preview1", "random_get", signature{[]byte{i32, i32}, []byte{i32}}}}, pages: large}
			g.functions = []function{{export: "run", kind: task, body: seq(many(2_000, seq(number(0), number(large*pageSize), call(0), drop)), number(0))}}
			return g.bytes()
		}, peak: 400},
	}
}

// tableBombs is the same for tables, which are outside a limit of memory.
func tableBombs() []attack {
	guestOf := func(table bounds, body ...code) func() []byte {
		g := runs(body...)
		g.table = &table
		return g.bytes
	}
	const full = 1_000_000 // elements; more than the preflight leaves is refused
	grow := func(n int) code { return seq(nullFunc, number(n), tableGrow) }
	fill := seq(number(0), nullFunc, tableSize, tableFill)
	shift := seq(number(1), number(0), tableSize, number(-1), add, tableCopy)
	toFull := seq(grow(full-8), drop)
	return []attack{
		{name: "table/grow until refused", what: "a table that grows as far as it may, without a maximum", want: succeeds, deadline: time.Second,
			module: guestOf(bounds{1, -1}, loop, grow(1_000), number(-1), ne, brIf(0), end, number(0))},
		{name: "table/grow in one go", what: "2^28 elements at once, 2 GiB", want: succeeds,
			module: guestOf(bounds{1, -1}, grow(1<<28), drop, number(0))},
		{name: "table/maximum", what: "2^32-1 elements allowed, and all asked for", want: succeeds,
			module: guestOf(bounds{1, 1<<32 - 1}, grow(1<<26), drop, grow(1<<28), drop, number(0))},
		{name: "table/grow for ever", what: "growth that is refused, again and again", want: timesOut,
			module: guestOf(bounds{1, -1}, forever(grow(1<<28), drop))},
		{name: "table/grow by nothing", what: "growth by 0 elements, again and again", want: timesOut,
			module: guestOf(bounds{1, -1}, forever(grow(0), drop))},
		{name: "table/fill", what: "a million elements filled in a loop", want: timesOut,
			module: guestOf(bounds{8, -1}, toFull, forever(fill))},
		{name: "table/copy", what: "a million elements shifted in a loop", want: timesOut,
			module: guestOf(bounds{8, -1}, toFull, forever(shift))},
		{name: "table/fill without a loop", slow: true, prepares: 8 * time.Second, peak: 400, what: "a million elements filled 8 000 times, one after the other", want: timesOut,
			module: guestOf(bounds{8, -1}, toFull, many(8_000, fill), number(0))},
		{name: "table/copy without a loop", slow: true, prepares: 8 * time.Second, peak: 400, what: "a million elements shifted 8 000 times, one after the other", want: timesOut,
			module: guestOf(bounds{8, -1}, toFull, many(8_000, shift), number(0))},
	}
}

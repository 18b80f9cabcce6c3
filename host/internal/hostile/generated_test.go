package hostile

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/flowhost/flowhost/run"
)

// How many generated modules there are in the short and in the long form.
const (
	fewGenerated  = 2
	manyGenerated = 400
)

// generatedModules is modules made by chance of what costs a host more than it
// looks like: functions of all sizes and shapes, direct and indirect calls of
// them, code that is skipped, loads that miss the caches, values that live long,
// operations on much memory. Each repeats one mixture after the other until its
// deadline.
func generatedModules() []attack {
	var attacks []attack
	for seed := range manyGenerated {
		attacks = append(attacks, attack{
			name: fmt.Sprintf("generated/%d", seed), what: "a mixture by chance",
			module: func() []byte { return generate(uint64(seed)) },
			want:   timesOut + "|" + succeeds + "|" + refused + "|" + traps + "|rejected memory",
			either: true, slow: seed >= fewGenerated, peak: 400, prepares: 20 * time.Second, // which may take its time, as in compileBombs
			deadline: 100 * time.Millisecond, limits: run.Limits{Memory: 128 * mebi},
		})
	}
	return attacks
}

// Locals of each generated function.
const (
	lottery  = 0 // the next address, by a linear congruence
	turns    = 1 // of the innermost loop
	scratchA = 2 // whatever is computed
	ownLocal = 3 // the first of those that differ in number
)

// generator makes one module.
type generator struct {
	*rand.Rand
	pages  int
	leaves int // functions that may be called: 1 to leaves, each by those before it only
	locals int // of the function that is being made
	left   int // instructions that may still be made in it, about
}

func generate(seed uint64) []byte {
	g := &generator{Rand: rand.New(rand.NewPCG(seed, 14))}
	g.pages = 1 << g.IntN(11) // up to 64 MiB
	g.leaves = 1 + g.size(40)
	module := guest{pages: g.pages, table: &bounds{g.leaves, g.leaves}}
	module.functions = []function{g.function(0, g.phases)}
	module.functions[0].export, module.functions[0].kind = "run", task
	var entries []int
	for f := 1; f <= g.leaves; f++ {
		module.functions = append(module.functions, g.function(f, g.leaf))
		entries = append(entries, f)
	}
	module.elements = []code{elementsAt(0, entries...)}
	return module.bytes()
}

// size is a number up to most, small ones as likely as large ones.
func (g *generator) size(most int) int {
	return int(math.Exp(g.Float64() * math.Log(float64(most)+1)))
}

// function makes function f. Half of them are so small that checks may be left out.
func (g *generator) function(f int, body func(f int) code) function {
	g.locals = g.size(1_000)
	g.left = 60
	if g.IntN(2) == 0 {
		g.left = g.size(20_000)
	}
	instructions := body(f)
	if f == 0 {
		instructions = seq(instructions, number(0))
	}
	return function{kind: nothing, locals: seq(uleb(1), uleb(ownLocal+g.locals), code{i32}), body: instructions}
}

// phases is the exported function: loops one after the other, the last one of
// which does not end. Earlier ones set what a host believes of the module's speed.
func (g *generator) phases(f int) code {
	var all code
	for range g.IntN(3) {
		all = seq(all, number(0), set(turns), upTo(turns, g.size(1_000_000), 1, g.action(f)))
	}
	return seq(all, loop, g.action(f), br(0), end)
}

func (g *generator) leaf(f int) code {
	var all code
	for g.left > 0 {
		all = seq(all, g.action(f))
	}
	return all
}

// action makes something that takes and leaves no values.
func (g *generator) action(f int) code {
	kind := g.IntN(12)
	if kind < 3 && f < g.leaves { // calls
		g.left--
		callee := f + 1 + g.IntN(g.leaves-f)
		if kind == 0 {
			return call(callee)
		}
		return many(g.repeats(100), callIndirect(callee-1, 1))
	}
	switch kind {
	case 3:
		return g.live()
	case 4:
		return g.skipped()
	case 5:
		return seq(block, many(g.repeats(5_000), seq(get(scratchA), code{0x45, 0x45, 0x45}, get(scratchA), ne, brIf(0))), end)
	case 6:
		return g.table()
	case 7:
		depth := g.repeats(1_000)
		return seq(many(depth, [][]byte{block, loop}[g.IntN(2)]), g.misses(), many(depth, end))
	case 8:
		return g.bulk()
	case 9:
		return many(g.repeats(1_000), seq(get(scratchA), get(scratchA), number(3), code{0x72, 0x6e}, set(scratchA))) // or, div_u
	case 10:
		return seq(block, many(g.repeats(4_000), seq(g.address(), load, brIf(0))), end)
	default:
		return many(g.repeats(1_000), g.misses())
	}
}

// repeats is how often something is repeated, which costs that much.
func (g *generator) repeats(most int) int {
	n := min(g.size(most), max(g.left, 1))
	g.left -= n
	return n
}

// address leaves one that the caches are not likely to have.
func (g *generator) address() code {
	return seq(get(lottery), number(1664525), code{0x6c}, number(1013904223), add, tee(lottery),
		number(g.pages*pageSize-8), code{0x71}) // and
}

func (g *generator) misses() code {
	switch g.IntN(3) {
	case 0:
		return seq(g.address(), load, set(scratchA+g.IntN(g.locals+1)))
	case 1:
		return seq(g.address(), get(scratchA), store)
	default: // one depends on the other
		return seq(get(lottery), number(g.pages*pageSize-8), code{0x71}, load, get(lottery), number(1664525), code{0x6c}, add, set(lottery))
	}
}

// live makes values that are all needed at a time.
func (g *generator) live() code {
	n := g.repeats(2_000)
	return seq(many(n, seq(g.address(), load)), many(n-1, add), set(scratchA))
}

// skipped is code that is jumped over and may be paid for.
func (g *generator) skipped() code {
	var inner code
	for range g.IntN(4) {
		inner = seq(inner, many(g.repeats(6_000), seq(get(scratchA), number(1), add, set(scratchA))))
	}
	return seq(block, number(1), brIf(0), inner, end)
}

// table is a branch table of many targets in a few blocks.
func (g *generator) table() code {
	depth, targets := 1+g.IntN(20), g.repeats(20_000)
	all := seq(many(depth, block), get(lottery), number(0xffff), code{0x71, 0x0e}, uleb(targets))
	for range targets + 1 {
		all = append(all, uleb(g.IntN(depth))...)
	}
	return seq(all, end, many(depth-1, seq(g.misses(), end)))
}

// bulk fills or copies a part of the memory.
func (g *generator) bulk() code {
	g.left--
	length := g.size(g.pages*pageSize - 2)
	if g.IntN(2) == 0 {
		return seq(number(0), number(1), number(length), memoryFill)
	}
	return seq(number(1), number(0), number(length), memoryCopy)
}

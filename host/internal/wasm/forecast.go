package wasm

import "math"

// Forecast bounds what compiling a module costs: wazero's time grows with the
// product of a function's edges and values, and the bound takes every value for
// one that lives across every edge. It is far above what honest code costs and
// never below what any code does. A generator of valid modules holds it to that.
type Forecast struct {
	Work   int64 // nanoseconds of a processor of 2020
	Memory int64 // bytes that the compiler holds at a time
	Worst  int   // function with the most work, by its index in the module that was rewritten
	Heavy  int64 // its work
	Size   int   // its bytes
	Edges  int   // its blocks and branches, with each target of a table
	Values int   // its instructions, variables and what they pass
}

// figures of one function that a forecast is made of.
type figures struct {
	size      int
	steps     int // instructions, and more for those that are many for a machine
	edges     int // ends of blocks, branches and targets of tables
	variables int // parameters and locals
	operands  int // that calls, blocks and branches pass
}

// Costs in nanoseconds and bytes, see TestForecastHolds.
const (
	workOfFunction              = 10_000
	workOfStep, memoryOfStep    = 5_000, 2_000
	workOfPair, memoryOfPair    = 40, 8
	workOfType, workOfTypeValue = 20_000, 800
)

// Steps and edges that instructions count besides their own.
const (
	stepsOfBulk, edgesOfBulk = 30, 3 // loops of a machine, or calls of the host
	stepsOfDivision          = 5     // with tests for what traps
	stepsOfSelect            = 3
	stepsOfIndirect          = 8 // a call
	stepsOfConversion        = 4 // that saturates
)

// Forecast walks the code of a rewritten module.
func (r *Rewritten) Forecast() Forecast {
	var f Forecast
	types, values := eachFunction(r.Binary, f.add)
	f.Work += int64(types)*workOfType + int64(values)*workOfTypeValue
	return f
}

func (f *Forecast) add(index int, g figures) {
	values := int64(g.steps + g.variables + g.operands)
	edges := int64(g.edges + 1)
	work := workOfFunction + values*workOfStep + values*edges*workOfPair
	f.Work += work
	f.Memory = max(f.Memory, values*memoryOfStep+values*edges*memoryOfPair)
	if work > f.Heavy {
		f.Worst, f.Heavy, f.Size, f.Edges, f.Values = index-1, work, g.size, int(edges), int(values)
	}
}

// count counts an instruction.
func (g *figures) count(b *body, op byte) {
	g.steps++
	switch {
	case op == opBlock, op == opLoop, op == opIf, op == opElse:
		g.edges++
	case op >= opI32DivS && op <= opI32RemU, op >= opI64DivS && op <= opI64RemU:
		g.steps += stepsOfDivision
	case op == opCallIndirect:
		g.steps += stepsOfIndirect
	case op == opSelect, op == opSelectTyped:
		g.steps += stepsOfSelect
	case op == opBulk && b.number < bulkMemoryInit:
		g.steps += stepsOfConversion
	case op == opBulk:
		g.steps += stepsOfBulk
		g.edges += edgesOfBulk
	}
}

// eachFunction walks the functions of a module that Rewrite made, which is
// within other limits than those of Decode. It gives how many types there are, and
// how many values they have in all.
func eachFunction(binary []byte, note func(index int, g figures)) (types, values int) {
	d := &decoder{
		reader:    reader{module: binary, pos: headerSize, end: len(binary)},
		dataCount: -1, rewritten: true,
		Module: &Module{binary: binary, limits: unlimited},
	}
	var g figures
	d.onLabel = func(int, int) { g.steps++; g.edges++ }
	d.readBody = func(b *body) {
		start := b.pos
		g = figures{variables: b.variables}
		b.open()
		for len(b.labels) > 0 && b.err == nil {
			_, op := b.step()
			g.count(b, op)
		}
		g.size, g.operands = b.pos-start, b.operands
		note(b.index, g)
	}
	last := byte(sectionCustom)
	for d.pos < len(d.module) && d.err == nil {
		last = d.readSection(last)
	}
	return d.Figures.Types, d.Figures.TypeValues
}

var unlimited = Limits{
	Types: math.MaxInt32, Parameters: math.MaxInt32, TypeValues: math.MaxInt32, Imports: math.MaxInt32, Exports: math.MaxInt32, NameBytes: math.MaxInt32, Globals: math.MaxInt32,
	Tables: math.MaxInt32, TableMinimum: math.MaxInt32, TableMaximum: math.MaxInt32,
	Functions: math.MaxInt32, FunctionBody: math.MaxInt32, Locals: math.MaxInt32, ModuleLocals: math.MaxInt32,
	Nesting: math.MaxInt32, Operands: math.MaxInt32,
	DataSegments: math.MaxInt32, ElementSegments: math.MaxInt32, Elements: math.MaxInt32,
}

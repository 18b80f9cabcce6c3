package wasm

import "cmp"

// Limits bounds a module in each of its dimensions. Fields that are not positive
// have their default. In brackets is the largest figure seen: in guests of 4 to
// 5 MB written in Go, in one of 80 KB functions written in Haskell, and in the
// modules of WebAssembly's core test suite that are valid.
type Limits struct {
	Types      int // function types; default 10 000 [38]
	Parameters int // of one type, and results of one type; default 128 [100]
	TypeValues int // parameters and results of all types, for each of which a runtime makes code; default 50 000 [300]
	Imports    int // default 10 000 [28]
	Exports    int // default 10 000 [479]
	NameBytes  int // of the names of all imports and exports, which errors and inspections repeat; default 1 MiB [1 067]
	Globals    int // default 10 000 [13]

	Tables       int // default 8 [4]
	TableMinimum int // elements that all tables start with; default 65 536 [7 313]
	TableMaximum int // elements that all tables may have, see [Module.Rewrite]; default 1 000 000

	Functions    int // that the module defines; default 100 000 [3 217]
	FunctionBody int // bytes; default 512 KiB [80 KB]
	Locals       int // of one function; default 5 000 [1 056], as each makes compiling slower
	ModuleLocals int // of all functions; default 1 000 000, as a runtime keeps them apart [13 199]
	Nesting      int // of blocks in one function; default 4 000 [549, in 29 KB]

	// Operands is how many values the calls, blocks and branches of one function
	// pass in all. It bounds what an instruction of two bytes and a type of many
	// parameters make a compiler hold. Default 262 144 [469].
	Operands int

	DataSegments    int // default 250 000 [55 774]
	ElementSegments int // default 10 000 [65]
	Elements        int // of all element segments; default 100 000 [3 217], as each instance makes all of them
}

// withDefaults fills in what is not set.
func (l Limits) withDefaults() Limits {
	set := func(field *int, standard int) { *field = cmp.Or(max(*field, 0), standard) }
	set(&l.Types, 10_000)
	set(&l.Parameters, 128)
	set(&l.TypeValues, 50_000)
	set(&l.Imports, 10_000)
	set(&l.Exports, 10_000)
	set(&l.NameBytes, 1<<20)
	set(&l.Globals, 10_000)
	set(&l.Tables, 8)
	set(&l.TableMinimum, 1<<16)
	set(&l.TableMaximum, 1_000_000)
	set(&l.Functions, 100_000)
	set(&l.FunctionBody, 512<<10)
	set(&l.Locals, 5_000)
	set(&l.ModuleLocals, 1_000_000)
	set(&l.Nesting, 4_000)
	set(&l.Operands, 1<<18)
	set(&l.DataSegments, 250_000)
	set(&l.ElementSegments, 10_000)
	set(&l.Elements, 100_000)
	return l
}

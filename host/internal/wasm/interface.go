package wasm

import "strings"

// Interface is what a module imports and exports, as its author knows it. It does not
// refer to the module's bytes.
type Interface struct {
	Types    []string // of functions, "(i32, i32) -> i32", as the specification's text format orders them
	Imports  []Import
	Exports  []Export
	Memories []Memory // imported and defined ones
}

// Import is one import of a module.
type Import struct {
	Module, Name string
	Kind         byte // one of the Kind constants
	Type         int  // of a function, in Interface.Types
}

// Export is one export of a module.
type Export struct {
	Name  string
	Kind  byte // one of the Kind constants
	Index int  // among those of its kind, imported ones first; not checked for tables and memories
	Type  int  // of a function, in Interface.Types
}

// Memory is the size of a linear memory, in pages of 64 KiB.
type Memory struct {
	Min, Max int
	Bounded  bool // Max is stated
}

// typeText formats a type of functions.
func typeText(params, results []byte) string {
	list := func(types []byte) string {
		names := make([]string, len(types))
		for i, t := range types {
			names[i] = valueTypeName(t)
		}
		return strings.Join(names, ", ")
	}
	if len(results) == 1 {
		return "(" + list(params) + ") -> " + list(results)
	}
	return "(" + list(params) + ") -> (" + list(results) + ")"
}

func valueTypeName(t byte) string {
	switch t {
	case typeI32:
		return "i32"
	case typeI64:
		return "i64"
	case typeF32:
		return "f32"
	case typeF64:
		return "f64"
	case typeV128:
		return "v128"
	case typeFuncref:
		return "funcref"
	default:
		return "externref"
	}
}

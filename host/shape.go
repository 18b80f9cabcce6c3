package host

import (
	"slices"
	"strings"

	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host/internal/wasm"
)

// shape describes a module without running it.
type shape struct {
	size     int64    // bytes of its file
	imports  []Extern // in the module's order
	exports  []Extern // sorted by name
	memory   *Memory  // the exported one; nil without
	manifest []byte   // custom section flowhost.manifest; nil without
}

// exportType is the type of an exported function, "" where there is none.
func (s *shape) exportType(name string) string {
	for _, e := range s.exports {
		if e.Name == name && e.Kind == KindFunction {
			return e.Type
		}
	}
	return ""
}

// importsFrom reports whether anything is imported from the module.
func (s *shape) importsFrom(module string) bool {
	return slices.ContainsFunc(s.imports, func(i Extern) bool { return i.Module == module })
}

// importsFunction reports whether the function is imported from the module.
func (s *shape) importsFunction(module, name string) bool {
	return slices.ContainsFunc(s.imports, func(i Extern) bool { return i.Module == module && i.Name == name })
}

// importedFunctions is how many functions are imported.
func (s *shape) importedFunctions() int {
	n := 0
	for _, i := range s.imports {
		if i.Kind == KindFunction {
			n++
		}
	}
	return n
}

// Extern is one import or export of a module.
type Extern struct {
	Module string `json:"module,omitempty"` // imports only
	Name   string `json:"name"`
	Kind   string `json:"kind"`           // one of the Kind constants
	Type   string `json:"type,omitempty"` // of functions, "(i32, i32) -> i32"
}

// Kinds of externs.
const (
	KindFunction = "function"
	KindTable    = "table"
	KindMemory   = "memory"
	KindGlobal   = "global"
)

// Memory is the linear memory that a module exports, in bytes.
type Memory struct {
	Name string `json:"name"`
	Min  int64  `json:"min"`           // at the start of a call
	Max  int64  `json:"max,omitempty"` // that the module declares; 0 without
}

// shapeOf describes a module of that many bytes, with that manifest.
func shapeOf(size int, outside *wasm.Interface, manifest []byte) shape {
	kinds := [...]string{
		wasm.KindFunction: KindFunction, wasm.KindTable: KindTable,
		wasm.KindMemory: KindMemory, wasm.KindGlobal: KindGlobal,
	}
	form := shape{size: int64(size), manifest: manifest}
	for _, i := range outside.Imports {
		extern := Extern{Module: i.Module, Name: i.Name, Kind: kinds[i.Kind]}
		if i.Kind == wasm.KindFunction {
			extern.Type = outside.Types[i.Type]
		}
		form.imports = append(form.imports, extern)
	}
	for _, e := range outside.Exports {
		switch {
		case e.Kind == wasm.KindFunction:
			form.exports = append(form.exports, Extern{Name: e.Name, Kind: KindFunction, Type: outside.Types[e.Type]})
		case e.Kind == wasm.KindMemory && e.Index < len(outside.Memories):
			form.exports = append(form.exports, Extern{Name: e.Name, Kind: KindMemory})
			form.memory = memoryOf(e.Name, outside.Memories[e.Index])
		}
	}
	slices.SortFunc(form.exports, func(a, b Extern) int { return strings.Compare(a.Name, b.Name) })
	return form
}

// wasmPage is the unit of a linear memory's size.
const wasmPage = 64 << 10

func memoryOf(name string, size wasm.Memory) *Memory {
	m := &Memory{Name: name, Min: int64(size.Min) * wasmPage}
	if size.Bounded {
		m.Max = int64(size.Max) * wasmPage
	}
	return m
}

// functionType writes a type as the specification's text format orders it:
// "(i32, i32) -> i32".
func functionType(def api.FunctionDefinition) string {
	list := func(types []api.ValueType) string {
		names := make([]string, len(types))
		for i, t := range types {
			names[i] = api.ValueTypeName(t)
		}
		return strings.Join(names, ", ")
	}
	params, results := def.ParamTypes(), def.ResultTypes()
	if len(results) == 1 {
		return "(" + list(params) + ") -> " + list(results)
	}
	return "(" + list(params) + ") -> (" + list(results) + ")"
}

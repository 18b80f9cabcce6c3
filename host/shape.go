package host

import (
	"slices"
	"strings"

	"github.com/tetratelabs/wazero"
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

// shapeOf describes a module as its author knows it: what the rewrite added is
// left out.
func shapeOf(m *wasm.Prepared, code wazero.CompiledModule) shape {
	form := shape{size: int64(m.Size), imports: importsOf(m.Imports), manifest: m.Custom}
	functions := code.ImportedFunctions() // in the module's order, then those that were added
	for i := range form.imports {
		if form.imports[i].Kind == KindFunction {
			form.imports[i].Type = functionType(functions[0])
			functions = functions[1:]
		}
	}
	for name, def := range code.ExportedFunctions() {
		if name == wasm.ExportStart {
			continue
		}
		form.exports = append(form.exports, Extern{Name: name, Kind: KindFunction, Type: functionType(def)})
	}
	for name, def := range code.ExportedMemories() {
		form.exports = append(form.exports, Extern{Name: name, Kind: KindMemory})
		form.memory = memoryOf(name, def)
	}
	slices.SortFunc(form.exports, func(a, b Extern) int { return strings.Compare(a.Name, b.Name) })
	return form
}

// importsOf lists all imports, without types.
func importsOf(declared []wasm.Import) []Extern {
	kinds := [...]string{
		wasm.KindFunction: KindFunction, wasm.KindTable: KindTable,
		wasm.KindMemory: KindMemory, wasm.KindGlobal: KindGlobal,
	}
	var imports []Extern
	for _, i := range declared {
		imports = append(imports, Extern{Module: i.Module, Name: i.Name, Kind: kinds[i.Kind]})
	}
	return imports
}

// wasmPage is the unit of a linear memory's size.
const wasmPage = 64 << 10

func memoryOf(name string, def api.MemoryDefinition) *Memory {
	m := &Memory{Name: name, Min: int64(def.Min()) * wasmPage}
	if limit, ok := def.Max(); ok {
		m.Max = int64(limit) * wasmPage
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

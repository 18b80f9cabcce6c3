package host

import (
	"github.com/tetratelabs/wazero/api"

	"github.com/flowhost/flowhost/host/internal/wasm"
)

// globals is the mutable globals of one instance, and their values in its image.
type globals struct {
	all    []api.MutableGlobal
	values []uint64
}

// globalsOf finds what the rewrite has exported.
func globalsOf(module api.Module, exported []wasm.Global) globals {
	g := globals{all: make([]api.MutableGlobal, len(exported))}
	for i, e := range exported {
		g.all[i] = mutable(module, e.Export)
	}
	return g
}

// mutable is an exported global that the rewrite made, nil where it did not.
func mutable(module api.Module, name string) api.MutableGlobal {
	global, _ := module.ExportedGlobal(name).(api.MutableGlobal)
	return global
}

// read gives the present values.
func (g *globals) read() []uint64 {
	values := make([]uint64, len(g.all))
	for i, global := range g.all {
		values[i] = global.Get()
	}
	return values
}

// restore sets all to the values of the image.
func (g *globals) restore() {
	for i, global := range g.all {
		global.Set(g.values[i])
	}
}

// fitsWord reports whether 64 bits represent a value of the type, with the same meaning
// in every instance.
func fitsWord(valueType byte) bool {
	switch valueType {
	case api.ValueTypeI32, api.ValueTypeI64, api.ValueTypeF32, api.ValueTypeF64:
		return true
	}
	return false
}

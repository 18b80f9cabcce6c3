package host

import (
	"fmt"
	"reflect"

	"github.com/flowhost/flowhost/host/internal/memory"
	"github.com/flowhost/flowhost/host/internal/wasm"
)

// CompilesInProcess reports whether the host compiles the module in its own
// process.
func CompilesInProcess(r *wasm.Rewritten) bool { return fits(r.Forecast()) }

// ChooseWay makes instances of a module that the host has initialized go back to
// their image in that way.
func ChooseWay(h *Host, digest string, way memory.Way) {
	h.modules.entries[digest].module.image.state.Load().memory.Choose(way)
}

// LeftOfACall is what the work that the next call would use holds of earlier ones.
func LeftOfACall(h *Host) string {
	w := h.works.Get().(*work)
	w.inv.fixed = fixed{}
	if reflect.ValueOf(w).Elem().IsZero() {
		return ""
	}
	return fmt.Sprintf("%+v", w)
}

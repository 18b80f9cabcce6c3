package host

import (
	"time"

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

// Settle makes the host take files for unchanged long enough to know them by their
// identities.
func Settle(h *Host) { h.known.Now = func() time.Time { return time.Now().Add(time.Hour) } }

// Prepared is how many modules the host keeps in memory, once no goroutine prepares any.
func Prepared(h *Host) int {
	h.busy.Wait()
	h.modules.mu.Lock()
	defer h.modules.mu.Unlock()
	return len(h.modules.entries)
}

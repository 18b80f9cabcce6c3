package host

import "github.com/flowhost/flowhost/host/internal/wasm"

// CompilesInProcess reports whether the host compiles the module in its own
// process.
func CompilesInProcess(r *wasm.Rewritten) bool { return fits(r.Forecast()) }

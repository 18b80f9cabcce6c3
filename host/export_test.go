package host

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"github.com/flowhost/flowhost/host/internal/memory"
	"github.com/flowhost/flowhost/host/internal/wasm"
	"github.com/flowhost/flowhost/run"
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

// WithPlace runs fn in a place of the host's pool, as a call of a module that the host has
// initialized. another makes an instance of the module and closes it, as for a call
// that finds no idle one.
func WithPlace(ctx context.Context, h *Host, digest string, fn func(another func() error)) error {
	image := h.modules.entries[digest].module.image
	if err := h.ready(ctx, image); err != nil {
		return err
	}
	limits := h.tuning.Load().Limits
	return h.calls.call(ctx, image, limits, func(l *lease) {
		inv := newInvocation(&run.Call{}, ABIFlowhost, "run", limits)
		inv.lease = l
		fn(func() error {
			made, err := image.another(ctx, l, inv, image.state.Load())
			if err == nil {
				made.close()
			}
			return err
		})
	})
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

package serve

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/bus/tasklog"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/run"
)

// logGuests returns a decorator that writes the logs of guests to the operator's log.
func logGuests(log *slog.Logger) func(engine.Invoker) engine.Invoker {
	return func(next engine.Invoker) engine.Invoker {
		return InvokerFunc(func(ctx context.Context, call run.Call) (run.Result, error) {
			result, err := next.Invoke(ctx, call)
			if len(result.Log.Lines) == 0 {
				return result, err
			}
			task := run.TaskRef{Task: call.Task, Key: call.Key}
			guest := log.With("run", call.Run, "flow", call.Flow, "task", task.Label(), "attempt", call.Attempt)
			for _, l := range result.Log.Lines {
				guest.LogAttrs(ctx, settings.LevelOf(l.Level), l.Message, guestFields(l.Fields))
			}
			if result.Log.Dropped > 0 {
				guest.Info("guest log truncated", "lines", result.Log.Dropped)
			}
			return result, err
		})
	}
}

// GuestLines passes the lines of guests to the logs on NATS once these exist: the host
// comes first, because flows are checked with it before anything is connected. Its
// write is for [host.Config].Lines.
type GuestLines struct{ Logs atomic.Pointer[tasklog.Store] }

// Write is for [host.Config].Lines.
func (g *GuestLines) Write(call *run.Call, at time.Time, line run.LogLine) {
	if logs := g.Logs.Load(); logs != nil {
		logs.Write(call, at, line)
	}
}

// guestFields groups the fields of a guest, apart from those of the host.
func guestFields(object json.RawMessage) slog.Attr {
	var fields map[string]json.RawMessage
	if len(object) == 0 || json.Unmarshal(object, &fields) != nil {
		return slog.Attr{}
	}
	var attrs []any
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		var text string
		if json.Unmarshal(fields[name], &text) != nil {
			text = string(fields[name])
		}
		attrs = append(attrs, slog.String(name, text))
	}
	return slog.Group("guest", attrs...)
}

// InvokerFunc is a function as an engine.Invoker.
type InvokerFunc func(context.Context, run.Call) (run.Result, error)

// Invoke implements engine.Invoker.
func (f InvokerFunc) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	return f(ctx, call)
}

package main

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/tasklog"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/run"
)

// logGuests gives a decorator that writes what guests log to the operator's log.
func logGuests(log *slog.Logger) func(engine.Invoker) engine.Invoker {
	return func(next engine.Invoker) engine.Invoker {
		return invokerFunc(func(ctx context.Context, call run.Call) (run.Result, error) {
			result, err := next.Invoke(ctx, call)
			if len(result.Log.Lines) == 0 {
				return result, err
			}
			task := run.TaskRef{Task: call.Task, Key: call.Key}
			guest := log.With("run", call.Run, "flow", call.Flow, "task", task.Label(), "attempt", call.Attempt)
			for _, l := range result.Log.Lines {
				guest.LogAttrs(ctx, levelOf(l.Level), l.Message, guestFields(l.Fields))
			}
			if result.Log.Dropped > 0 {
				guest.Info("lines of the guest's log were left out", "lines", result.Log.Dropped)
			}
			return result, err
		})
	}
}

// guestLines gives what guests write to the logs on NATS once there are any: the
// host comes first, as flows are checked with it before anything is connected. Its
// write is for [host.Config].Lines.
type guestLines struct{ logs atomic.Pointer[tasklog.Store] }

func (g *guestLines) write(call *run.Call, at time.Time, line run.LogLine) {
	if logs := g.logs.Load(); logs != nil {
		logs.Write(call, at, line)
	}
}

// guestFields keeps the fields of a guest apart from those of the host.
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

// checkLevel refuses the word that a flag gives for a level; none is the default.
func checkLevel(cmd *cobra.Command, flag, word string) error {
	levels := []string{"debug", "info", "warn", "error"}
	if word == "" || slices.Contains(levels, word) {
		return nil
	}
	return usage(cmd, "--%s %q is no level%s", flag, word, suggest(word, levels))
}

func levelOf(word string) slog.Level {
	switch word {
	case "debug":
		return slog.LevelDebug
	case "warn":
		return slog.LevelWarn
	case "error":
		return slog.LevelError
	}
	return slog.LevelInfo
}

// invokerFunc is a function as an engine.Invoker.
type invokerFunc func(context.Context, run.Call) (run.Result, error)

func (f invokerFunc) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	return f(ctx, call)
}

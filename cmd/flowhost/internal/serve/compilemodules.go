package serve

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// compileModules compiles the modules of a set one after the other, in the order in which
// their flows are due, until ctx ends: so the host serves its flows at once. What a call
// needs sooner is compiled beside it.
func compileModules(ctx context.Context, compile func(context.Context, string) (bool, error), set *flows.Set, now time.Time, log *slog.Logger) {
	all := modulesByDue(set, now)
	began, done := time.Now(), 0
	for i, m := range all {
		started := time.Now()
		did, err := compile(ctx, m.Digest)
		if ctx.Err() != nil {
			return
		}
		switch {
		case err != nil:
			log.Error("compiling a module failed, its calls are rejected", "flow", m.flow, "plugin", m.Source, "error", err)
		case did:
			done++
			log.Info("module compiled", "flow", m.flow, "plugin", m.Source, "took", time.Since(started).Round(time.Millisecond), "left", len(all)-i-1)
		}
	}
	if done > 0 {
		log.Info("all modules are compiled", "compiled", done, "took", time.Since(began).Round(time.Millisecond))
	}
}

// usedModule is a module with the first flow that uses it.
type usedModule struct {
	flows.Plugin
	flow string
}

// modulesByDue returns the modules of a set, each once: first those of scheduled flows,
// the one that is due first before the others.
func modulesByDue(set *flows.Set, now time.Time) []usedModule {
	byDue := slices.Clone(set.Flows)
	due := map[*flows.Flow]time.Time{}
	for _, f := range byDue {
		due[f] = nextDue(f, now)
	}
	slices.SortStableFunc(byDue, func(a, b *flows.Flow) int {
		if none := due[a].IsZero(); none != due[b].IsZero() {
			if none {
				return 1
			}
			return -1
		}
		return due[a].Compare(due[b])
	})
	var all []usedModule
	seen := map[string]bool{}
	for _, f := range byDue {
		for _, t := range f.AllTasks() {
			if t.Plugin.Digest != "" && !seen[t.Plugin.Digest] {
				seen[t.Plugin.Digest] = true
				all = append(all, usedModule{t.Plugin, f.Name})
			}
		}
	}
	return all
}

// nextDue is the next time of a flow's schedules, zero without one.
func nextDue(f *flows.Flow, now time.Time) (first time.Time) {
	for _, t := range f.Triggers {
		if t.Kind != run.TriggerSchedule || !t.Enabled {
			continue
		}
		if next, ok := t.Schedule.Next(now); ok && (first.IsZero() || next.Before(first)) {
			first = next
		}
	}
	return first
}

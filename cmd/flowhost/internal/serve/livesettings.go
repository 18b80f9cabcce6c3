package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/host"
)

// liveSettings applies changed settings to the parts of a running host. It belongs to the
// reloader.
type liveSettings struct {
	file    string // watched; it need not exist
	reread  func() (settings.Settings, error)
	started settings.Settings // in force where a restart is needed
	last    settings.Settings // read and applied last

	engine  *engine.Engine
	host    *host.Host
	outside *Outside
	keeper  *bus.Keeper
	level   *slog.LevelVar
	log     *slog.Logger
}

// changeStreams applies the sizes and ages of streams, which the server may refuse.
func (l *liveSettings) changeStreams(ctx context.Context, next *settings.Settings) error {
	if l.last.Streams == next.Streams {
		return nil
	}
	streams := next.Streams
	streams.Replicas = l.started.Streams.Replicas
	return l.keeper.Configure(ctx, streams)
}

// apply applies the rest, which cannot fail, and logs what has changed. It reports
// whether anything has.
func (l *liveSettings) apply(next settings.Settings) bool {
	changes := settings.Changes(l.last, next)
	l.engine.Tune(engineTuning(&next))
	l.host.Tune(hostTuning(&next))
	if err := l.outside.Configure(next); err != nil {
		l.log.Error("the settings of secrets and the proxy do not apply", "error", err)
	}
	l.level.Set(min(l.last.LogLevel, next.LogLevel)) // the lines below belong to both levels
	for _, c := range changes {
		l.report(c, next)
	}
	l.last = next
	if changed(changes, "workers") {
		l.warnOfNoWorkers()
	}
	l.level.Set(next.LogLevel)
	return len(changes) > 0
}

func (l *liveSettings) report(c settings.Change, next settings.Settings) {
	log := l.log.With("setting", c.Name, "old", c.Before, "new", c.Now)
	switch {
	case c.Live && c.Now == settings.Unset:
		log.Info("setting removed, its stream keeps the limit")
	case c.Live:
		log.Info("setting changed")
	case !changed(settings.Changes(l.started, next), c.Name):
		log.Info("setting is what the host started with, no restart is needed")
	default:
		log.Warn("setting changed: restart to apply")
	}
}

func changed(changes []settings.Change, name string) bool {
	return slices.ContainsFunc(changes, func(c settings.Change) bool { return c.Name == name })
}

// warnOfNoWorkers states why nothing computes.
func (l *liveSettings) warnOfNoWorkers() {
	if n := l.last.Workers; n != nil && *n == 0 {
		l.log.Warn("workers = 0: no attempt starts")
	}
}

// problemsOfSettings are the lines of an error of reread.
func problemsOfSettings(err error) []string {
	if invalid := (*settings.InvalidError)(nil); errors.As(err, &invalid) {
		return problemsOf(invalid.Diags)
	}
	first, _, _ := strings.Cut(err.Error(), "\n") // advice for the command line follows
	return []string{first}
}

// engineTuning is what the settings state for a running engine.
func engineTuning(s *settings.Settings) engine.Tuning {
	t := engine.Tuning{InFlight: s.InFlight, Timeout: s.Timeout}
	if s.Workers != nil {
		t.Workers = cmp.Or(*s.Workers, -1)
	}
	return t
}

// hostTuning is what the settings state for a running host.
func hostTuning(s *settings.Settings) host.Tuning {
	t := host.Tuning{Limits: s.Limits, Timeout: s.Timeout}
	if s.Grace != nil {
		t.Grace = cmp.Or(*s.Grace, time.Duration(-1))
	}
	return t
}

package main

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// intake deploys the flows and takes messages and requests until soft ends or the
// engine does.
func (s *service) intake(soft context.Context, n *node, h *host.Host, r *reloader, set *flows.Set, log *slog.Logger) error {
	if err := n.engine.Deploy(soft, set); err != nil {
		return err
	}
	r.deployed(set)
	intake, err := intake.New(n.link.intake, n.engine, subscriptions(set), intake.Config{
		App: n.link.app, Operator: n.link.operator, Connected: n.link.connected,
		Version: thisBuild().semantic(), Control: n.engine, Waits: n.engine, Schedules: n.engine, Backfills: n.engine, Limits: n.engine.Limits,
		Logs: n.link.logs, Feed: n.link.feed, Ready: n.link.health.Ready,
		Flows:    func() []api.FlowInfo { return r.served.Load().infos },
		Deployed: func() api.Deployment { return r.served.Load().deployed },
		Stats:    func() any { return statsOf(h, n.engine) }, Code: codeOfEngine, Log: log,
	})
	if err != nil {
		return &exitError{exitInvalid, err}
	}
	r.put = func(ctx context.Context, set *flows.Set) error { return n.deploy(ctx, intake, set, log) }
	taking, stop := context.WithCancelCause(soft)
	var loading sync.WaitGroup
	defer loading.Wait()
	defer stop(nil)
	ended := make(chan error, 1)
	go func() { ended <- intake.Run(taking) }()
	ready := intake.Ready()
	for {
		select {
		case <-ready:
			ready = nil
			if schedules, err := n.engine.Schedules(soft); err == nil { // otherwise one of the cases below has come
				s.reportStart(n.link, set, schedules)
			}
			loading.Go(func() { r.run(taking) })
			debug.FreeOSMemory() // a host that is idle from here on would keep what reading modules and flows has left behind
			continue
		case err := <-ended:
			return err
		case <-n.ended:
			stop(n.fault)
		case <-soft.Done():
			log.Info("stopping: running attempts end first; interrupt again to stop at once")
			n.engine.Drain() // before the last answers: while the intake waits for them nothing new may start
		}
		return <-ended
	}
}

// deploy puts a set in place of the one that is deployed, with what the host
// listens to. After an error nothing has changed.
func (n *node) deploy(ctx context.Context, intake *intake.Intake, set *flows.Set, log *slog.Logger) error {
	deployed := false
	err := intake.Listen(ctx, subscriptions(set), func() error {
		err := n.link.allow(coreSubjects(set))
		if err == nil {
			err = n.engine.Deploy(ctx, set)
		}
		deployed = err == nil
		return err
	})
	if err != nil && deployed {
		log.Error("a message trigger is not listened to", "error", err)
		return nil
	}
	return err
}

// subscriptions are the message triggers of a set.
func subscriptions(set *flows.Set) []intake.Subscription {
	var out []intake.Subscription
	for _, f := range set.Flows {
		for _, t := range f.Triggers {
			if t.Kind == run.TriggerMessage && t.Enabled {
				out = append(out, intake.Subscription{
					Flow: f.Name, Trigger: t.Name, Subject: t.Subject, Stream: t.Stream, Durable: t.Durable,
				})
			}
		}
	}
	return out
}

// coreSubjects are the subjects on which flows listen themselves, and their waits
// as far as it is known before a run: the users of the embedded server may publish
// on them.
func coreSubjects(set *flows.Set) []string {
	var out []string
	for _, s := range subscriptions(set) {
		if s.Subject != "" {
			out = append(out, s.Subject)
		}
	}
	for _, f := range set.Flows {
		out = append(out, f.WaitSubjects()...)
	}
	return out
}

// codeOfEngine is the code with which requests are answered for an error of the
// engine.
func codeOfEngine(err error) string {
	switch {
	case errors.As(err, new(*engine.BusyError)):
		return api.CodeBusy
	case errors.As(err, new(*engine.UnknownScheduleError)):
		return api.CodeUnknownSchedule
	case errors.As(err, new(*engine.OverlapError)):
		return api.CodeOverlap
	case errors.As(err, new(*engine.TooManyError)):
		return api.CodeTooManyTimes
	case errors.Is(err, engine.ErrFinished):
		return api.CodeFinished
	case errors.Is(err, engine.ErrUnfinished):
		return api.CodeUnfinished
	case errors.Is(err, engine.ErrSucceeded):
		return api.CodeSucceeded
	case errors.Is(err, engine.ErrUnknownTask):
		return api.CodeUnknownTask
	case errors.Is(err, engine.ErrUnknownWait):
		return api.CodeUnknownWait
	case errors.Is(err, engine.ErrNotWaiting):
		return api.CodeNotWaiting
	case errors.Is(err, engine.ErrWaitEnded):
		return api.CodeFinished
	case errors.Is(err, engine.ErrWaitKind):
		return api.CodeWaitKind
	case errors.Is(err, engine.ErrUnknownBackfill):
		return api.CodeUnknownBackfill
	case errors.Is(err, engine.ErrDisabled):
		return api.CodeDisabled
	case errors.Is(err, engine.ErrPaused):
		return api.CodePaused
	case errors.Is(err, engine.ErrNotPaused):
		return api.CodeNotPaused
	case errors.Is(err, engine.ErrNoTimes):
		return api.CodeNoTimes
	}
	return ""
}

// stats is what the micro service tells of the process.
type stats struct {
	host.Stats
	Engine     engine.Stats `json:"engine"`
	Goroutines int          `json:"goroutines"`
	HeapBytes  uint64       `json:"heap_bytes"` // in use or not collected yet
}

func statsOf(h *host.Host, e *engine.Engine) stats {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return stats{Stats: h.Stats(), Engine: e.Stats(), Goroutines: runtime.NumGoroutine(), HeapBytes: heap[0].Value.Uint64()}
}

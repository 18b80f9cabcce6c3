package serve

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/intake"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/buildinfo"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// intake deploys the flows and accepts messages and requests until soft ends or the
// engine ends.
func (n *Node) intake(soft context.Context, c *Config, r *reloader, control *hostControl) error {
	if err := n.Engine.Deploy(soft, c.Set); err != nil {
		return err
	}
	r.deployed(c.Set)
	buckets, err := openBuckets(n.link.records, c.Settings.Streams.Replicas)
	if err != nil {
		return err
	}
	parts := n.link.artifacts.Parts()
	defer parts.Close()
	intake, err := intake.New(n.link.intake, n.Engine, subscriptions(c.Set), intake.Config{
		App: n.link.app, Operator: n.link.operator, Connected: n.link.connected,
		Version: buildinfo.This().Semantic(), Control: n.Engine, Waits: n.Engine, Schedules: n.Engine, Backfills: n.Engine, Limits: n.Engine.Limits, Host: control,
		Logs: n.link.logs, Artifacts: parts, Buckets: buckets, Feed: n.link.feed, Ready: n.link.health.Ready,
		Flows:    func() []api.FlowInfo { return r.served.Load().infos },
		Deployed: func() api.Deployment { return r.served.Load().deployed },
		Stats:    func() any { return statsOf(c.Host, n) }, Code: codeOfEngine, Log: c.Log,
	})
	if err != nil {
		return cli.WithCode(cli.ExitInvalid, err)
	}
	r.put = func(ctx context.Context, set *flows.Set, options flows.Options) error {
		err := n.deploy(ctx, intake, set, c.Log)
		if err == nil {
			n.options.Store(&options)
		}
		return err
	}
	taking, stop := context.WithCancelCause(context.WithoutCancel(soft)) // it ends once requests are declined
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
			if schedules, err := n.Engine.Schedules(soft); err == nil { // otherwise one of the cases below is ready
				reportStart(c.Out, n.link, c.Set, schedules, n.Engine.Stats().Pause)
			}
			loading.Go(func() { r.run(taking) })
			loading.Go(func() {
				compileModules(taking, c.Host.Compile, c.Set, time.Now(), c.Log)
				runtime.GC()         // its finalizers unmap native code, and let the next collection have what refers to it
				debug.FreeOSMemory() // an idle host would keep the garbage of loading flows and compiling modules
			})
			continue
		case err := <-ended:
			return err
		case <-n.ended:
			stop(n.fault)
		case <-soft.Done():
			again := "again"
			if errors.Is(context.Cause(soft), errDrained) {
				again = "twice" // the first signal requests what is under way
			}
			c.Log.Info("shutting down: running attempts finish first; interrupt "+again+" to stop immediately", "running_attempts", n.Engine.Stats().Running)
			if err := intake.Decline(); err != nil {
				c.Log.Warn("requests get no answer while the host stops", "error", err)
			}
			n.Engine.Drain() // before the last replies: nothing new may start while the intake waits for them
			stop(context.Cause(soft))
		}
		return <-ended
	}
}

// deploy replaces the deployed set, and the subscriptions with it. After an error
// nothing has changed.
func (n *Node) deploy(ctx context.Context, intake *intake.Intake, set *flows.Set, log *slog.Logger) error {
	deployed := false
	err := intake.Listen(ctx, subscriptions(set), func() error {
		err := n.link.allow(CoreSubjects(set))
		if err == nil {
			err = n.Engine.Deploy(ctx, set)
		}
		deployed = err == nil
		return err
	})
	if err != nil && deployed {
		log.Error("subscribing to a message trigger failed", "error", err)
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

// CoreSubjects are the subjects that flows listen to, those of waits included as far
// as they are known before a run: clients may publish on them.
func CoreSubjects(set *flows.Set) []string {
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

// codeOfEngine is the code of the reply for an error of the engine.
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

// stats are the figures of the process that the micro service returns.
type stats struct {
	host.Stats
	Engine     engine.Stats  `json:"engine"`
	Artifacts  ArtifactStats `json:"artifacts"`
	Goroutines int           `json:"goroutines"`
	HeapBytes  uint64        `json:"heap_bytes"` // in use or not collected yet
}

func statsOf(h *host.Host, n *Node) stats {
	heap := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}}
	metrics.Read(heap)
	return stats{Stats: h.Stats(), Engine: n.Engine.Stats(), Artifacts: n.sweeps.stats(), Goroutines: runtime.NumGoroutine(), HeapBytes: heap[0].Value.Uint64()}
}

package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// stopTime bounds the work after the engine has ended: publishing the last events,
// closing files.
const stopTime = 10 * time.Second

// NodeConfig are the parts of a node.
type NodeConfig struct {
	settings.Settings
	Host      *host.Host
	Link      *Link                               // to NATS; nil: the journal is in memory and events are not published
	Flows     flows.Options                       // with which the flows were loaded
	limits    []*flows.Limit                      // of these
	Invoker   func(engine.Invoker) engine.Invoker // decorates the host; nil: nothing
	Observers []engine.Observer
	Log       *slog.Logger
}

// Node is a running host, journal and engine. Start and Stop are called once each, by
// one goroutine.
type Node struct {
	Engine *engine.Engine
	link   *Link
	sweeps *artifactSweeper // nil without a link

	options atomic.Pointer[flows.Options] // with which recorded definitions are loaded

	working sync.WaitGroup
	abandon context.CancelCauseFunc
	ended   chan struct{} // closed when the engine has ended
	fault   error         // why it ended, nil after a graceful stop; once ended is closed
	unkept  error         // why observed events are not stored; after stop
}

// NewNode assembles a node. It does nothing before Start.
func NewNode(ctx context.Context, c NodeConfig) (*Node, error) {
	n := &Node{link: c.Link, ended: make(chan struct{})}
	n.options.Store(&c.Flows)
	tuned := engineTuning(&c.Settings)
	config := engine.Config{
		Journal: memory.NewJournal(), Invoker: c.Host, Restore: n.restore,
		Workers: tuned.Workers, InFlight: tuned.InFlight, Timeout: tuned.Timeout, Limits: c.limits, Log: c.Log,
	}
	for _, o := range c.Observers {
		config.Observers = append(config.Observers, engine.Observation{Observer: o})
	}
	if c.Invoker != nil {
		config.Invoker = c.Invoker(config.Invoker)
	}
	if c.Link != nil {
		flowsOf := func(ctx context.Context, ids []run.ID) (map[run.ID]string, error) { return n.Engine.FlowsOf(ctx, ids) }
		if err := c.Link.observe(ctx, &config, c.EventsOf, flowsOf); err != nil {
			return nil, err
		}
		config.Journal, config.Snapshots, config.Blobs = c.Link.journal, c.Link.snapshots, c.Link.blobs
		config.History, config.SnapshotEvents, config.CommitHold = c.Link.history, c.SnapshotEvery, commitHold
		config.AcceptLoss = c.AcceptLoss || c.Durability == natsd.SyncRelaxed
	}
	n.Engine = engine.New(config)
	if c.Link != nil {
		n.sweeps = &artifactSweeper{store: c.Link.artifacts, runs: n.Engine, history: c.Link.history, log: c.Log}
	}
	return n, nil
}

// commitHold is five times what a commit takes on a good disk.
const commitHold = time.Millisecond

// restore loads a recorded definition for runs that began before the flow files were
// changed.
func (n *Node) restore(ctx context.Context, d *run.Definition) (*flows.Set, error) {
	set, diags := flows.Restore(ctx, d, *n.options.Load())
	if diags.HasErrors() {
		return nil, firstError(diags)
	}
	return set, nil
}

func firstError(diags hcl.Diagnostics) error {
	for _, d := range diags {
		if d.Severity == hcl.DiagError {
			return fmt.Errorf("%s: %s", d.Summary, d.Detail)
		}
	}
	return diags
}

// Start lets the engine read the journal and advance runs, until stop or until
// ctx ends.
func (n *Node) Start(ctx context.Context) {
	ctx, n.abandon = context.WithCancelCause(ctx)
	n.working.Go(func() {
		defer close(n.ended)
		n.fault = n.explain(n.Engine.Run(ctx))
	})
	if n.link != nil {
		n.link.serve(ctx, n.working.Go, n.abandon)
		n.working.Go(func() { n.sweeps.Run(ctx) })
	}
}

// explain adds the remedy to the error of a damaged journal: the engine knows neither
// the flags nor where the journal is.
func (n *Node) explain(err error) error {
	var (
		damage *journal.DamageError
		gap    *engine.ChainError
		end    *engine.TruncatedError
	)
	ends := errors.As(err, &end)
	if !ends && !errors.As(err, &gap) && !errors.As(err, &damage) {
		return err
	}
	if ends {
		err = fmt.Errorf("%w. --accept-loss starts without the lost end", err)
	}
	if n.link != nil && n.link.server == nil {
		err = fmt.Errorf("%w\nThe journal is on the NATS server: keep, restore or remove its streams FH_* and OBJ_FH_*, not the data directory", err)
	}
	return err
}

// Stop lets running attempts finish, stores the last events and waits for everything
// that start started. It stops immediately when ctx, that of start, ends. The error is
// the engine's.
func (n *Node) Stop(ctx context.Context) error {
	n.Engine.Drain()
	<-n.ended
	if n.link != nil && n.fault == nil {
		ctx, cancel := context.WithTimeout(ctx, stopTime)
		defer cancel()
		n.unkept = n.link.flush(ctx)
	}
	n.abandon(errors.New("stopped"))
	n.working.Wait()
	return n.fault
}

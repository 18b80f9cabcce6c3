package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// stopTime bounds what is still to be done once the engine has ended: telling of
// the last events, closing files.
const stopTime = 10 * time.Second

// NodeConfig is what a node is made of.
type NodeConfig struct {
	settings.Settings
	Host      *host.Host
	Link      *Link                               // to NATS; nil: the journal is in memory and nobody is told of events
	Flows     flows.Options                       // with which the flows were loaded
	limits    []*flows.Limit                      // of these
	Invoker   func(engine.Invoker) engine.Invoker // decorates the host; nil: nothing
	Observers []engine.Observer
	Log       *slog.Logger
}

// Node is a host, a journal and an engine at work. start and stop are called once
// each, on one goroutine.
type Node struct {
	Engine *engine.Engine
	link   *Link

	working sync.WaitGroup
	abandon context.CancelCauseFunc
	ended   chan struct{} // closed when the engine has ended
	fault   error         // why it ended, nil after a soft stop; once ended is closed
	unkept  error         // why something that was told is not kept; after stop
}

// NewNode assembles a node. It does nothing before Start.
func NewNode(ctx context.Context, c NodeConfig) (*Node, error) {
	config := engine.Config{
		Journal: engine.NewMemoryJournal(), Invoker: c.Host,
		Restore: restorer(c.Flows), Workers: c.Workers, Timeout: c.Timeout, Limits: c.limits, Log: c.Log,
	}
	for _, o := range c.Observers {
		config.Observers = append(config.Observers, engine.Observation{Observer: o})
	}
	if c.Invoker != nil {
		config.Invoker = c.Invoker(config.Invoker)
	}
	n := &Node{link: c.Link, ended: make(chan struct{})}
	if c.Link != nil {
		flowsOf := func(ctx context.Context, ids []run.ID) (map[run.ID]string, error) { return n.Engine.FlowsOf(ctx, ids) }
		if err := c.Link.observe(ctx, &config, c.EventsOf, flowsOf); err != nil {
			return nil, err
		}
		config.Journal, config.Snapshots, config.Blobs = c.Link.journal, c.Link.snapshots, c.Link.blobs
		config.History, config.SnapshotEvents = c.Link.history, c.SnapshotEvery
		config.AcceptLoss = c.AcceptLoss || c.Durability == bus.SyncRelaxed
	}
	n.Engine = engine.New(config)
	return n, nil
}

// restorer loads recorded definitions for runs that began before the flow files
// were changed.
func restorer(options flows.Options) func(context.Context, *run.Definition) (*flows.Set, error) {
	return func(ctx context.Context, d *run.Definition) (*flows.Set, error) {
		set, diags := flows.Restore(ctx, d, options)
		if diags.HasErrors() {
			return nil, firstError(diags)
		}
		return set, nil
	}
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
	}
}

// explain adds to the error of a journal that has lost something what to do about it
// here: the engine knows neither the flags nor where the journal is.
func (n *Node) explain(err error) error {
	var (
		damage *bus.DamageError
		gap    *engine.ChainError
		end    *engine.LostEndError
	)
	ends := errors.As(err, &end)
	if !ends && !errors.As(err, &gap) && !errors.As(err, &damage) {
		return err
	}
	if ends {
		err = fmt.Errorf("%w. The flag --accept-loss accepts it", err)
	}
	if n.link != nil && n.link.server == nil {
		err = fmt.Errorf("%w\nThe journal is on the NATS server: its streams FH_* and OBJ_FH_* are what to keep, to restore or to remove, not the data folder", err)
	}
	return err
}

// Stop lets running attempts end, tells of the last events and waits for
// everything that start started. It hurries when ctx, that of start, ends. The error
// is the engine's.
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

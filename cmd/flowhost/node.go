package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// stopTime bounds what is still to be done once the engine has ended: telling of
// the last events, closing files.
const stopTime = 10 * time.Second

// newHost makes the sandbox host. It is also the catalog with which flows are
// loaded, and so made before there is anywhere to put the lines of guests.
func newHost(ctx context.Context, s settings, lines func(*run.Call, time.Time, run.LogLine), log *slog.Logger) (*host.Host, error) {
	config := host.Config{
		CacheDir: s.cache, Instances: s.workers, Limits: s.limits, Timeout: s.timeout, Lines: lines, Log: log,
		CompileCommand: compileCommand(),
	}
	if config.CacheDir == "" {
		if cache, err := os.UserCacheDir(); err == nil {
			config.CacheDir = filepath.Join(cache, "flowhost")
		}
	}
	if s.data != "" {
		config.Private = []string{s.data}
		// Before anything is loaded: its mistakes are reported as those of a directory.
		if err := natsd.CheckDataDir(s.data); err != nil {
			return nil, &exitError{exitInvalid, err}
		}
		config.Modules = &keptModules{Folder: host.Folder(filepath.Join(s.data, "modules")), settings: s, log: log}
	}
	return host.New(ctx, config)
}

// keptModules keeps modules in the data directory, which the first one claims:
// flows that cannot be loaded leave no directory behind.
type keptModules struct {
	host.Folder
	settings settings
	log      *slog.Logger
}

// Keep implements host.Source.
func (k *keptModules) Keep(ctx context.Context, digest string, module []byte) error {
	if err := k.settings.claimData(k.log); err != nil {
		return err
	}
	return k.Folder.Keep(ctx, digest, module)
}

func (s *settings) claimData(log *slog.Logger) error {
	return natsd.ClaimDataDir(s.data, thisBuild().Version, log)
}

func closeHost(h *host.Host) {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	h.Close(ctx) // fails when a guest still runs, and then the end of the process ends it
}

// nodeConfig is what a node is made of.
type nodeConfig struct {
	settings
	host      *host.Host
	link      *link                               // to NATS; nil: the journal is in memory and nobody is told of events
	flows     flows.Options                       // with which the flows were loaded
	limits    []*flows.Limit                      // of these
	invoker   func(engine.Invoker) engine.Invoker // decorates the host; nil: nothing
	observers []engine.Observer
	log       *slog.Logger
}

// node is a host, a journal and an engine at work. start and stop are called once
// each, on one goroutine.
type node struct {
	engine *engine.Engine
	link   *link

	working sync.WaitGroup
	abandon context.CancelCauseFunc
	ended   chan struct{} // closed when the engine has ended
	fault   error         // why it ended, nil after a soft stop; once ended is closed
	unkept  error         // why something that was told is not kept; after stop
}

func newNode(ctx context.Context, c nodeConfig) (*node, error) {
	config := engine.Config{
		Journal: engine.NewMemoryJournal(), Invoker: c.host,
		Restore: restorer(c.flows), Workers: c.workers, Timeout: c.timeout, Limits: c.limits, Log: c.log,
	}
	for _, o := range c.observers {
		config.Observers = append(config.Observers, engine.Observation{Observer: o})
	}
	if c.invoker != nil {
		config.Invoker = c.invoker(config.Invoker)
	}
	n := &node{link: c.link, ended: make(chan struct{})}
	if c.link != nil {
		flowsOf := func(ctx context.Context, ids []run.ID) (map[run.ID]string, error) { return n.engine.FlowsOf(ctx, ids) }
		if err := c.link.observe(ctx, &config, c.eventsOf, flowsOf); err != nil {
			return nil, err
		}
		config.Journal, config.Snapshots, config.Blobs = c.link.journal, c.link.snapshots, c.link.blobs
		config.History, config.SnapshotEvents = c.link.history, c.snapshotEvery
		config.AcceptLoss = c.acceptLoss || c.durability == natsd.SyncRelaxed
	}
	n.engine = engine.New(config)
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

// start lets the engine read the journal and advance runs, until stop or until
// ctx ends.
func (n *node) start(ctx context.Context) {
	ctx, n.abandon = context.WithCancelCause(ctx)
	n.working.Go(func() {
		defer close(n.ended)
		n.fault = n.explain(n.engine.Run(ctx))
	})
	if n.link != nil {
		n.link.serve(ctx, n.working.Go, n.abandon)
	}
}

// explain adds to the error of a journal that has lost something what to do about it
// here: the engine knows neither the flags nor where the journal is.
func (n *node) explain(err error) error {
	var (
		damage *journal.DamageError
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

// stop lets running attempts end, tells of the last events and waits for
// everything that start started. It hurries when ctx, that of start, ends. The error
// is the engine's.
func (n *node) stop(ctx context.Context) error {
	n.engine.Drain()
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

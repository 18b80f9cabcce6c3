package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/events"
	"github.com/flowhost/flowhost/bus/feed"
	"github.com/flowhost/flowhost/bus/health"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/bus/tasklog"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// shard is the only journal of a host so far.
const shard = 0

// connectTime is how long a first connection to an external NATS server is tried.
const connectTime = 10 * time.Second

// clusterTime is how long a cluster is waited for that can be reached and does not
// answer. Without a leader after a partition it was up to 18 s.
const clusterTime = time.Minute

// link is a node's side of NATS: a server in this process or a connection to
// another one, with everything that is kept there.
type link struct {
	server *natsd.Server // nil with an external server
	engine *nats.Conn    // to the account that only the engine enters, for commits and blobs
	app    *nats.Conn    // to that where flows listen; the same with one account for both

	// Connections for what would hold up commits: requests and triggers, records and logs
	// that others read, and live events. The first two are to the engine's account.
	intake, records, live *nats.Conn

	operator string // account of the operator, where the server tells it from clients

	journal   *journal.Journal
	snapshots *journal.Objects
	blobs     *journal.Objects
	tail      *journal.Journal // read by followers
	events    *events.Publisher
	mark      *journal.Mark
	feed      *feed.Feed // of follow
	history   *history.Store
	logs      *tasklog.Store
	health    *health.Watcher
	keeper    *bus.Keeper

	url     string // where other programs connect; empty without a listener
	context string // file with address and credentials for them; empty with an external server
}

// openLink starts the embedded server, or connects, and provisions the streams.
// Without listen, other programs cannot reach the embedded server.
func openLink(ctx context.Context, s settings, listen bool, set *flows.Set, log *slog.Logger) (*link, error) {
	l := &link{}
	err := l.connect(ctx, s, listen, set, log)
	if err == nil {
		l.keeper = bus.NewKeeper(bus.KeeperConfig{Engine: l.engine, App: l.app, Streams: s.streams, Sync: l.sync, Log: log})
		err = l.settle(ctx, log, func() error {
			err := l.keeper.Provision(ctx)
			if err == nil {
				err = l.open(ctx, s, log)
			}
			return err
		})
	}
	if err == nil {
		return l, nil
	}
	l.close() // what could be closed is; the error above says more
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if exit := (*exitError)(nil); errors.As(err, &exit) {
		return nil, err
	}
	return nil, &exitError{exitUnreachable, err}
}

// settle tries what an external cluster may not answer yet: one that has lost a
// server needs some seconds to agree on who leads a stream.
func (l *link) settle(ctx context.Context, log *slog.Logger, try func() error) error {
	for end := time.Now().Add(clusterTime); ; {
		err := try()
		if err == nil || l.server != nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		log.Warn("the NATS cluster does not answer; trying again", "error", err)
	}
}

// connect starts the embedded server, or connects to another one.
func (l *link) connect(ctx context.Context, s settings, listen bool, set *flows.Set, log *slog.Logger) error {
	if err := s.claimData(log); err != nil {
		return &exitError{exitInvalid, err}
	}
	if s.natsURL != "" {
		return l.connectExternal(ctx, s, log)
	}
	var err error
	l.server, err = natsd.Start(ctx, natsd.Config{
		Dir: s.data, Listen: s.natsListen, NoListen: !listen, Sync: s.durability, Version: thisBuild().Version,
		ClientSubjects: coreSubjects(set), Log: log,
	})
	if err != nil {
		return err
	}
	if took := l.server.FsyncTime(); took > natsd.SlowFsync && s.durability != natsd.SyncRelaxed {
		log.Warn("the disk is slow: each commit waits for it. durability = \"relaxed\" syncs every 100 ms instead", "fsync", took)
	}
	l.url, l.context, l.operator = l.server.URL(), filepath.Join(s.data, natsd.ClientContext), natsd.AccountOperator
	for _, c := range []struct {
		nc      **nats.Conn
		connect func() (*nats.Conn, error)
	}{
		{&l.engine, l.server.ConnectEngine}, {&l.intake, l.server.ConnectEngine}, {&l.records, l.server.ConnectEngine},
		{&l.app, l.server.ConnectApp}, {&l.live, l.server.ConnectApp},
	} {
		if *c.nc, err = c.connect(); err != nil {
			return err
		}
	}
	return nil
}

// connectExternal connects to another server, for two accounts when there are
// credentials for both.
func (l *link) connectExternal(ctx context.Context, s settings, log *slog.Logger) (err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	connect := func(creds, name string) (nc *nats.Conn) {
		if err == nil {
			nc, err = bus.Connect(ctx, bus.ConnectConfig{URL: s.natsURL, Creds: creds, Name: name, Log: log})
		}
		return nc
	}
	l.engine, l.intake, l.records = connect(s.natsCreds, "flowhost"), connect(s.natsCreds, "flowhost-intake"), connect(s.natsCreds, "flowhost-records")
	if err != nil {
		return err
	}
	l.url, l.app = l.engine.ConnectedUrlRedacted(), l.intake
	if s.natsAppCreds == "" {
		log.Warn("the engine and its clients share one NATS account: whoever may publish there can name a stream's subject, or a request of JetStream, as the reply subject of a message, and so remove what the host keeps. Give the engine an account: 'flowhost nats config' prints the server's configuration, and docs/nats.md explains it")
		l.live = connect(s.natsCreds, "flowhost-events")
		return err
	}
	l.app, l.live = connect(s.natsAppCreds, "flowhost-app"), connect(s.natsAppCreds, "flowhost-events")
	if err != nil {
		return fmt.Errorf("with app_creds: %w", err)
	}
	l.operator, err = bus.SeparateAccounts(ctx, l.engine, l.app)
	return err
}

// sync flushes the embedded server's files to the disk. Those of an external one
// are its own.
func (l *link) sync() error {
	if l.server == nil {
		return nil
	}
	return l.server.Sync()
}

// room tells whether the embedded server has room to write.
func (l *link) room() error {
	if l.server == nil {
		return nil
	}
	return l.server.Room()
}

func (l *link) open(ctx context.Context, s settings, log *slog.Logger) error {
	objects := journal.ObjectsConfig{Log: log}
	copied := events.Config{Of: events.Of(s.eventsOf), Log: log}
	if l.server != nil {
		objects.Grace = -1
		copied.Listened = l.server.Listened
	}
	var errs [8]error
	l.journal, errs[0] = journal.New(ctx, l.engine, shard, journal.Config{Log: log})
	l.snapshots, errs[1] = journal.NewObjects(ctx, l.engine, bus.BucketSnapshots, objects)
	l.blobs, errs[2] = journal.NewObjects(ctx, l.engine, bus.BucketBlobs, objects)
	l.events, errs[3] = events.New(l.live, shard, copied)
	l.history, errs[4] = history.New(ctx, l.records, history.Config{
		Index: filepath.Join(s.data, "history.index"), Shard: shard, Sync: l.sync, Room: l.room, Log: log,
	})
	l.logs, errs[5] = tasklog.New(ctx, l.records, tasklog.Config{Log: log})
	l.mark, errs[6] = journal.NewMark(l.engine, shard, journal.MarkConfig{File: markFile(s), Log: log})
	l.tail, errs[7] = journal.New(ctx, l.records, shard, journal.Config{Log: log})
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	l.health = health.New(health.Config{Server: l.server, Journals: []*journal.Journal{l.journal}, Log: log})
	return nil
}

// markFile is where the data directory remembers how far the journal went. A journal in
// memory goes with the process.
func markFile(s settings) string {
	if s.data == "" || s.natsURL == "" && s.durability == natsd.SyncMemory {
		return ""
	}
	return filepath.Join(s.data, "journal.mark")
}

// observe gives an engine's configuration what is told of durable events, and how far
// others know of the journal. Where it cannot be asked who listens, the events that are
// stored are published live, and no others.
func (l *link) observe(ctx context.Context, config *engine.Config, eventsOf string, flowsOf flowsOf) error {
	at, err := l.history.Last(ctx, l.journal)
	if err == nil {
		config.Told, err = l.mark.Last(ctx)
	}
	if err != nil {
		return exitf(exitUnreachable, "%w", err)
	}
	config.Observers = append(config.Observers, engine.Observation{
		Observer: l.history, RunsOnly: true,
		CatchUp: true, Seen: engine.Place{Revision: at.InJournal, Index: at.Index}, Told: at.Published,
	})
	if l.server != nil || eventsOf != "none" {
		config.Observers = append(config.Observers, engine.Observation{Observer: l.events, RunsOnly: l.server == nil && eventsOf == "runs"})
	}
	l.feed = feed.New(feed.Config{Journal: l.tail, History: l.history, FlowsOf: flowsOf})
	config.Durable = func(revision uint64) {
		l.mark.Durable(revision)
		l.feed.Durable(revision)
	}
	return nil
}

// flowsOf gives the flows of runs that are open or ended lately.
type flowsOf func(context.Context, []run.ID) (map[run.ID]string, error)

// serve runs what works beside the engine, until ctx ends. Without one of them the
// host cannot go on: its error ends everything.
func (l *link) serve(ctx context.Context, start func(func()), end context.CancelCauseFunc) {
	for _, part := range []interface{ Run(context.Context) error }{l.events, l.mark, l.feed, l.history, l.logs, l.health, l.keeper} {
		start(func() {
			if err := part.Run(ctx); err != nil && ctx.Err() == nil {
				end(err)
			}
		})
	}
}

// flush waits until everything that was told is kept.
func (l *link) flush(ctx context.Context) error {
	err := l.history.Flush(ctx)
	if err != nil {
		err = fmt.Errorf("the last records are published at the next start: %w", err)
	}
	return errors.Join(err, l.events.Drain(ctx), l.logs.Flush(ctx))
}

// close ends the connections and the embedded server, whatever of them there is.
func (l *link) close() error {
	for _, nc := range []*nats.Conn{l.engine, l.intake, l.records, l.app, l.live} {
		if nc != nil {
			nc.Close()
		}
	}
	if l.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	return l.server.Shutdown(ctx)
}

// allow lets the client user of the embedded server publish on other subjects.
// Who may do what on an external one is its operator's business.
func (l *link) allow(subjects []string) error {
	if l.server == nil {
		return nil
	}
	return l.server.AllowClient(subjects)
}

// connected reports whether the connection of a requester is still there. That of an
// external server is taken to be.
func (l *link) connected(who api.Requester) bool { return l.server == nil || l.server.Connected(who) }

package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/buildinfo"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/settings"
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

// Link is a node's side of NATS: a server in this process or a connection to
// another one, with everything that is kept there.
type Link struct {
	server *bus.Server // nil with an external server
	engine *nats.Conn  // to the account that only the engine enters, for commits and blobs
	app    *nats.Conn  // to that where flows listen; the same with one account for both

	// Connections for what would hold up commits: requests and triggers, records and logs
	// that others read, and live events. The first two are to the engine's account.
	intake, records, live *nats.Conn

	operator string // account of the operator, where the server tells it from clients

	journal   *bus.Journal
	snapshots *bus.Objects
	blobs     *bus.Objects
	tail      *bus.Journal // read by followers
	events    *bus.Events
	mark      *bus.Mark
	feed      *bus.Feed // of follow
	history   *bus.History
	logs      *bus.Logs
	health    *bus.Health
	keeper    *bus.Keeper

	url     string // where other programs connect; empty without a listener
	context string // file with address and credentials for them; empty with an external server
}

// OpenLink starts the embedded server, or connects, and provisions the streams.
// Without listen, other programs cannot reach the embedded server.
func OpenLink(ctx context.Context, s settings.Settings, listen bool, set *flows.Set, log *slog.Logger) (*Link, error) {
	l := &Link{}
	err := l.connect(ctx, s, listen, set, log)
	if err == nil {
		l.keeper = bus.NewKeeper(bus.KeeperConfig{Engine: l.engine, App: l.app, Streams: s.Streams, Sync: l.sync, Log: log})
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
	l.Close() // what could be closed is; the error above says more
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if exit := (*cli.ExitError)(nil); errors.As(err, &exit) {
		return nil, err
	}
	return nil, cli.WithCode(cli.ExitUnreachable, err)
}

// settle tries what an external cluster may not answer yet: one that has lost a
// server needs some seconds to agree on who leads a stream.
func (l *Link) settle(ctx context.Context, log *slog.Logger, try func() error) error {
	for end := time.Now().Add(clusterTime); ; {
		err := try()
		if err == nil || l.server != nil || !errors.Is(err, context.DeadlineExceeded) || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		log.Warn("the NATS cluster does not answer; trying again", "error", err)
	}
}

// connect starts the embedded server, or connects to another one.
func (l *Link) connect(ctx context.Context, s settings.Settings, listen bool, set *flows.Set, log *slog.Logger) error {
	if err := claimData(&s, log); err != nil {
		return cli.WithCode(cli.ExitInvalid, err)
	}
	if s.NATSURL != "" {
		return l.connectExternal(ctx, s, log)
	}
	var err error
	l.server, err = bus.StartServer(ctx, bus.ServerConfig{
		Dir: s.Data, Listen: s.NATSListen, NoListen: !listen, Sync: s.Durability, Version: buildinfo.This().Version,
		ClientSubjects: CoreSubjects(set), Log: log,
	})
	if err != nil {
		return err
	}
	if took := l.server.FsyncTime(); took > bus.SlowFsync && s.Durability != bus.SyncRelaxed {
		log.Warn("the disk is slow: each commit waits for it. durability = \"relaxed\" syncs every 100 ms instead", "fsync", took)
	}
	l.url, l.context, l.operator = l.server.URL(), filepath.Join(s.Data, bus.ClientContext), bus.AccountOperator
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
func (l *Link) connectExternal(ctx context.Context, s settings.Settings, log *slog.Logger) (err error) {
	ctx, cancel := context.WithTimeout(ctx, connectTime)
	defer cancel()
	connect := func(creds, name string) (nc *nats.Conn) {
		if err == nil {
			nc, err = bus.Connect(ctx, bus.ConnectConfig{URL: s.NATSURL, Creds: creds, Name: name, Log: log})
		}
		return nc
	}
	l.engine, l.intake, l.records = connect(s.NATSCreds, "flowhost"), connect(s.NATSCreds, "flowhost-intake"), connect(s.NATSCreds, "flowhost-records")
	if err != nil {
		return err
	}
	l.url, l.app = l.engine.ConnectedUrlRedacted(), l.intake
	if s.NATSAppCreds == "" {
		log.Warn("the engine and its clients share one NATS account: whoever may publish there can name a stream's subject, or a request of JetStream, as the reply subject of a message, and so remove what the host keeps. Give the engine an account: 'flowhost nats config' prints the server's configuration, and docs/nats.md explains it")
		l.live = connect(s.NATSCreds, "flowhost-events")
		return err
	}
	l.app, l.live = connect(s.NATSAppCreds, "flowhost-app"), connect(s.NATSAppCreds, "flowhost-events")
	if err != nil {
		return fmt.Errorf("with app_creds: %w", err)
	}
	l.operator, err = bus.SeparateAccounts(ctx, l.engine, l.app)
	return err
}

// sync flushes the embedded server's files to the disk. Those of an external one
// are its own.
func (l *Link) sync() error {
	if l.server == nil {
		return nil
	}
	return l.server.Sync()
}

// room tells whether the embedded server has room to write.
func (l *Link) room() error {
	if l.server == nil {
		return nil
	}
	return l.server.Room()
}

func (l *Link) open(ctx context.Context, s settings.Settings, log *slog.Logger) error {
	objects := bus.ObjectsConfig{Log: log}
	events := bus.EventsConfig{Of: bus.EventsOf(s.EventsOf), Log: log}
	if l.server != nil {
		objects.Grace = -1
		events.Listened = l.server.Listened
	}
	var errs [8]error
	l.journal, errs[0] = bus.NewJournal(ctx, l.engine, shard, bus.JournalConfig{Log: log})
	l.snapshots, errs[1] = bus.NewObjects(ctx, l.engine, bus.BucketSnapshots, objects)
	l.blobs, errs[2] = bus.NewObjects(ctx, l.engine, bus.BucketBlobs, objects)
	l.events, errs[3] = bus.NewEvents(l.live, shard, events)
	l.history, errs[4] = bus.NewHistory(ctx, l.records, bus.HistoryConfig{
		Index: filepath.Join(s.Data, "history.index"), Shard: shard, Sync: l.sync, Room: l.room, Log: log,
	})
	l.logs, errs[5] = bus.NewLogs(ctx, l.records, bus.LogsConfig{Log: log})
	l.mark, errs[6] = bus.NewMark(l.engine, shard, bus.MarkConfig{File: markFile(s), Log: log})
	l.tail, errs[7] = bus.NewJournal(ctx, l.records, shard, bus.JournalConfig{Log: log})
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	l.health = bus.NewHealth(bus.HealthConfig{Server: l.server, Journals: []*bus.Journal{l.journal}, Log: log})
	return nil
}

// markFile is where the data directory remembers how far the journal went. A journal in
// memory goes with the process.
func markFile(s settings.Settings) string {
	if s.Data == "" || s.NATSURL == "" && s.Durability == bus.SyncMemory {
		return ""
	}
	return filepath.Join(s.Data, "journal.mark")
}

// observe gives an engine's configuration what is told of durable events, and how far
// others know of the journal. Where it cannot be asked who listens, the events that are
// stored are published live, and no others.
func (l *Link) observe(ctx context.Context, config *engine.Config, eventsOf string, flowsOf flowsOf) error {
	at, err := l.history.Last(ctx, l.journal)
	if err == nil {
		config.Told, err = l.mark.Last(ctx)
	}
	if err != nil {
		return cli.Exitf(cli.ExitUnreachable, "%w", err)
	}
	config.Observers = append(config.Observers, engine.Observation{
		Observer: l.history, RunsOnly: true,
		CatchUp: true, Seen: engine.Place{Revision: at.Revision, Index: at.Index}, Told: at.Told,
	})
	if l.server != nil || eventsOf != "none" {
		config.Observers = append(config.Observers, engine.Observation{Observer: l.events, RunsOnly: l.server == nil && eventsOf == "runs"})
	}
	l.feed = bus.NewFeed(bus.FeedConfig{Journal: l.tail, History: l.history, FlowsOf: flowsOf})
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
func (l *Link) serve(ctx context.Context, start func(func()), end context.CancelCauseFunc) {
	for _, part := range []interface{ Run(context.Context) error }{l.events, l.mark, l.feed, l.history, l.logs, l.health, l.keeper} {
		start(func() {
			if err := part.Run(ctx); err != nil && ctx.Err() == nil {
				end(err)
			}
		})
	}
}

// flush waits until everything that was told is kept.
func (l *Link) flush(ctx context.Context) error {
	err := l.history.Flush(ctx)
	if err != nil {
		err = fmt.Errorf("the last records are published at the next start: %w", err)
	}
	return errors.Join(err, l.events.Drain(ctx), l.logs.Flush(ctx))
}

// Close ends the connections and the embedded server, whatever of them there is.
func (l *Link) Close() error {
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
func (l *Link) allow(subjects []string) error {
	if l.server == nil {
		return nil
	}
	return l.server.AllowClient(subjects)
}

// connected reports whether the connection of a requester is still there. That of an
// external server is taken to be.
func (l *Link) connected(who bus.Requester) bool { return l.server == nil || l.server.Connected(who) }

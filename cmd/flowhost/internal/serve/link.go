package serve

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/bus/events"
	"github.com/flowhost/flowhost/bus/feed"
	"github.com/flowhost/flowhost/bus/health"
	"github.com/flowhost/flowhost/bus/history"
	"github.com/flowhost/flowhost/bus/journal"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/bus/tasklog"
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

// clusterTime bounds the wait for a cluster that is reachable and does not answer.
// After a partition, a stream was without a leader for up to 18 s.
const clusterTime = time.Minute

// releaseTime bounds the last message to an external server.
const releaseTime = 2 * time.Second

// Link is a node's side of NATS: a server in this process or a connection to
// another one, with the streams and buckets there.
type Link struct {
	server *natsd.Server // nil with an external server
	engine *nats.Conn    // to the account that only the engine uses, for commits and blobs
	app    *nats.Conn    // to the account that flows listen in; the same with one account for both

	// Connections for traffic that would delay commits: requests and triggers, records and
	// logs that clients read, and live events. The first two use the engine's account.
	intake, records, live *nats.Conn

	operator string // account of the operator, if the server separates it from clients

	lease     *journal.Lease // of the journal; nil with the embedded server, whose directory is locked
	journal   *journal.Journal
	snapshots *journal.Objects
	blobs     *journal.Objects
	artifacts artifacts.Store
	tail      *journal.Journal // read by followers
	events    *events.Publisher
	mark      *journal.Mark
	feed      *feed.Feed // of follow
	history   *history.Store
	logs      *tasklog.Store
	health    *health.Watcher
	keeper    *bus.Keeper

	closing []func() error // what else is to be closed

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
			err := l.lead(ctx, s, log)
			if err == nil {
				err = l.keeper.Provision(ctx)
			}
			if err == nil {
				err = l.open(ctx, s, log)
			}
			return err
		})
	}
	if err == nil {
		return l, nil
	}
	l.Close() // its error would hide the one above
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	if exit, creds := (*cli.ExitError)(nil), (*bus.CredentialsError)(nil); errors.As(err, &exit) || errors.As(err, &creds) {
		return nil, err
	}
	return nil, cli.WithCode(cli.ExitUnreachable, err)
}

// settle retries while an external cluster does not answer yet: after the loss of a
// server, it takes seconds to elect the leader of a stream.
func (l *Link) settle(ctx context.Context, log *slog.Logger, try func() error) error {
	for end := time.Now().Add(clusterTime); ; {
		err := try()
		if refused := l.engine.LastError(); err != nil && errors.Is(refused, nats.ErrPermissionViolation) {
			return fmt.Errorf("the NATS server does not let the engine's user work: %w. 'flowhost nats config' prints a configuration that does", refused)
		}
		away := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, jetstream.ErrNoStreamResponse)
		if err == nil || l.server != nil || !away || ctx.Err() != nil || time.Now().After(end) {
			return err
		}
		log.Warn("the NATS cluster does not answer, retrying", "error", err)
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
	l.server, err = natsd.Start(ctx, natsd.Config{
		Dir: s.Data, Listen: s.NATSListen, NoListen: !listen, Sync: s.Durability, Version: buildinfo.This().Version,
		ClientSubjects: CoreSubjects(set), Log: log,
	})
	if err != nil {
		return err
	}
	if took := l.server.FsyncTime(); took > natsd.SlowFsync && s.Durability != natsd.SyncRelaxed {
		log.Warn("the disk is slow, and each commit waits for it: durability = \"relaxed\" syncs every 100 ms instead", "fsync", took)
	}
	l.url, l.context, l.operator = l.server.URL(), filepath.Join(s.Data, natsd.ClientContext), natsd.AccountOperator
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
		log.Warn("the engine and its clients share one NATS account: any client can name a stream's subject, or a JetStream request, as the reply subject of a message, and so delete the host's data. Give the engine its own account: 'flowhost nats config' prints the server's configuration, docs/nats.md explains it")
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

// lead makes this the only host on the journal of an external server, before it changes
// anything there.
func (l *Link) lead(ctx context.Context, s settings.Settings, log *slog.Logger) (err error) {
	if l.server != nil || l.lease != nil {
		return nil
	}
	host, _ := os.Hostname() // it is for people; the id tells owners apart
	owner := journal.Owner{Host: host, Process: os.Getpid(), Since: time.Now().UTC(), ID: rand.Text()}
	l.lease, err = journal.AcquireLease(ctx, l.intake, shard, s.Streams, journal.LeaseConfig{Owner: owner, Log: log})
	return err
}

// sync flushes the files of an embedded server to disk.
func (l *Link) sync() error {
	if l.server == nil {
		return nil
	}
	return l.server.Sync()
}

// room reports an error while the embedded server has no space to write.
func (l *Link) room() error {
	if l.server == nil {
		return nil
	}
	return l.server.Room()
}

func (l *Link) open(ctx context.Context, s settings.Settings, log *slog.Logger) error {
	objects := journal.ObjectsConfig{Log: log}
	config := events.Config{Of: events.Of(s.EventsOf), Log: log}
	if l.server != nil {
		objects.Grace = -1
		config.Listened = l.server.Listened
	}
	var errs [9]error
	l.artifacts, errs[8] = l.openArtifacts(s, log)
	l.journal, errs[0] = journal.New(ctx, l.engine, shard, journal.Config{Log: log})
	l.snapshots, errs[1] = journal.NewObjects(ctx, l.engine, bus.BucketSnapshots, objects)
	l.blobs, errs[2] = journal.NewObjects(ctx, l.engine, bus.BucketBlobs, objects)
	l.events, errs[3] = events.New(l.live, shard, config)
	l.history, errs[4] = history.New(ctx, l.records, history.Config{
		Index: filepath.Join(s.Data, "history.index"), Shard: shard, Sync: l.sync, Room: l.room, Log: log,
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

// openArtifacts opens the store of artifacts: files of the data directory, or a bucket of an
// external server, which others may share.
func (l *Link) openArtifacts(s settings.Settings, log *slog.Logger) (artifacts.Store, error) {
	if l.server == nil {
		return &lateStore{open: func(ctx context.Context) (artifacts.Store, error) {
			return artifacts.OpenObjects(ctx, artifacts.ObjectsConfig{Conn: l.records, Replicas: max(s.Streams.Replicas, 1), Log: log})
		}}, nil
	}
	files, err := artifacts.OpenFiles(artifacts.FilesConfig{Dir: filepath.Join(s.Data, "artifacts"), Log: log})
	if err != nil {
		return nil, err
	}
	l.closing = append(l.closing, files.Close)
	return files, nil
}

// markFile is the file that records how far the journal went. A journal in memory has
// none.
func markFile(s settings.Settings) string {
	if s.Data == "" || s.NATSURL == "" && s.Durability == natsd.SyncMemory {
		return ""
	}
	return filepath.Join(s.Data, "journal.mark")
}

// observe adds to an engine's configuration the observers of durable events, and how
// far others have seen the journal. If the server cannot report its subscribers, only
// stored events are published live.
func (l *Link) observe(ctx context.Context, config *engine.Config, eventsOf string, flowsOf flowsOf) error {
	at, err := l.history.Last(ctx, l.journal)
	if err == nil {
		config.Published, err = l.mark.Last(ctx)
	}
	if err != nil {
		return cli.Exitf(cli.ExitUnreachable, "%w", err)
	}
	config.Observers = append(config.Observers, engine.Observation{
		Observer: l.history, RunsOnly: true,
		CatchUp: true, Seen: engine.Place{Revision: at.InJournal, Index: at.Index}, Published: at.Published,
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

// flowsOf returns the flows of runs that are open or have ended recently.
type flowsOf func(context.Context, []run.ID) (map[run.ID]string, error)

// serve runs the parts beside the engine until ctx ends. The host cannot continue
// without one of them: its error ends everything.
func (l *Link) serve(ctx context.Context, start func(func()), end context.CancelCauseFunc) {
	parts := []interface{ Run(context.Context) error }{l.events, l.mark, l.feed, l.history, l.logs, l.health, l.keeper}
	if l.lease != nil {
		parts = append(parts, l.lease)
	}
	for _, part := range parts {
		start(func() {
			if err := part.Run(ctx); err != nil && ctx.Err() == nil {
				end(err)
			}
		})
	}
}

// flush waits until all observed events are stored, and how far the journal went.
func (l *Link) flush(ctx context.Context) error {
	err := l.history.Flush(ctx)
	if err != nil {
		err = fmt.Errorf("the last records will be published at the next start: %w", err)
	}
	return errors.Join(err, l.mark.Flush(ctx), l.events.Drain(ctx), l.logs.Flush(ctx))
}

// Close gives the journal up, and closes the connections and the embedded server, as far
// as they exist.
func (l *Link) Close() error {
	if l.lease != nil {
		ctx, cancel := context.WithTimeout(context.Background(), releaseTime)
		defer cancel()
		_ = l.lease.Release(ctx) // without it, the next host waits until the lease expires
	}
	for _, nc := range []*nats.Conn{l.engine, l.intake, l.records, l.app, l.live} {
		if nc != nil {
			nc.Close()
		}
	}
	var errs []error
	for _, end := range l.closing {
		errs = append(errs, end())
	}
	if l.server == nil {
		return errors.Join(errs...)
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	return errors.Join(append(errs, l.server.Shutdown(ctx))...)
}

// allow lets the client user of the embedded server publish on other subjects. The
// operator of an external server sets its permissions.
func (l *Link) allow(subjects []string) error {
	if l.server == nil {
		return nil
	}
	return l.server.AllowClient(subjects)
}

// connected reports whether the connection of a requester is still open. It cannot
// know that of an external server, and assumes so.
func (l *Link) connected(who api.Requester) bool { return l.server == nil || l.server.Connected(who) }

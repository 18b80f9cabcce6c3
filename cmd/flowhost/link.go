package main

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// shard is the only journal of a host so far.
const shard = 0

// connectTime is how long a first connection to an external NATS server is tried.
const connectTime = 10 * time.Second

// link is a node's side of NATS: a server in this process or a connection to
// another one, with the journal and the publisher of events on it.
type link struct {
	server  *bus.Server // nil with an external server
	conn    *nats.Conn
	journal *bus.Journal
	events  *bus.Events
	url     string // where other programs connect; empty without a listener
	context string // file with address and credentials for them; empty with an external server
}

// openLink starts the embedded server, or connects, and provisions the streams.
// Without listen, other programs cannot reach the embedded server.
func openLink(ctx context.Context, s settings, listen bool, set *flows.Set, log *slog.Logger) (*link, error) {
	l := &link{}
	journal, err := l.connect(ctx, s, listen, set, log)
	if err == nil {
		err = l.open(ctx, journal, log)
	}
	if err == nil {
		return l, nil
	}
	l.close() // what could be closed is; the error above says more
	if cause := context.Cause(ctx); cause != nil {
		return nil, cause
	}
	return nil, &exitError{exitUnreachable, err}
}

// connect gives the connection for the journal.
func (l *link) connect(ctx context.Context, s settings, listen bool, set *flows.Set, log *slog.Logger) (*nats.Conn, error) {
	var err error
	if s.natsURL != "" {
		ctx, cancel := context.WithTimeout(ctx, connectTime)
		defer cancel()
		l.conn, err = bus.Connect(ctx, bus.ConnectConfig{URL: s.natsURL, Creds: s.natsCreds, Log: log})
		if err == nil {
			l.url = l.conn.ConnectedUrlRedacted()
		}
		return l.conn, err
	}
	l.server, err = bus.StartServer(ctx, bus.ServerConfig{
		Dir: s.data, Listen: s.natsListen, NoListen: !listen, Sync: s.durability,
		ClientSubjects: coreSubjects(set), Log: log,
	})
	if err != nil {
		return nil, err
	}
	l.url, l.context = l.server.URL(), filepath.Join(s.data, bus.ClientContext)
	if l.conn, err = l.server.Connect(); err != nil {
		return nil, err
	}
	return l.server.ConnectJournal()
}

func (l *link) open(ctx context.Context, journal *nats.Conn, log *slog.Logger) error {
	err := bus.ProvisionJournal(ctx, journal, bus.StreamConfig{})
	if err == nil {
		err = bus.Provision(ctx, l.conn, bus.StreamConfig{})
	}
	if err == nil && l.server != nil {
		err = l.server.Sync()
	}
	if err == nil {
		l.journal, err = bus.NewJournal(ctx, journal, shard, bus.JournalConfig{Log: log})
	}
	if err == nil {
		l.events, err = bus.NewEvents(ctx, l.conn, shard, bus.EventsConfig{Log: log})
	}
	return err
}

// close ends the connections and the embedded server, whatever of them there is.
func (l *link) close() error {
	if l.conn != nil {
		l.conn.Close()
	}
	if l.server == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	return l.server.Shutdown(ctx)
}

// subscriptions are the message triggers of a set.
func subscriptions(set *flows.Set) []bus.Subscription {
	var out []bus.Subscription
	for _, f := range set.Flows {
		for _, t := range f.Triggers {
			if t.Kind == run.TriggerMessage && t.Enabled {
				out = append(out, bus.Subscription{
					Flow: f.Name, Trigger: t.Name, Subject: t.Subject, Stream: t.Stream, Durable: t.Durable,
				})
			}
		}
	}
	return out
}

// coreSubjects are the subjects on which flows listen themselves: the users of
// the embedded server may publish on them.
func coreSubjects(set *flows.Set) []string {
	var out []string
	for _, s := range subscriptions(set) {
		if s.Subject != "" {
			out = append(out, s.Subject)
		}
	}
	return out
}

// codeOfEngine is the code with which requests are answered for an error of the
// engine.
func codeOfEngine(err error) string {
	var busy *engine.BusyError
	switch {
	case errors.As(err, &busy):
		return bus.CodeBusy
	case errors.Is(err, engine.ErrUnknownRun):
		return "unknown_run"
	case errors.Is(err, engine.ErrFinished):
		return "finished"
	}
	return ""
}

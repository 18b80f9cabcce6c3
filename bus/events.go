package bus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/run"
)

// EventsConfig configures the publisher of events. Its zero value works.
type EventsConfig struct {
	Window  int           // messages that are under way together; default 256
	Timeout time.Duration // for an acknowledgement, after which they are sent again; default 5s
	Sync    func() error  // flushes the stream's files to the disk; default: nothing, they are the server's
	Room    func() error  // ErrNoRoom while the server must not be asked to write its files; default: it always may
	Log     *slog.Logger  // default: none

	// RunsOnly leaves out what happens to the tasks of a run: one message for each
	// event is the most expensive part of a host that makes tens of thousands of
	// tasks a second. Default: everything is published.
	RunsOnly bool
}

// Events publishes a shard's events in stream FH_EVENTS, in the order of the
// journal and without a gap. Committed takes an event, Run publishes it.
type Events struct {
	publisher *publisher
	shard     int
	runsOnly  bool
}

// NewEvents makes a publisher to the stream that [Provision] has made. The
// connection stays the caller's.
func NewEvents(ctx context.Context, nc *nats.Conn, shard int, cfg EventsConfig) (*Events, error) {
	p, err := newPublisher(ctx, nc, publisherConfig{
		stream: StreamEvents, what: "events", ordered: true, window: cfg.Window, timeout: cfg.Timeout, sync: cfg.Sync, room: cfg.Room, log: cfg.Log,
	})
	if err != nil {
		return nil, err
	}
	return &Events{publisher: p, shard: shard, runsOnly: cfg.RunsOnly}, nil
}

// Committed takes an event to be published. It waits while too many are on their
// way, until ctx ends. Events that belong to no run are left out, and so are those
// older than the stream keeps.
func (e *Events) Committed(ctx context.Context, n run.Notice) error {
	if n.Flow == "" || e.runsOnly && run.OfTask(n.Event.Data) || !e.publisher.keeps(n.Event.At) {
		return nil
	}
	if err := CheckToken(n.Flow); err != nil {
		return fmt.Errorf("event of run %s: flow: %w", n.Event.Run, err)
	}
	id := eventID(e.shard, n)
	body, err := encodeEvent(n, id, e.publisher.limit())
	if err != nil {
		return err
	}
	err = e.publisher.give(ctx, &nats.Msg{
		Subject: EventSubject(n.Flow, n.Event.Run, n.Event.Data.Kind()),
		Data:    body,
		Header: nats.Header{
			jetstream.MsgIDHeader: {id},
			HeaderRevision:        {strconv.FormatUint(n.Revision, 10)},
			HeaderIndex:           {strconv.Itoa(n.Index)},
			run.HeaderHops:        {strconv.Itoa(n.Hops + run.HopsOfEvent)},
		},
	})
	if err != nil {
		return fmt.Errorf("event %s: %w", id, err)
	}
	return nil
}

// Flush waits until everything that Committed took before is acknowledged and on
// the disk, as far as Sync is there to bring it there, or until ctx ends. Run must
// be running.
func (e *Events) Flush(ctx context.Context) error { return e.publisher.flush(ctx) }

// Run publishes until ctx ends, and returns its cause. What is not acknowledged
// then is published when it is given again after the next start.
func (e *Events) Run(ctx context.Context) error { return e.publisher.run(ctx) }

// Last finds where publishing ended. Events after it are to be given to Committed
// again at start.
func (e *Events) Last(ctx context.Context, j *Journal) (Standing, error) {
	return e.publisher.standing(ctx, j, func(header nats.Header) (published, bool) {
		shard, at, ok := parseEventID(header.Get(jetstream.MsgIDHeader))
		return at, ok && shard == e.shard
	})
}

// eventID names an event for ever: a revision alone is given to another commit when
// the journal has lost its end.
func eventID(shard int, n run.Notice) string {
	return fmt.Sprintf("%d-%d-%d-%08x", shard, n.Revision, n.Index, n.Sum)
}

// parseEventID reads an id. Those that older versions gave do not end with the
// commit's checksum.
func parseEventID(id string) (shard int, at published, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) != 3 && len(parts) != 4 {
		return 0, published{}, false
	}
	shard, err1 := strconv.Atoi(parts[0])
	revision, err2 := strconv.ParseUint(parts[1], 10, 64)
	index, err3 := strconv.Atoi(parts[2])
	at = published{revision: revision, index: index, sum: strings.Join(parts[3:], "")}
	return shard, at, errors.Join(err1, err2, err3) == nil
}

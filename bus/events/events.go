package events

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// Bounds of events that wait to be published. Further ones are dropped: events never
// hold back the engine.
const (
	liveBytes   = 8 << 20  // of live events
	storedBytes = 32 << 20 // of messages for the stream, collected or on their way
	bundleBytes = 64 << 10 // of one message, after which the next one begins
	bundleTime  = 100 * time.Millisecond
)

// Of selects the events of which there is a copy in the stream FH_EVENTS.
type Of string

// Values of [Of].
const (
	OfTasks Of = "tasks" // those of runs and of their tasks
	OfRuns  Of = "runs"  // those of runs as a whole
	OfNone  Of = "none"
)

// has reports whether the events of this choice include one.
func (of Of) has(data run.EventData) bool {
	return of == "" || of == OfTasks || of == OfRuns && !run.OfTask(data)
}

// Config configures the publisher of events. Its zero value works.
type Config struct {
	Of Of // what the stream gets; default EventsOfTasks

	// Listened reports whether anybody listens to a subject: live events are made for
	// those alone. Default: that is unknown, and the events that Of names are published.
	Listened func(subject string) bool

	Timeout time.Duration // for an acknowledgement, after which a message is sent again; default 5s
	Log     *slog.Logger  // default: none
}

// Publisher publishes what happens to runs, for others to see: live events, one core
// message for each, and a copy in stream FH_EVENTS, one message for a run and what
// happened to it within 100 ms. Both are made from the journal and may be lost: who
// needs every event follows by [feed.Feed]. Committed never waits; Run publishes.
type Publisher struct {
	cfg   Config
	nc    *nats.Conn
	js    jetstream.JetStream
	shard int
	limit int // of a message's body in bytes
	log   *slog.Logger

	mu        sync.Mutex
	live      []*nats.Msg // guarded by mu, as is what follows
	liveSize  int
	open      map[run.ID]*bundle // that take further events
	last      *bundle            // of open, which took the last event; nil for none
	ready     []*bundle          // that do not
	id        []byte             // of the event that is taken
	usual     int                // size of the message that was closed last
	spare     [][]byte           // bodies of messages that the stream has, emptied
	collected int                // bytes of open and ready, and of those under way
	sending   int                // bundles under way
	lost      dropped

	liveCome  chan struct{} // one place: live has something
	readyCome chan struct{} // one place: ready has something
	openCome  chan struct{} // one place: open has something again, or something was dropped
	sent      chan struct{} // one place: nothing is left of what was collected
}

// dropped counts events for which there was no room, since they were last logged.
type dropped struct{ live, stored int }

// bundle is one message for the stream.
type bundle struct {
	flow string
	run  run.ID
	id   string // of its first event
	hops string // see run.HeaderHops
	body []byte // "[{…},{…}": the closing bracket is missing
}

// New makes a publisher to the stream that [bus.ProvisionEvents] has made. The
// connection stays the caller's; a listener that does not keep up may hold it up for
// a while, so it should be used for nothing else.
func New(nc *nats.Conn, shard int, cfg Config) (*Publisher, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(2*eventWindow), jetstream.WithPublishAsyncTimeout(cfg.Timeout))
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	return &Publisher{
		cfg: cfg, nc: nc, js: js, shard: shard, limit: int(nc.MaxPayload()) - jskit.Overhead, log: jskit.Logger(cfg.Log),
		open: map[run.ID]*bundle{}, liveCome: make(chan struct{}, 1), readyCome: make(chan struct{}, 1), openCome: make(chan struct{}, 1), sent: make(chan struct{}, 1),
	}, nil
}

// Committed takes an event. Those that belong to no run are left out, and those for
// which there is no room are dropped: the publisher logs it.
func (e *Publisher) Committed(_ context.Context, n run.Notice) error {
	if n.Flow == "" {
		return nil
	}
	stored := e.cfg.Of.has(n.Event.Data)
	live := stored
	if e.cfg.Listened != nil {
		live = e.cfg.Listened(bus.EventSubject(n.Flow, n.Event.Run, n.Event.Data.Kind()))
	}
	if !stored && !live {
		return nil
	}
	if err := bus.CheckToken(n.Flow); err != nil {
		return fmt.Errorf("event of run %s: flow: %w", n.Event.Run, err)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.id = appendID(e.id[:0], e.shard, n.Revision, n.Index, n.Sum)
	if live {
		body, err := appendWithRecord(nil, &n, e.id, e.limit)
		if err != nil {
			return err
		}
		subject := bus.EventSubject(n.Flow, n.Event.Run, n.Event.Data.Kind())
		e.addLive(&nats.Msg{Subject: subject, Data: body, Header: nats.Header{run.HeaderHops: {hopsOf(&n)}}})
	}
	if stored {
		return e.collect(&n)
	}
	return nil
}

// hopsOf is the value of the header run.HeaderHops of an event.
func hopsOf(n *run.Notice) string { return strconv.Itoa(n.Hops + run.HopsOfEvent) }

func (e *Publisher) addLive(msg *nats.Msg) {
	if e.liveSize > 0 && e.liveSize+len(msg.Data) > liveBytes {
		e.lost.live++
		signal(e.openCome)
		return
	}
	e.live = append(e.live, msg)
	e.liveSize += len(msg.Data)
	signal(e.liveCome)
}

// collect adds an event to the message of its run.
func (e *Publisher) collect(n *run.Notice) error {
	if e.collected >= storedBytes {
		e.lost.stored++
		signal(e.openCome)
		return nil
	}
	b := e.last // of most events, the one before is of the same run
	if b == nil || b.run != n.Event.Run {
		b = e.open[n.Event.Run]
	}
	if b == nil {
		b = e.begin(n)
	}
	whole := min(bundleBytes, e.limit)
	before := len(b.body)
	if before > 1 {
		b.body = append(b.body, ',')
	}
	var err error
	b.body, err = appendWithRecord(b.body, n, e.id, e.limit-len("[]"))
	if err == nil && before > 1 && len(b.body)+len("]") > whole {
		further := b.body[before+len(","):]
		b.body = b.body[:before]
		e.close(b)
		b = e.begin(n)
		b.body, before = append(b.body, further...), 0
	}
	e.last = b
	if err != nil {
		if b.body = b.body[:before]; before == 1 {
			e.drop(b)
		}
		return err
	}
	e.collected += len(b.body) - before
	if _, ended := n.Event.Data.(*run.Finished); ended {
		e.close(b)
	}
	return nil
}

// begin makes the message in which the events of a run are collected from this one on.
func (e *Publisher) begin(n *run.Notice) *bundle {
	b := &bundle{flow: n.Flow, run: n.Event.Run, id: string(e.id), hops: hopsOf(n), body: append(e.memory(), '[')}
	if e.open[b.run] = b; len(e.open) == 1 {
		signal(e.openCome)
	}
	return b
}

// memory is for the body of a message.
func (e *Publisher) memory() []byte {
	if n := len(e.spare); n > 0 {
		body := e.spare[n-1]
		e.spare = e.spare[:n-1]
		return body
	}
	return make([]byte, 0, min(max(1<<10, e.usual+e.usual/8), bundleBytes))
}

// close has a message sent.
func (e *Publisher) close(b *bundle) {
	e.drop(b)
	e.ready = append(e.ready, b)
	e.usual = len(b.body) + len("]")
	signal(e.readyCome)
}

// drop ends the collecting of a message.
func (e *Publisher) drop(b *bundle) {
	delete(e.open, b.run)
	e.last = nil
}

func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Flush does nothing: the journal keeps no commit for the sake of published events.
func (e *Publisher) Flush(context.Context) error { return nil }

// Run publishes until ctx ends, and returns its cause.
func (e *Publisher) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var publishing sync.WaitGroup
	publishing.Go(func() { cancel(e.publishLive(ctx)) })
	publishing.Go(func() { cancel(e.publishStored(ctx)) })
	publishing.Wait()
	return context.Cause(ctx)
}

// publishLive sends live events. While nobody can be reached they are dropped.
func (e *Publisher) publishLive(ctx context.Context) error {
	for {
		select {
		case <-e.liveCome:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		e.mu.Lock()
		messages := e.live
		e.live = nil
		e.mu.Unlock()
		size, failed := 0, 0
		for _, msg := range messages {
			size += len(msg.Data)
			err := jskit.Usable(e.nc)
			if err == nil && ctx.Err() == nil {
				err = e.nc.PublishMsg(msg)
			}
			if errors.Is(err, nats.ErrConnectionClosed) {
				return fmt.Errorf("events: %w", err)
			}
			if err != nil {
				failed++
			}
		}
		e.mu.Lock()
		e.liveSize -= size
		if e.lost.live += failed; failed > 0 {
			signal(e.openCome)
		}
		e.mu.Unlock()
	}
}

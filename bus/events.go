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
	"golang.org/x/sync/semaphore"

	"github.com/flowhost/flowhost/run"
)

// eventBytes bounds what waits to be acknowledged, in bytes of messages.
const eventBytes = 32 << 20

// EventsConfig configures the publisher of events. Its zero value works.
type EventsConfig struct {
	Window  int           // messages that are under way together; default 256
	Timeout time.Duration // for an acknowledgement, after which they are sent again; default 5s
	Log     *slog.Logger  // default: none
}

// Events publishes a shard's events in stream FH_EVENTS, in the order of the
// journal and without a gap. Committed takes an event, Run publishes it.
type Events struct {
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
	shard  int
	window int
	log    *slog.Logger

	queue   chan *nats.Msg
	pending *semaphore.Weighted // bytes given and not acknowledged
}

// NewEvents makes a publisher to the stream that [Provision] has made. The
// connection stays the caller's.
func NewEvents(ctx context.Context, nc *nats.Conn, shard int, cfg EventsConfig) (*Events, error) {
	if cfg.Window <= 0 {
		cfg.Window = 256
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(cfg.Window), jetstream.WithPublishAsyncTimeout(cfg.Timeout))
	if err != nil {
		return nil, fmt.Errorf("events: %w", err)
	}
	stream, err := js.Stream(ctx, StreamEvents)
	if err != nil {
		return nil, fmt.Errorf("events: stream %s: %w", StreamEvents, err)
	}
	return &Events{
		nc: nc, js: js, stream: stream, shard: shard, window: cfg.Window, log: logger(cfg.Log),
		queue: make(chan *nats.Msg, cfg.Window), pending: semaphore.NewWeighted(eventBytes),
	}, nil
}

// Committed takes an event to be published. It waits while too many are on their
// way, until ctx ends. Events that belong to no run are left out, and so are those
// older than the stream keeps: after a long pause they may have been there, and
// left again.
func (e *Events) Committed(ctx context.Context, n run.Notice) error {
	age := e.stream.CachedInfo().Config.MaxAge
	if n.Event.Run == "" || age > 0 && time.Since(n.Event.At) > age {
		return nil
	}
	if err := CheckToken(n.Flow); err != nil {
		return fmt.Errorf("event of run %s: flow: %w", n.Event.Run, err)
	}
	id := fmt.Sprintf("%d-%d-%d", e.shard, n.Revision, n.Index)
	body, err := encodeEvent(n, id, int(e.nc.MaxPayload())-overhead)
	if err != nil {
		return err
	}
	msg := &nats.Msg{
		Subject: EventSubject(n.Flow, n.Event.Run, n.Event.Data.Kind()),
		Data:    body,
		Header: nats.Header{
			jetstream.MsgIDHeader: {id},
			HeaderRevision:        {strconv.FormatUint(n.Revision, 10)},
			HeaderIndex:           {strconv.Itoa(n.Index)},
		},
	}
	if err := e.pending.Acquire(ctx, weight(msg)); err != nil {
		return fmt.Errorf("event %s: %w", id, context.Cause(ctx))
	}
	select {
	case e.queue <- msg:
		return nil
	case <-ctx.Done():
		e.pending.Release(weight(msg))
		return fmt.Errorf("event %s: %w", id, context.Cause(ctx))
	}
}

// weight is what a message counts of the bytes on their way.
func weight(m *nats.Msg) int64 { return min(int64(len(m.Data)), eventBytes) }

// Flush waits until everything that Committed took before is acknowledged, or ctx
// ends. Run must be running.
func (e *Events) Flush(ctx context.Context) error {
	if err := e.pending.Acquire(ctx, eventBytes); err != nil {
		return fmt.Errorf("events: %w", context.Cause(ctx))
	}
	e.pending.Release(eventBytes)
	return nil
}

// Run publishes until ctx ends, and returns its cause. What is not acknowledged
// then is published when it is given again after the next start.
func (e *Events) Run(ctx context.Context) error {
	for {
		flight, err := e.collect(ctx)
		if err != nil {
			return err
		}
		if err := e.publish(ctx, flight); err != nil {
			return err
		}
	}
}

// collect waits for a message and takes what else is there.
func (e *Events) collect(ctx context.Context) ([]*nats.Msg, error) {
	var flight []*nats.Msg
	select {
	case msg := <-e.queue:
		flight = append(flight, msg)
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for len(flight) < e.window {
		select {
		case msg := <-e.queue:
			flight = append(flight, msg)
		default:
			return flight, nil
		}
	}
	return flight, nil
}

// publish sends messages until all are acknowledged, or ctx ends. One that the
// stream cannot take is left out.
func (e *Events) publish(ctx context.Context, flight []*nats.Msg) error {
	p := patience{log: e.log, what: "publish events"}
	for len(flight) > 0 {
		stored, err := e.send(ctx, flight)
		for _, msg := range flight[:stored] {
			e.pending.Release(weight(msg))
		}
		flight = flight[stored:]
		if err == nil {
			p.done()
			continue
		}
		if unstorable(err) {
			e.log.Error("an event cannot be published", "id", flight[0].Header.Get(jetstream.MsgIDHeader),
				"subject", flight[0].Subject, "bytes", len(flight[0].Data), "error", err)
			e.pending.Release(weight(flight[0]))
			flight = flight[1:]
			continue
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return fmt.Errorf("events: %w", err)
		}
		if err := p.wait(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// send publishes messages without waiting in between, and then waits for what
// became of each. It returns how many of the first ones are stored, and why the
// next one is not.
//
// Each message but the first names the one before it as the stream's last, so that
// the server refuses it when that one got lost: the order holds, and what is stored
// has no gap. Another writer of the stream in between costs a repetition.
func (e *Events) send(ctx context.Context, flight []*nats.Msg) (int, error) {
	if err := usable(e.nc); err != nil {
		return 0, err
	}
	var futures []jetstream.PubAckFuture
	var failed error
	previous := ""
	for _, msg := range flight {
		msg.Header.Del(jetstream.ExpectedLastMsgIDHeader)
		if previous != "" {
			msg.Header.Set(jetstream.ExpectedLastMsgIDHeader, previous)
		}
		previous = msg.Header.Get(jetstream.MsgIDHeader)
		future, err := e.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
		if err != nil {
			failed = err
			break
		}
		futures = append(futures, future)
	}
	stored, err := await(ctx, futures)
	if err == nil {
		err = failed
	}
	return stored, err
}

// await waits for all futures, each of which ends by its timeout at the latest. It
// counts those that succeeded before the first failure.
func await(ctx context.Context, futures []jetstream.PubAckFuture) (stored int, failed error) {
	for _, future := range futures {
		select {
		case <-future.Ok():
			if failed == nil {
				stored++
			}
		case err := <-future.Err():
			if failed == nil {
				failed = err
			}
		case <-ctx.Done():
			return stored, context.Cause(ctx)
		}
	}
	return stored, failed
}

// unstorable reports whether the stream can never take the message.
func unstorable(err error) bool {
	code, _ := apiCode(err)
	return errors.Is(err, nats.ErrMaxPayload) || code == int(jetstream.JSErrCodeStreamMessageExceedsMaximum)
}

// Last finds where publishing ended: the journal's revision that holds the last
// published event, and the event's index in it. Both are 0 when the stream holds
// none of this shard. Events after it are to be given to Committed again at start.
func (e *Events) Last(ctx context.Context) (revision uint64, index int, err error) {
	info, err := e.stream.Info(ctx)
	if err != nil {
		return 0, 0, fmt.Errorf("events: %w", err)
	}
	for seq := info.State.LastSeq; seq > 0 && seq >= info.State.FirstSeq; seq-- {
		msg, err := e.stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		if err != nil {
			return 0, 0, fmt.Errorf("events: %w", err)
		}
		if shard, revision, index, ok := parseEventID(msg.Header.Get(jetstream.MsgIDHeader)); ok && shard == e.shard {
			return revision, index, nil
		}
	}
	return 0, 0, nil
}

func parseEventID(id string) (shard int, revision uint64, index int, ok bool) {
	parts := strings.Split(id, "-")
	if len(parts) != 3 {
		return 0, 0, 0, false
	}
	shard, err1 := strconv.Atoi(parts[0])
	revision, err2 := strconv.ParseUint(parts[1], 10, 64)
	index, err3 := strconv.Atoi(parts[2])
	return shard, revision, index, errors.Join(err1, err2, err3) == nil
}

package jskit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/semaphore"
)

// Overhead is kept free of a payload limit for headers.
const Overhead = 4 << 10

// publishBytes bounds what waits to be acknowledged, in bytes of bodies.
const publishBytes = 32 << 20

// PublisherConfig is what a publisher publishes, and where.
type PublisherConfig struct {
	Stream  string // that exists
	Flush   string // subject of the stream that Flush alone uses
	What    string // "records of finished runs", for errors and the log
	Window  int    // messages that are under way together; default 256
	Timeout time.Duration
	Sync    func() error // flushes the stream's files to the disk; nil: nothing to do
	Room    func() error // why the server must not be asked to write its files; nil: it always may
	Log     *slog.Logger

	// Settled is called for each message, in order: the sequence under which the
	// stream holds it, or 0 when the stream can never take it. nil: nobody asks.
	Settled func(msg *nats.Msg, seq uint64)
}

// Publisher publishes messages in a stream, in the order in which they were given
// and without a gap. Each message has an id by which the stream knows it when it
// comes again.
type Publisher struct {
	cfg    PublisherConfig
	nc     *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream

	queue    chan *nats.Msg
	pending  *semaphore.Weighted // bytes given and not acknowledged
	flushing *semaphore.Weighted // held by the flush in progress
	dirty    atomic.Bool         // something may have been published that no flush has covered

	created  time.Time // of the stream; of Run
	unsynced unsynced  // of Run
}

// NewPublisher opens the stream. The connection stays the caller's.
func NewPublisher(ctx context.Context, nc *nats.Conn, cfg PublisherConfig) (*Publisher, error) {
	if cfg.Window <= 0 {
		cfg.Window = 256
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	cfg.Log = Logger(cfg.Log)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(cfg.Window), jetstream.WithPublishAsyncTimeout(cfg.Timeout))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.What, err)
	}
	stream, err := js.Stream(ctx, cfg.Stream)
	if err != nil {
		return nil, fmt.Errorf("%s: stream %s: %w", cfg.What, cfg.Stream, err)
	}
	p := &Publisher{
		cfg: cfg, nc: nc, js: js, stream: stream,
		queue: make(chan *nats.Msg, cfg.Window), pending: semaphore.NewWeighted(publishBytes), flushing: semaphore.NewWeighted(1),
	}
	p.dirty.Store(true) // by the process before this one
	p.created, p.unsynced.reconnects = stream.CachedInfo().Created, nc.Stats().Reconnects
	return p, nil
}

// What names what is published, for errors and the log.
func (p *Publisher) What() string { return p.cfg.What }

// Stream is the stream that the publisher writes to.
func (p *Publisher) Stream() jetstream.Stream { return p.stream }

// Reader gives a reader of the stream.
func (p *Publisher) Reader(subject string, next uint64) Reader {
	return Reader{JS: p.js, Stream: p.cfg.Stream, Subject: subject, Next: next}
}

// Usable reports why nothing can be sent at the moment.
func (p *Publisher) Usable() error { return Usable(p.nc) }

// Limit is the size of the largest body in bytes.
func (p *Publisher) Limit() int { return int(p.nc.MaxPayload()) - Overhead }

// Retains reports whether the stream would keep what happened at the given time:
// after a long pause it may have been there, and left again.
func (p *Publisher) Retains(at time.Time) bool {
	age := p.stream.CachedInfo().Config.MaxAge
	return age <= 0 || time.Since(at) <= age
}

// Enqueue takes a message to be published. It waits while too many are on their way,
// until ctx ends.
func (p *Publisher) Enqueue(ctx context.Context, msg *nats.Msg) error {
	if err := p.pending.Acquire(ctx, weight(msg)); err != nil {
		return context.Cause(ctx)
	}
	select {
	case p.queue <- msg:
		return nil
	case <-ctx.Done():
		p.pending.Release(weight(msg))
		return context.Cause(ctx)
	}
}

// weight is what a message counts of the bytes on their way.
func weight(m *nats.Msg) int64 { return min(int64(len(m.Data)), publishBytes) }

// Run publishes until ctx ends, and returns its cause. What is not acknowledged
// then is published when it is given again after the next start.
func (p *Publisher) Run(ctx context.Context) error {
	for {
		flight, err := p.collect(ctx)
		if err != nil {
			return err
		}
		if err := p.publish(ctx, flight); err != nil {
			return err
		}
		if p.unsynced.due() {
			if err := p.release(ctx); err != nil {
				return err
			}
		}
	}
}

// collect waits for a message and takes all others that are there. It gives none when
// messages published before are to be written out.
func (p *Publisher) collect(ctx context.Context) ([]*nats.Msg, error) {
	var flight []*nats.Msg
	writeOut := p.unsynced.timer()
	defer writeOut.Stop()
	select {
	case msg := <-p.queue:
		flight = append(flight, msg)
	case <-writeOut.C:
		return nil, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	for len(flight) < p.cfg.Window {
		select {
		case msg := <-p.queue:
			flight = append(flight, msg)
		default:
			return flight, nil
		}
	}
	return flight, nil
}

// publish sends messages until all are acknowledged, or ctx ends. One that the
// stream cannot take is left out.
func (p *Publisher) publish(ctx context.Context, flight []*nats.Msg) error {
	delay := Backoff{Log: p.cfg.Log, What: "publish " + p.cfg.What}
	for len(flight) > 0 || len(p.unsynced.lost) > 0 {
		err := p.restore(ctx)
		var stored []*jetstream.PubAck
		if err == nil && len(flight) > 0 {
			stored, err = p.send(ctx, flight)
			err = cmp.Or(p.keep(ctx, flight, stored), err)
		}
		if lost := (*LostMessagesError)(nil); errors.As(err, &lost) {
			return err
		}
		for i, ack := range stored {
			p.settle(flight[i], ack.Sequence)
		}
		flight = flight[len(stored):]
		if err == nil || len(stored) > 0 && outOfTurn(err) {
			delay.Done()
			continue
		}
		if Unstorable(err) {
			p.cfg.Log.Error("one of the "+p.cfg.What+" cannot be published", "id", flight[0].Header.Get(jetstream.MsgIDHeader),
				"subject", flight[0].Subject, "bytes", len(flight[0].Data), "error", err)
			p.settle(flight[0], 0)
			flight = flight[1:]
			continue
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return fmt.Errorf("%s: %w", p.cfg.What, err)
		}
		if err := delay.Wait(ctx, err); err != nil {
			return err
		}
	}
	return nil
}

// settle frees the message's place among those on their way.
func (p *Publisher) settle(msg *nats.Msg, seq uint64) {
	p.dirty.Store(true)
	if p.cfg.Settled != nil {
		p.cfg.Settled(msg, seq)
	}
	p.pending.Release(weight(msg))
}

// send publishes messages without waiting in between, and then waits for what
// became of them. It returns the acknowledgements of the first ones, which are
// stored, and why the next one is not.
//
// Each message but the first names the one before it as the stream's last, so that
// the server refuses it when that one got lost: the order holds, and what is stored
// has no gap. Another writer of the stream in between costs a repetition.
func (p *Publisher) send(ctx context.Context, flight []*nats.Msg) ([]*jetstream.PubAck, error) {
	if err := Usable(p.nc); err != nil {
		return nil, err
	}
	previous := ""
	for _, msg := range flight {
		msg.Header.Del(jetstream.ExpectedLastMsgIDHeader)
		if previous != "" {
			msg.Header.Set(jetstream.ExpectedLastMsgIDHeader, previous)
		}
		previous = msg.Header.Get(jetstream.MsgIDHeader)
	}
	if stored := Burst(ctx, p.js, flight); stored != nil {
		return stored, nil
	}
	return p.sendEach(ctx, flight)
}

// sendEach has each message acknowledged.
func (p *Publisher) sendEach(ctx context.Context, flight []*nats.Msg) ([]*jetstream.PubAck, error) {
	var futures []jetstream.PubAckFuture
	var failed error
	for _, msg := range flight {
		future, err := p.js.PublishMsgAsync(msg, jetstream.WithRetryAttempts(0))
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
// gives the acknowledgements of those that succeeded before the first failure.
func await(ctx context.Context, futures []jetstream.PubAckFuture) (stored []*jetstream.PubAck, failed error) {
	for _, future := range futures {
		select {
		case ack := <-future.Ok():
			if failed == nil {
				stored = append(stored, ack)
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

// outOfTurn reports whether a message was refused because another one than the one
// before it is the stream's last.
func outOfTurn(err error) bool {
	code, _ := apiCode(err)
	return code == codeWrongLastID
}

// Unstorable reports whether the stream can never take the message.
func Unstorable(err error) bool {
	code, _ := apiCode(err)
	return errors.Is(err, nats.ErrMaxPayload) || code == int(jetstream.JSErrCodeStreamMessageExceedsMaximum)
}

// Flush waits until everything that was given before is acknowledged and in the
// stream's files, and the files are on the disk, or until ctx ends. Run must be
// running.
func (p *Publisher) Flush(ctx context.Context) error {
	if err := p.flushing.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("%s: %w", p.cfg.What, context.Cause(ctx))
	}
	defer p.flushing.Release(1)
	if err := p.pending.Acquire(ctx, publishBytes); err != nil {
		return fmt.Errorf("%s: %w", p.cfg.What, context.Cause(ctx))
	}
	dirty := p.dirty.Swap(false)
	p.pending.Release(publishBytes)
	if !dirty {
		return nil
	}
	err := p.writeOut(ctx)
	if err == nil && p.cfg.Sync != nil {
		err = p.cfg.Sync()
	}
	if err != nil {
		p.dirty.Store(true)
		return fmt.Errorf("%s: flush to disk: %w", p.cfg.What, err)
	}
	return nil
}

// writeOut has the server write into the stream's files what it has acknowledged.
// With async persistence it holds that back for some milliseconds, and no request
// asks for it; but before it answers a purge that leaves something in the stream's
// last block, it writes out that block. So a message is stored and purged that is
// nobody's, on a separate subject.
func (p *Publisher) writeOut(ctx context.Context) error {
	if p.stream.CachedInfo().Config.PersistMode != jetstream.AsyncPersistMode {
		return nil
	}
	if p.cfg.Room != nil {
		if err := p.cfg.Room(); err != nil { // a purge that fails for want of room blocks the stream for good
			return err
		}
	}
	delay := Backoff{Log: p.cfg.Log, What: "flush " + p.cfg.What}
	for {
		err := p.mark(ctx)
		if err == nil {
			delay.Done()
			return nil
		}
		if errors.Is(err, nats.ErrConnectionClosed) {
			return err
		}
		if err := delay.Wait(ctx, err); err != nil {
			return err
		}
	}
}

func (p *Publisher) mark(ctx context.Context) error {
	if err := Usable(p.nc); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	subject := p.cfg.Flush
	if _, err := p.js.PublishMsg(ctx, &nats.Msg{Subject: subject}, jetstream.WithRetryAttempts(0)); err != nil {
		return err
	}
	return p.stream.Purge(ctx, jetstream.WithPurgeSubject(subject))
}

// Backwards hands over the stream's messages, the last one first, until found returns
// true, or fails.
func (p *Publisher) Backwards(ctx context.Context, found func(*jetstream.RawStreamMsg) (bool, error)) error {
	info, err := p.stream.Info(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", p.cfg.What, err)
	}
	for seq := info.State.LastSeq; seq > 0 && seq >= info.State.FirstSeq; seq-- {
		msg, err := p.stream.GetMsg(ctx, seq)
		if errors.Is(err, jetstream.ErrMsgNotFound) {
			continue
		}
		enough := false
		if err == nil {
			enough, err = found(msg)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p.cfg.What, err)
		}
		if enough {
			return nil
		}
	}
	return nil
}

package bus

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// Bounds of one pull by a reader. The bytes are more than a server's largest
// message, which could not be delivered otherwise, and less than the server keeps for
// a connection.
const (
	fetchMessages = 512
	fetchBytes    = MaxPayload + 1<<20
	fetchTime     = 30 * time.Second

	// readerIdle is how long the server keeps the consumer of a reader that went
	// away without a word.
	readerIdle = time.Minute
)

// errEnough is what a handler returns to end a fetch early, without an error.
var errEnough = errors.New("enough")

// errGap says that messages between server and reader were lost.
var errGap = errors.New("messages were lost on the way")

// place is where and when a message was stored.
type place struct {
	seq  uint64
	at   time.Time
	more bool // the next one is here already
}

// reader hands over the messages of a stream in order. Nothing is acknowledged:
// the place is the reader's own, and a consumer that breaks is replaced by one
// that goes on from there. It is not safe for concurrent use.
//
// nats.go's ordered consumer does the same, but waits for a server without
// minding a context.
type reader struct {
	js      jetstream.JetStream
	stream  string
	subject string
	next    uint64        // sequence to read next
	since   time.Time     // of the first message, while next is 0
	pull    time.Duration // bound of one fetch; default fetchTime
	headers bool          // leave the bodies away
	most    int           // messages of one fetch; default fetchMessages

	consumer  jetstream.Consumer // nil before the first fetch and after an error
	delivered uint64             // by this consumer
}

// fetch waits for messages and hands them over until there are none for some
// time, which is no error, the pull is used up, or the handler returns an error.
// A message is passed when its handler returned nil or errEnough.
func (r *reader) fetch(ctx context.Context, handle func(jetstream.Msg, place) error) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	bound := r.pull
	if bound <= 0 {
		bound = fetchTime
	}
	pull, cancel := context.WithTimeout(ctx, bound)
	batch, err := r.consumer.Fetch(orDefault(r.most, fetchMessages), jetstream.FetchContext(pull), jetstream.FetchMaxBytes(fetchBytes))
	if err != nil {
		cancel()
		r.consumer = nil
		return err
	}
	defer drain(batch)
	defer cancel()
	messages := batch.Messages()
	for msg := range messages {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		err := r.pass(msg, len(messages) > 0, handle)
		if errors.Is(err, errEnough) {
			return nil // what is left of the pull shows as a gap later
		}
		if err != nil {
			r.close(ctx)
			return err
		}
	}
	err = batch.Error()
	if err == nil || ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
		return context.Cause(ctx)
	}
	r.consumer = nil // left to the server, which removes it when it is idle
	return err
}

// drain waits for the goroutine that fills a canceled batch.
func drain(batch jetstream.MessageBatch) {
	for range batch.Messages() {
	}
}

func (r *reader) pass(msg jetstream.Msg, more bool, handle func(jetstream.Msg, place) error) error {
	meta := metadata(msg, r.stream, r.consumer)
	if meta == nil {
		return nil
	}
	if meta.Sequence.Consumer != r.delivered+1 {
		return errGap
	}
	r.delivered++
	err := handle(msg, place{seq: meta.Sequence.Stream, at: meta.Timestamp.UTC(), more: more})
	if err == nil || errors.Is(err, errEnough) {
		r.next = meta.Sequence.Stream + 1
	}
	return err
}

// metadata is what the server says of a message of the consumer, nil for one that
// somebody else has sent to the inbox.
func metadata(msg jetstream.Msg, stream string, consumer jetstream.Consumer) *jetstream.MsgMetadata {
	meta, err := msg.Metadata()
	if err != nil || meta.Stream != stream || meta.Consumer != consumer.CachedInfo().Name {
		return nil
	}
	return meta
}

func (r *reader) open(ctx context.Context) error {
	if r.consumer != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		FilterSubject: r.subject, AckPolicy: jetstream.AckNonePolicy,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.next,
		InactiveThreshold: readerIdle, MemoryStorage: true, Replicas: 1, HeadersOnly: r.headers,
	}
	if r.next == 0 && !r.since.IsZero() {
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &r.since
	}
	consumer, err := r.js.CreateConsumer(ctx, r.stream, cfg)
	if err != nil {
		return fmt.Errorf("stream %s: %w", r.stream, err)
	}
	r.consumer, r.delivered = consumer, 0
	return nil
}

// close removes the consumer. An unreachable server does so by itself later.
func (r *reader) close(ctx context.Context) {
	if r.consumer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = r.js.DeleteConsumer(ctx, r.stream, r.consumer.CachedInfo().Name)
	r.consumer = nil
}

package jskit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// MaxPayload is the size of the largest message with its headers, in bytes, of the
// embedded server. A reader pulls as much.
const MaxPayload = 8 << 20

// Bounds of one pull by a reader. The bytes are more than a server's largest
// message, which could not be delivered otherwise, and less than the server keeps for
// a connection.
const (
	fetchMessages = 512
	fetchBytes    = MaxPayload + 1<<20
	FetchTime     = 30 * time.Second

	// ConsumerIdle is how long the server keeps the consumer of a reader that went
	// away without a word.
	ConsumerIdle = time.Minute
)

// ErrEnough is what a handler returns to end a fetch early, without an error.
var ErrEnough = errors.New("enough")

// ErrGap reports that messages between server and reader were lost.
var ErrGap = errors.New("messages were lost on the way")

// Place is where and when a message was stored.
type Place struct {
	Seq  uint64
	At   time.Time
	More bool // the next one is here already
}

// Reader hands over the messages of a stream in order. Nothing is acknowledged:
// the place is the reader's own, and a consumer that breaks is replaced by one
// that continues from there. It is not safe for concurrent use.
//
// nats.go's ordered consumer does the same, but waits for a server without
// minding a context.
type Reader struct {
	JS      jetstream.JetStream
	Stream  string
	Subject string
	Next    uint64        // sequence to read next
	Since   time.Time     // of the first message, while next is 0
	Pull    time.Duration // bound of one fetch; default FetchTime
	Headers bool          // leave the bodies away
	Most    int           // messages of one fetch; default fetchMessages

	consumer  jetstream.Consumer // nil before the first fetch and after an error
	delivered uint64             // by this consumer
}

// Fetch waits for messages and hands them over until there are none for some
// time, which is no error, the pull is used up, or the handler returns an error.
// A message is passed when its handler returned nil or ErrEnough.
func (r *Reader) Fetch(ctx context.Context, handle func(jetstream.Msg, Place) error) error {
	if err := r.Open(ctx); err != nil {
		return err
	}
	bound := r.Pull
	if bound <= 0 {
		bound = FetchTime
	}
	pull, cancel := context.WithTimeout(ctx, bound)
	batch, err := r.consumer.Fetch(cmp.Or(r.Most, fetchMessages), jetstream.FetchContext(pull), jetstream.FetchMaxBytes(fetchBytes))
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
		if errors.Is(err, ErrEnough) {
			return nil // what is left of the pull shows as a gap later
		}
		if err != nil {
			r.Close(ctx)
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

func (r *Reader) pass(msg jetstream.Msg, more bool, handle func(jetstream.Msg, Place) error) error {
	meta := Metadata(msg, r.Stream, r.consumer)
	if meta == nil {
		return nil
	}
	if meta.Sequence.Consumer != r.delivered+1 {
		return ErrGap
	}
	r.delivered++
	err := handle(msg, Place{Seq: meta.Sequence.Stream, At: meta.Timestamp.UTC(), More: more})
	if err == nil || errors.Is(err, ErrEnough) {
		r.Next = meta.Sequence.Stream + 1
	}
	return err
}

// Metadata is what the server reports of a message of the consumer, nil for one that
// somebody else has sent to the inbox.
func Metadata(msg jetstream.Msg, stream string, consumer jetstream.Consumer) *jetstream.MsgMetadata {
	meta, err := msg.Metadata()
	if err != nil || meta.Stream != stream || meta.Consumer != consumer.CachedInfo().Name {
		return nil
	}
	return meta
}

// Open creates the consumer, unless there is one.
func (r *Reader) Open(ctx context.Context) error {
	if r.consumer != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, APITimeout)
	defer cancel()
	cfg := jetstream.ConsumerConfig{
		FilterSubject: r.Subject, AckPolicy: jetstream.AckNonePolicy,
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: r.Next,
		InactiveThreshold: ConsumerIdle, MemoryStorage: true, Replicas: 1, HeadersOnly: r.Headers,
	}
	if r.Next == 0 && !r.Since.IsZero() {
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &r.Since
	}
	consumer, err := r.JS.CreateConsumer(ctx, r.Stream, cfg)
	if err != nil {
		return fmt.Errorf("stream %s: %w", r.Stream, err)
	}
	r.consumer, r.delivered = consumer, 0
	return nil
}

// Pending is the number of messages that the reader has not been given yet.
func (r *Reader) Pending(ctx context.Context) (uint64, error) {
	info, err := r.consumer.Info(ctx)
	if err != nil {
		return 0, err
	}
	return info.NumPending, nil
}

// Close removes the consumer. An unreachable server does so by itself later.
func (r *Reader) Close(ctx context.Context) {
	if r.consumer == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = r.JS.DeleteConsumer(ctx, r.Stream, r.consumer.CachedInfo().Name)
	r.consumer = nil
}

// Exhausted reports whether no message follows this one.
func Exhausted(m jetstream.Msg) bool {
	meta, err := m.Metadata()
	return err == nil && meta.NumPending == 0
}

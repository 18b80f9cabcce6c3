package intake

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// ackWait is how long a stream waits for an acknowledgement, and so the longest
// pause after a crash until the message that was under way comes again.
const ackWait = 10 * time.Second

// follow reads the stream of a trigger by its durable consumer, until ctx ends.
func (in *Intake) follow(ctx, hard context.Context, t Subscription) {
	p := jskit.Backoff{Log: in.log.With("flow", t.Flow, "trigger", t.Trigger), What: "read stream " + t.Stream}
	for {
		err := in.followDurable(ctx, hard, t, p.Done)
		if p.Wait(ctx, err) != nil {
			return
		}
	}
}

// followDurable returns with an error. going is called when messages, or their
// absence, could be seen.
func (in *Intake) followDurable(ctx, hard context.Context, t Subscription, going func()) error {
	consumer, err := in.durable(ctx, t)
	if err != nil {
		return err
	}
	for {
		pull, cancel := context.WithTimeout(ctx, jskit.FetchTime)
		msg, err := consumer.Next(jetstream.FetchContext(pull))
		cancel()
		switch {
		case err == nil:
			going()
			if meta := jskit.Metadata(msg, t.Stream, consumer); meta != nil {
				err = in.takeFrom(ctx, hard, t, msg, meta)
			}
			if err != nil {
				return err
			}
		case ctx.Err() == nil && (errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)):
			going()
		default:
			return err
		}
	}
}

func (in *Intake) takeFrom(ctx, hard context.Context, t Subscription, m jetstream.Msg, meta *jetstream.MsgMetadata) error {
	msg := inbound{subject: m.Subject(), header: m.Headers(), data: m.Data()}
	if why := msg.withheld(); why != "" {
		in.log.Debug("a message is not delivered", "flow", t.Flow, "trigger", t.Trigger, "stream", t.Stream, "sequence", meta.Sequence.Stream, "subject", msg.subject, "reason", why)
		return m.Ack()
	}
	req := newRequest(t.Flow, t.Trigger, run.TriggerMessage, msg, meta.Timestamp.UTC())
	req.Position = run.Position{Source: bus.StreamSource(t.Stream, t.Flow, t.Trigger), Seq: meta.Sequence.Stream, At: meta.Timestamp.UTC()}
	if err := in.decide(ctx, hard, []asked{{req, msg}}, func() { _ = m.InProgress() }); err != nil {
		return err
	}
	return m.Ack() // lost: it comes again, and the engine knows its position
}

// durable gives the trigger's consumer. At most one message is unacknowledged: with
// more, a later one could be decided before an earlier one that comes again, and
// the engine would take the earlier one for decided. A new consumer starts where
// the engine's watermark is.
func (in *Intake) durable(ctx context.Context, t Subscription) (jetstream.Consumer, error) {
	decided, err := in.starter.Watermark(ctx, bus.StreamSource(t.Stream, t.Flow, t.Trigger))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, jskit.APITimeout)
	defer cancel()
	stream, err := in.appJS.Stream(ctx, t.Stream)
	if err != nil {
		return nil, err
	}
	lost, err := truncated(ctx, stream, decided)
	if err != nil {
		return nil, err
	}
	log := in.log.With("stream", t.Stream, "flow", t.Flow, "trigger", t.Trigger, "last", stream.CachedInfo().State.LastSeq, "read", decided.Seq)
	switch {
	case lost && decided.At.IsZero():
		log.Error("the stream was recreated: its messages count as decided until it has as many as before; give the trigger another name to start over")
	case lost:
		log.Warn("the stream has lost its end, or was recreated: the trigger reads what it has stored since", "since", decided.At)
	}
	name := durableName(t)
	existing, err := stream.Consumer(ctx, name)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		return stream.CreateConsumer(ctx, newDurable(name, t.Subject, decided, lost))
	}
	if err != nil {
		return nil, fmt.Errorf("consumer %s: %w", name, err)
	}
	cfg := existing.CachedInfo().Config
	if cfg.AckPolicy != jetstream.AckExplicitPolicy {
		return nil, fmt.Errorf("consumer %s does not acknowledge each message: name another durable in the trigger", name)
	}
	if cfg.MaxAckPending == 1 && cfg.FilterSubject == t.Subject && cfg.AckWait == ackWait {
		return existing, nil
	}
	cfg.MaxAckPending, cfg.FilterSubject, cfg.FilterSubjects, cfg.AckWait = 1, t.Subject, nil, ackWait
	return stream.UpdateConsumer(ctx, cfg)
}

func newDurable(name, subject string, decided run.Position, lost bool) jetstream.ConsumerConfig {
	cfg := jetstream.ConsumerConfig{
		Durable: name, FilterSubject: subject,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: ackWait, MaxAckPending: 1,
		DeliverPolicy: jetstream.DeliverAllPolicy,
	}
	switch {
	case lost && !decided.At.IsZero():
		since := decided.At.Add(time.Nanosecond)
		cfg.DeliverPolicy, cfg.OptStartTime = jetstream.DeliverByStartTimePolicy, &since
	case decided.Seq > 0:
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, decided.Seq+1
	}
	return cfg
}

// durableName has "=" for the "/" of a flow's name, which consumers may not have.
func durableName(t Subscription) string {
	if t.Durable != "" {
		return t.Durable
	}
	return strings.ReplaceAll("flowhost_"+t.Flow+"_"+t.Trigger, "/", "=")
}

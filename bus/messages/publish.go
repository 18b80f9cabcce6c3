package messages

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

type publishHead struct {
	Subject string              `json:"subject"`
	Headers map[string][]string `json:"headers"`
}

// published is the head of the answer to a publish.
type published struct {
	Stored    bool   `json:"stored"` // by a stream, which the others are about
	Stream    string `json:"stream,omitempty"`
	Sequence  uint64 `json:"sequence,omitempty"`
	Duplicate bool   `json:"duplicate,omitempty"` // an earlier attempt has published it
}

// publish sends a message: head {subject, headers}, and the message as body → {stored,
// stream, sequence, duplicate}.
func (s *Session) publish(ctx context.Context, op *access.Operation) (access.Answer, *access.Fault) {
	var h publishHead
	fault := ops.Head(op, &h)
	if fault == nil {
		fault = ops.CheckBody(op)
	}
	if fault == nil {
		fault = check(op.Kind, h.Subject, s.policy())
	}
	if fault != nil {
		return access.Answer{}, fault
	}
	headers, fault := header(op.Kind, h.Headers, &s.caller)
	if fault == nil {
		fault = s.usable(ctx, op.Kind)
	}
	if fault != nil {
		return access.Answer{}, fault
	}
	c := contentOf(&s.caller, h.Subject, op.Body)
	place, fault := s.places.take(c)
	if fault != nil {
		return access.Answer{}, fault
	}
	headers[jetstream.MsgIDHeader] = []string{c.id(place)}
	answer, err := s.send(ctx, &nats.Msg{Subject: h.Subject, Header: headers, Data: op.Body})
	if err != nil {
		s.places.giveBack(c, place)
		return access.Answer{}, ops.Wire(ctx, "publish", err)
	}
	return ops.Done(answer, nil), nil
}

// send has a message stored by the stream that captures its subject, or else sends it.
func (s *Session) send(ctx context.Context, msg *nats.Msg) (published, error) {
	for last := false; ; last = true {
		stream, err := s.stream(ctx, msg.Subject)
		if err != nil {
			return published{}, err
		}
		if stream == "" {
			return published{}, s.sendOnly(ctx, msg)
		}
		ack, err := ops.Publish(ctx, s.js, msg, s.timeout)
		if err == nil {
			return published{true, ack.Stream, ack.Sequence, ack.Duplicate}, nil
		}
		s.streams.forget(msg.Subject)
		// Nobody listens: the stream was removed, and the message has reached no one.
		if removed := errors.Is(err, jetstream.ErrNoStreamResponse) || errors.Is(err, nats.ErrNoResponders); !removed || last {
			return published{}, err
		}
	}
}

func (s *Session) stream(ctx context.Context, subject string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	return s.streams.find(ctx, subject)
}

// sendOnly returns when the server has the message.
func (s *Session) sendOnly(ctx context.Context, msg *nats.Msg) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	if err := s.nc.PublishMsg(msg); err != nil {
		return err
	}
	return s.nc.FlushWithContext(ctx)
}

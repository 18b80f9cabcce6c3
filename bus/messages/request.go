package messages

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// Bounds of how long a request waits for its answer, beside the time left of the attempt.
const (
	DefaultRequestTimeout = 10 * time.Second
	MaxRequestTimeout     = time.Hour
)

type requestHead struct {
	Subject string              `json:"subject"`
	Headers map[string][]string `json:"headers"`
	Timeout int64               `json:"timeout_ms"` // default DefaultRequestTimeout
}

// replied is the head of the answer to a request.
type replied struct {
	Headers map[string][]string `json:"headers,omitempty"`
}

// request sends a message and waits for one answer: head {subject, headers, timeout_ms}, and
// the message as body → {headers}, and the answer as body. The answer arrives on an inbox of
// the host, which no guest learns or chooses.
func (s *Session) request(ctx context.Context, op *access.Operation) (access.Answer, *access.Fault) {
	var h requestHead
	fault := ops.Head(op, &h)
	if fault == nil {
		fault = ops.CheckBody(op)
	}
	if fault == nil {
		fault = check(op.Kind, h.Subject, s.policy())
	}
	if fault == nil && (h.Timeout < 0 || h.Timeout > MaxRequestTimeout.Milliseconds()) {
		fault = ops.Invalid("request failed: timeout_ms is negative or more than an hour: leave it out for %s", DefaultRequestTimeout)
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
	reply, err := s.ask(ctx, &h, &nats.Msg{Subject: h.Subject, Header: headers, Data: op.Body})
	if err != nil {
		return access.Answer{}, unanswered(ctx, err)
	}
	if len(reply.Data) > ops.MaxBody || !fits(reply.Header) {
		return access.Answer{}, ops.TooLarge("request failed: the answer has %d bytes, or too many headers, and %d bytes are the most: have the other side answer in parts", len(reply.Data), ops.MaxBody)
	}
	return ops.Done(replied{reply.Header}, reply.Data), nil
}

func (s *Session) ask(ctx context.Context, h *requestHead, msg *nats.Msg) (*nats.Msg, error) {
	timeout := DefaultRequestTimeout
	if h.Timeout > 0 {
		timeout = time.Duration(h.Timeout) * time.Millisecond
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	return s.nc.RequestMsgWithContext(ctx, msg)
}

// unanswered is the fault of a request without an answer.
func unanswered(ctx context.Context, err error) *access.Fault {
	switch {
	case ctx.Err() != nil:
		return ops.Wire(ctx, "request", err)
	case errors.Is(err, nats.ErrNoResponders):
		return &access.Fault{Code: access.CodeUnreachable, Retryable: true,
			Message: "request failed: nobody listens on the subject"}
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, nats.ErrTimeout):
		return &access.Fault{Code: access.CodeTimeout, Retryable: true,
			Message: "request failed: no answer within timeout_ms, it may or may not have been performed"}
	}
	return ops.Wire(ctx, "request", err)
}

// fits reports whether the headers of an answer are within the bounds of a message's.
func fits(header nats.Header) bool {
	count, size := 0, 0
	for name, values := range header {
		for _, value := range values {
			count++
			size += len(name) + len(value)
		}
	}
	return count <= MaxHeaders && size <= MaxHeaderBytes
}

package messages

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/bus/internal/ops"
	"github.com/flowhost/flowhost/run/access"
)

// Config configures [Messages].
type Config struct {
	Conn    *nats.Conn    // of the operator's account; stays the caller's
	Timeout time.Duration // of one request to the server, and for a stream's acknowledgement; default 5s
}

// Messages publishes and asks for guests. Its methods are safe for concurrent use.
type Messages struct {
	nc      *nats.Conn
	js      jetstream.JetStream
	streams streams
	timeout time.Duration
}

// New returns messages on a connection.
func New(cfg Config) (*Messages, error) {
	if cfg.Timeout <= 0 {
		cfg.Timeout = 5 * time.Second
	}
	js, err := jetstream.New(cfg.Conn)
	if err != nil {
		return nil, fmt.Errorf("messages of tasks: %w", err)
	}
	return &Messages{nc: cfg.Conn, js: js, timeout: cfg.Timeout, streams: streams{js: js, known: map[string]capture{}}}, nil
}

// Session performs the operations of one attempt. Its method is safe for concurrent use.
// There is nothing to close.
type Session struct {
	*Messages
	caller access.Caller
	policy func() access.Policy // that decides on an operation that begins now
	places places
}

// Session returns a session of an attempt under a policy.
func (m *Messages) Session(caller access.Caller, policy func() access.Policy) *Session {
	return &Session{Messages: m, caller: caller, policy: policy}
}

// Do performs an operation.
func (s *Session) Do(ctx context.Context, op *access.Operation) access.Answer {
	var do func(context.Context, *access.Operation) (access.Answer, *access.Fault)
	switch op.Kind {
	case access.KindPublish:
		do = s.publish
	case access.KindRequest:
		do = s.request
	default:
		return ops.Failed(ops.Invalid("%.64q is no operation with messages", op.Kind))
	}
	answer, fault := do(ctx, op)
	if fault != nil {
		return ops.Failed(fault)
	}
	return answer
}

// usable reports why nothing can be sent: a connection that is being made again would keep
// the message and send it later.
func (s *Session) usable(ctx context.Context, kind string) *access.Fault {
	if fault := ops.Ended(ctx, kind); fault != nil {
		return fault
	}
	if jskit.Usable(s.nc) != nil {
		return &access.Fault{Code: access.CodeUnreachable, Retryable: true,
			Message: kind + " failed: the host has no connection to the NATS server, nothing was sent"}
	}
	return nil
}

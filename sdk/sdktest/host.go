package sdktest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
	"github.com/flowhost/flowhost/sdk/internal/guest"
)

// host is a [guest.Host] for one call, without limits on the log.
type host struct {
	ctx     context.Context // the attempt's: the fake is what the context ends
	fields  map[abi.Field][]byte
	limit   int
	grace   time.Duration
	outside *Outside

	canceled time.Time // that the call is canceled, first; zero: the function did not ask since

	output   []byte
	oversize bool
	failure  []byte
	log      run.Log
}

func (h *host) Read(field abi.Field) ([]byte, error) {
	return bytes.Clone(h.fields[field]), nil
}

func (h *host) Output(data []byte) error {
	if h.oversize = len(data) > h.limit; h.oversize {
		return guest.ErrOutputSize
	}
	h.output = bytes.Clone(data)
	return nil
}

func (h *host) Fail(failure []byte) { h.failure = bytes.Clone(failure) }

func (h *host) Log(level abi.Level, message string, fields []byte) {
	h.log.Lines = append(h.log.Lines, run.LogLine{
		Level: level.String(), Message: message, Fields: bytes.Clone(fields),
	})
}

func (h *host) TimeLeft() (time.Duration, bool) {
	deadline, ok := h.ctx.Deadline()
	return max(time.Until(deadline), 0), ok
}

// Canceled notes when it first returns true. It is called by one goroutine at a time.
func (h *host) Canceled() (left time.Duration, canceled bool) {
	if !errors.Is(h.ctx.Err(), context.Canceled) {
		return 0, false
	}
	if h.canceled.IsZero() {
		h.canceled = time.Now()
	}
	return max(h.grace-time.Since(h.canceled), time.Millisecond), true
}

// Operate has the test's own outside answer. Its end is that of ctx or of the call.
func (h *host) Operate(ctx context.Context, kind string, head, body []byte) (guest.Reply, error) {
	if err := h.ctx.Err(); err != nil {
		return guest.Reply{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(h.ctx, cancel)()
	return h.outside.operate(ctx, kind, head, body)
}

// Alone implements guest.Host.
func (h *host) Alone(kind string, head, body []byte, windsDown bool) (guest.Reply, error) {
	if windsDown {
		return h.outside.operate(context.WithoutCancel(h.ctx), kind, head, body)
	}
	return h.Operate(context.WithoutCancel(h.ctx), kind, head, body)
}

// Begin implements guest.Host.
func (h *host) Begin(kind string, head, body []byte) (guest.Pending, error) {
	return &pending{h, kind, head, bytes.Clone(body)}, nil
}

// pending is an operation that is performed when the function waits for it.
type pending struct {
	host       *host
	kind       string
	head, body []byte
}

// Wait implements guest.Pending.
func (p *pending) Wait(_ []byte, windsDown bool) (guest.Reply, error) {
	return p.host.Alone(p.kind, p.head, p.body, windsDown)
}

// Close implements guest.Pending.
func (*pending) Close() {}

// Wait waits for the end of the context, which nobody has to look for here.
func (h *host) Wait(stop <-chan struct{}) bool {
	select {
	case <-h.ctx.Done():
		return true
	case <-stop:
		return false
	}
}

// result is what a host would make of the call.
func (h *host) result() run.Result {
	failure := h.reported()
	switch {
	case !h.canceled.IsZero(), failure != nil && errors.Is(h.ctx.Err(), context.Canceled):
		failure = h.asCanceled(failure)
	case failure == nil:
		return run.Result{Outcome: run.OutcomeSucceeded, Output: h.output, Log: h.log}
	default:
		h.classify(failure)
	}
	return run.Result{Outcome: failure.Outcome, Failure: failure, Log: h.log}
}

// reported is the function's failure, nil without one.
func (h *host) reported() *run.Failure {
	if h.failure == nil {
		return nil
	}
	var f abi.Failure
	if err := json.Unmarshal(h.failure, &f); err != nil {
		f.Message = "the failure is not JSON: " + err.Error()
	}
	return &run.Failure{
		Code: f.Code, Message: f.Message, Retryable: f.Retryable,
		RetryAfter: time.Duration(f.RetryAfterMS) * time.Millisecond,
		Details:    f.Details,
	}
}

// asCanceled is the failure of a call that was canceled, with what the function
// said of its end.
func (h *host) asCanceled(own *run.Failure) *run.Failure {
	cause := context.Cause(h.ctx)
	if !errors.Is(cause, run.ErrCanceled) {
		cause = run.ErrCanceled
	}
	f := &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: cause.Error()}
	if own != nil && own.Message != context.Canceled.Error() {
		f.Message += ": " + own.Error()
		f.Details = own.Details
	}
	return f
}

// classify gives the failure its outcome. What ended the call from outside goes
// before the function's own report. The deadline is compared with the
// clock, as the function saw it: the context may notice a moment later.
func (h *host) classify(f *run.Failure) {
	left, limited := h.TimeLeft()
	switch {
	case limited && left == 0:
		f.Outcome, f.Code, f.Retryable = run.OutcomeTimedOut, run.CodeTimeout, true
	case h.oversize:
		f.Outcome, f.Code = run.OutcomeRejected, run.CodeOutputSize
	case f.Code == abi.CodeDenied:
		f.Outcome = run.OutcomeDenied
	default:
		f.Outcome = run.OutcomeFailed
	}
}

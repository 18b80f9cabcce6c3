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
	ctx    context.Context // the attempt's: the fake is what the context ends
	fields map[abi.Field][]byte
	limit  int

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

func (h *host) ShouldStop() bool { return h.ctx.Err() != nil }

// result is what a host would make of the call.
func (h *host) result() run.Result {
	if h.failure == nil {
		return run.Result{Outcome: run.OutcomeSucceeded, Output: h.output, Log: h.log}
	}
	var said abi.Failure
	if err := json.Unmarshal(h.failure, &said); err != nil {
		said.Message = "the failure is not JSON: " + err.Error()
	}
	failure := &run.Failure{
		Code: said.Code, Message: said.Message, Retryable: said.Retryable,
		RetryAfter: time.Duration(said.RetryAfterMS) * time.Millisecond,
		Details:    said.Details,
	}
	h.classify(failure)
	return run.Result{Outcome: failure.Outcome, Failure: failure, Log: h.log}
}

// classify gives the failure its outcome. What ended the call from outside goes
// before what the function said about it. The deadline is compared with the
// clock, as the function saw it: the context may notice a moment later.
func (h *host) classify(f *run.Failure) {
	left, limited := h.TimeLeft()
	switch {
	case errors.Is(h.ctx.Err(), context.Canceled):
		f.Outcome, f.Code, f.Retryable = run.OutcomeCanceled, run.CodeCanceled, false
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

package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// conclude determines how a call ended, from what its export returned and what the
// guest reported to the host. The error is set when the call was cut off for a reason
// that is not the call's own: its end is unknown.
func (inv *invocation) conclude(ctx context.Context, status int32, err error) (run.Result, error) {
	inv.end()
	failure, lost := inv.judge(ctx, status, err)
	inv.log.end()
	if lost != nil {
		return run.Result{}, lost
	}
	if inv.grace.begun() {
		failure = inv.canceled(ctx, failure, err)
	}
	var output json.RawMessage
	if failure == nil {
		output, failure = inv.checkOutput()
	}
	result := run.Result{Outcome: run.OutcomeSucceeded, Output: output}
	if failure != nil {
		result = failed(failure)
	}
	result.Log, result.Fuel = inv.log.result(), inv.fuel
	return result, nil
}

// judge gives the failure of the call, nil when the guest reports that it succeeded.
func (inv *invocation) judge(ctx context.Context, status int32, err error) (*run.Failure, error) {
	if err == nil {
		return inv.judgeEnd(ctx, status)
	}
	var exit *exitError
	var inadequate *inadequateError
	switch {
	case errors.Is(err, errInterrupted):
		return stopped(ctx)
	case errors.As(err, &inadequate):
		return rejected(run.CodeMemory, "%v", err), nil
	case errors.Is(err, errOutputSize):
		return inv.tooLarge(), nil
	case errors.Is(err, errFuel):
		return &run.Failure{
			Outcome: run.OutcomeTrapped, Code: run.CodeFuel,
			Message: fmt.Sprintf("%v, the limit of the call is %d units", err, inv.limits.Fuel),
		}, nil
	case errors.Is(err, errDepth):
		return &run.Failure{Outcome: run.OutcomeTrapped, Code: run.CodeDepth, Message: err.Error()}, nil
	case errors.As(err, &exit) && (exit.status != 0 || exit.early):
		return inv.exited(exit), nil
	case exit == nil:
		return inv.broke(err), nil
	}
	return inv.judgeEnd(ctx, status)
}

// judgeEnd gives the failure of a call whose guest has come to an end of its own.
func (inv *invocation) judgeEnd(ctx context.Context, status int32) (*run.Failure, error) {
	switch {
	case inv.oversized: // also when the guest fails because of it, as the SDK does
		return inv.tooLarge(), nil
	case inv.failure != nil && inv.over(ctx) && !inv.grace.begun(): // the guest saw it and gave up
		return stopped(ctx)
	case inv.failure != nil:
		return guestFailure(inv.failure), nil
	case status != 0:
		return &run.Failure{
			Outcome: run.OutcomeFailed, Code: fmt.Sprintf("status_%d", status),
			Message: fmt.Sprintf("function %s returned %d", inv.function, status),
		}, nil
	}
	return nil, nil
}

// stopped is the failure of a call whose context has ended.
func stopped(ctx context.Context) (*run.Failure, error) {
	cause := causeOf(ctx)
	if cause == nil || errors.Is(cause, context.DeadlineExceeded) {
		cause = run.ErrDeadline
	}
	switch {
	case errors.Is(cause, run.ErrDeadline):
		return &run.Failure{Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout, Message: cause.Error(), Retryable: true}, nil
	case errors.Is(cause, run.ErrSilent):
		return &run.Failure{Outcome: run.OutcomeTimedOut, Code: run.CodeHeartbeat, Message: cause.Error(), Retryable: true}, nil
	case errors.Is(cause, run.ErrCanceled):
		return &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: cause.Error()}, nil
	}
	return nil, fmt.Errorf("the call was cut off: %w", cause)
}

// canceled is the failure of a call that had its grace. Whatever the guest made of
// it, the call was to end; the guest's own words about its end are kept.
func (inv *invocation) canceled(ctx context.Context, own *run.Failure, err error) *run.Failure {
	failure := &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: causeOf(ctx).Error()}
	switch {
	case errors.Is(err, errInterrupted) && !inv.grace.asked:
		failure.Message += "; the guest never asked whether to stop"
	case errors.Is(err, errInterrupted):
		failure.Message += fmt.Sprintf("; the guest did not end by itself within %v", time.Since(inv.grace.period.since).Round(time.Millisecond))
	case own != nil && own.Message != context.Canceled.Error(): // a guest in Go returns context.Canceled
		failure.Message += ": " + own.Error()
		failure.Details = own.Details
	}
	return failure
}

func failed(f *run.Failure) run.Result {
	return run.Result{Outcome: f.Outcome, Failure: f}
}

func rejected(code, format string, args ...any) *run.Failure {
	return &run.Failure{Outcome: run.OutcomeRejected, Code: code, Message: fmt.Sprintf(format, args...)}
}

func (inv *invocation) tooLarge() *run.Failure {
	const store = "store the bytes with ctx.Artifact and return what its Commit returns"
	if inv.limits.Output >= run.MaxOutput {
		return rejected(run.CodeOutputSize, "the output is larger than %d bytes, the highest limit: %s", run.MaxOutput, store)
	}
	return rejected(run.CodeOutputSize, "the output is larger than %d bytes: raise the limit of the task, limits { output = \"SIZE\" }, at most 16MiB, or %s", inv.limits.Output, store)
}

// broke is the failure of a guest that trapped. The message of its own runtime contains
// more than the trap, which is often only its end.
func (inv *invocation) broke(err error) *run.Failure {
	failure := &run.Failure{
		Outcome: run.OutcomeTrapped, Code: run.CodeTrap, Message: err.Error(), Retryable: true,
	}
	if trap, ok := errors.AsType[*trapError](err); ok && trap.trace != "" {
		inv.log.add(abi.LevelError, trap.reason+"\n"+trap.trace, nil)
	}
	switch {
	case inv.last.crash != "":
		failure.Message = inv.last.crash
	case inv.last.line != "":
		failure.Message += "; last on stderr: " + inv.last.line
	}
	return inv.orMemory(failure)
}

// exited is the failure of a guest that ended itself with a status other than 0.
// A command may do so; a reactor does it in the middle of its work.
func (inv *invocation) exited(exit *exitError) *run.Failure {
	failure := &run.Failure{
		Outcome: run.OutcomeTrapped, Code: run.CodeExit, Message: exit.Error(), Retryable: true,
	}
	if inv.abi == ABIWASI && !exit.early {
		failure.Outcome, failure.Retryable = run.OutcomeFailed, exit.status == abi.ExitTempFail
	} else if inv.last.crash != "" {
		failure.Code = run.CodeTrap
	}
	switch {
	case inv.last.crash != "":
		failure.Message = inv.last.crash
	case inv.last.line != "":
		failure.Message += ": " + inv.last.line
	}
	return inv.orMemory(failure)
}

// orMemory is f, unless the guest broke after it was refused memory.
func (inv *invocation) orMemory(f *run.Failure) *run.Failure {
	if !inv.refused {
		return f
	}
	return &run.Failure{
		Outcome: run.OutcomeTrapped, Code: run.CodeMemory, Retryable: true,
		Message: fmt.Sprintf("no more memory was available, the limit of the call is %d bytes: %s", inv.limits.Memory, f.Message),
	}
}

// guestFailure is the failure that the guest reported with fail().
func guestFailure(f *abi.Failure) *run.Failure {
	const maxDelay = math.MaxInt64 / int64(time.Millisecond)
	failure := &run.Failure{
		Outcome: run.OutcomeFailed, Code: f.Code, Message: f.Message, Retryable: f.Retryable,
		RetryAfter: time.Duration(min(max(f.RetryAfterMS, 0), maxDelay)) * time.Millisecond,
		Details:    f.Details,
	}
	if f.Code == abi.CodeDenied {
		failure.Outcome = run.OutcomeDenied
	}
	return failure
}

// checkOutput gives the output of a call that succeeded. No output is null.
func (inv *invocation) checkOutput() (json.RawMessage, *run.Failure) {
	output := bytes.TrimSpace(inv.result())
	if len(output) == 0 {
		return json.RawMessage("null"), nil
	}
	err := run.CheckPayload(output)
	switch {
	case errors.Is(err, run.ErrPayloadSyntax):
		return nil, rejected(run.CodeOutputFormat, "the output is %v", err)
	case err != nil:
		return nil, rejected(run.CodeOutputFormat, "the output is refused: %v", err)
	}
	return output, nil
}

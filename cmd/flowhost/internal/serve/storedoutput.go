package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/flowhost/flowhost/bus/artifacts"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/run"
)

// StoreOutputs stores outputs that are larger than a record as artifacts. What is recorded
// then, and passed on to other tasks, is a reference.
func (o *Outside) StoreOutputs(next engine.Invoker) engine.Invoker {
	return InvokerFunc(func(ctx context.Context, call run.Call) (run.Result, error) {
		result, err := next.Invoke(ctx, call)
		if err != nil || result.Failure != nil || len(result.Output) <= run.MaxRecorded {
			return result, err
		}
		digest, err := o.storeOutput(ctx, result.Output)
		if err == nil {
			o.log.Debug("the output is stored as an artifact", "run", call.Run, "task", call.Task, "bytes", len(result.Output), "digest", digest)
			result.Output = run.StoredOutput(digest, len(result.Output))
			return result, nil
		}
		size := len(result.Output)
		result.Output = nil
		if cause := context.Cause(ctx); cause != nil {
			return endedWith(result, cause)
		}
		o.log.Error("the output of a task could not be stored as an artifact", "run", call.Run, "task", call.Task, "bytes", size, "error", err)
		return failedWith(result, notStored(size, err)), nil
	})
}

func (o *Outside) storeOutput(ctx context.Context, output []byte) (string, error) {
	d, err := o.natsOrAlone()
	if err != nil {
		return "", err
	}
	return d.artifacts.Keep(ctx, output, run.StoredType)
}

// Expand puts the outputs that were stored into JSON that refers to them.
func (o *Outside) Expand(ctx context.Context, src json.RawMessage) (json.RawMessage, error) {
	return run.Expand(src, func(digest string) (json.RawMessage, error) {
		d, err := o.natsOrAlone()
		if err != nil {
			return nil, err
		}
		return d.artifacts.Load(ctx, digest)
	})
}

// notStored is the failure of a call whose output has no place. Texts of the file system name
// paths of the host, so they are in its log only.
func notStored(size int, err error) *run.Failure {
	why := "the host's log has the reason"
	if errors.Is(err, artifacts.ErrFull) {
		why = artifacts.ErrFull.Error()
	}
	return &run.Failure{
		Outcome: run.OutcomeFailed, Code: run.CodeOutputStore, Retryable: true,
		Message: fmt.Sprintf("the output has %d bytes, more than the %d that are recorded, and could not be stored as an artifact: %s", size, run.MaxRecorded, why),
	}
}

// endedWith is the result of a call whose context has ended, as that of [engine.Invoker].
func endedWith(result run.Result, cause error) (run.Result, error) {
	switch {
	case errors.Is(cause, run.ErrDeadline) || errors.Is(cause, context.DeadlineExceeded):
		return failedWith(result, &run.Failure{Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout, Message: run.ErrDeadline.Error(), Retryable: true}), nil
	case errors.Is(cause, run.ErrCanceled):
		return failedWith(result, &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: cause.Error()}), nil
	}
	return result, fmt.Errorf("storing the output was cut off: %w", cause)
}

func failedWith(result run.Result, f *run.Failure) run.Result {
	result.Outcome, result.Failure = f.Outcome, f
	return result
}

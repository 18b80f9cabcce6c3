package host

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/flowhost/flowhost/run"
)

// Invoke runs one call and returns its result. The call's time starts now. It stands
// still, and the call leaves its [run.Place], while the call waits for memory or for the
// preparation of its module; while it sleeps, it leaves its place, and the time passes.
//
// An error means that the attempt is lost: ctx ended with a cause other than
// [run.ErrDeadline], [run.ErrCanceled] or [context.DeadlineExceeded], or the
// host is closed.
func (h *Host) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	if err := h.register(); err != nil {
		return run.Result{}, err
	}
	defer h.busy.Done()
	timeout := call.Timeout
	if timeout <= 0 {
		timeout = h.tuning.Load().Timeout
	}
	w := h.works.Get().(*work)
	w.call = call
	w.time.begin(ctx, h.life, timeout, call.Heartbeat)
	defer h.finish(w)

	result, err := h.invoke(w)
	if err != nil {
		return run.Result{}, fmt.Errorf("run %s, task %s, attempt %d: %w", call.Run, call.Task, call.Attempt, err)
	}
	result.Duration, result.Queued = time.Since(w.time.began)-w.time.stood, w.time.stood
	return result, nil
}

// work is all that a call needs of the host while it runs, in one piece that another
// call may use afterwards.
type work struct {
	call    run.Call
	time    callTime
	request request
	inv     invocation
	lease   lease
}

// finish ends a call's context and keeps its work for another call, with nothing left
// in it but what belongs to none.
func (h *Host) finish(w *work) {
	if unknown := w.time.stop(); !unknown {
		return // somebody may still have its context
	}
	fixed := w.inv.fixed
	*w = work{}
	w.inv.fixed = fixed
	h.works.Put(w)
}

func (h *Host) invoke(w *work) (run.Result, error) {
	ctx, call := &w.time, &w.call
	m, err := h.stored(ctx, call.Module)
	if err != nil {
		return rejectedResult(ctx, err)
	}
	defer h.modules.release(m)
	function, export, failure := m.resolve(call.Function)
	if failure != nil {
		return failed(failure), nil
	}
	limits := limitsOr(call.Limits, h.tuning.Load().Limits)
	limits.Memory = min(limits.Memory, h.config.Memory)
	limits.Output, limits.Log = min(limits.Output, run.MaxOutput), min(limits.Log, run.MaxLog)
	if need := m.minMemory(); need > limits.Memory {
		return failed(rejected(run.CodeMemory, "%v", &inadequateError{need, limits.Memory})), nil
	}
	if err := h.ready(ctx, m.image); err != nil {
		return rejectedResult(ctx, err)
	}
	if overhead := m.image.overhead(limits); overhead > h.config.Memory-m.minMemory() {
		return failed(rejected(run.CodeMemory, "the call needs %d bytes for its tables, output and log beside its memory, and the host has %d in all: lower its limits of output and log, or raise the host's memory", overhead, h.config.Memory)), nil
	}

	var result run.Result
	var lost error
	inv := &w.inv
	inv.set(m.signature.ABI, limits)
	w.request = requestOf(call, function)
	inv.request = &w.request
	inv.outside.host = h
	if m.image.asks {
		inv.grace.host = h
	}
	if h.config.Lines != nil {
		call := *call // which others may keep
		inv.log.follow = follower{hand: func(at time.Time, line run.LogLine) { h.config.Lines(&call, at, line) }}
	}
	err = h.calls.lend(ctx, &w.lease, m.image, limits, func(l *lease) {
		if failure := inv.open(ctx, h.private); failure != nil {
			result = failed(failure)
			return
		}
		status, err := m.image.run(ctx, l, inv, export)
		h.report(call, err)
		result, lost = inv.conclude(ctx, status, err)
	})
	if err != nil {
		return rejectedResult(ctx, err)
	}
	return result, lost
}

// stored returns the module that the source keeps under the digest. The caller releases it.
func (h *Host) stored(ctx context.Context, digest string) (*module, error) {
	if m := h.modules.use(digest); m != nil {
		return m, nil
	}
	m, err := h.module(ctx, digest, false, func(ctx context.Context) ([]byte, error) { return h.open(ctx, digest) })
	if err == nil && m.fault != nil {
		h.modules.release(m)
		err = m.fault
	}
	if err != nil {
		return nil, locate(err, digest)
	}
	return m, nil
}

// open reads the module of that digest from the source.
func (h *Host) open(ctx context.Context, digest string) ([]byte, error) {
	binary, err := h.config.Modules.Open(ctx, digest)
	if err != nil {
		return nil, err
	}
	if have := digestOf(binary); have != digest {
		return nil, &ModuleError{Reason: "the stored bytes have the digest " + have, Hint: "store the module again"}
	}
	return binary, nil
}

// rejectedResult is the result of a call that did not run.
func rejectedResult(ctx context.Context, err error) (run.Result, error) {
	var fault *ModuleError
	switch {
	case errors.As(err, &fault):
		return failed(rejected(run.CodeModule, "%v", fault)), nil
	case errors.Is(err, errBusy):
		failure := rejected(CodeBusy, "%v: more at a time than this host may run", err)
		failure.Retryable = true
		return failed(failure), nil
	case errors.Is(err, errSetupMemory):
		failure := rejected(CodeBusy, "%v", err)
		failure.Retryable = true
		return failed(failure), nil
	case errors.Is(err, errSetupTime):
		return failed(&run.Failure{
			Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout, Message: err.Error(), Retryable: true,
		}), nil
	case errors.Is(err, ErrClosed):
		return run.Result{}, err
	case ctx.Err() != nil:
		failure, lost := stopped(ctx)
		if lost != nil {
			return run.Result{}, lost
		}
		return failed(failure), nil
	case errors.Is(err, fs.ErrNotExist):
		return failed(rejected(run.CodeModule, "the module is not stored here: %v", err)), nil
	}
	failure := rejected(run.CodeModule, "the module cannot be opened: %v", err)
	failure.Retryable = true
	return failed(failure), nil
}

// report logs a panic in a host function: the result of the call shows it as a trap.
func (h *Host) report(call *run.Call, err error) {
	if trap, ok := errors.AsType[*trapError](err); ok && trap.hostTrace != "" {
		h.config.Log.Error("a host function panicked", "run", call.Run, "flow", call.Flow, "task", call.Task,
			"attempt", call.Attempt, "module", call.Module, "reason", trap.reason, "trace", trap.hostTrace)
	}
}

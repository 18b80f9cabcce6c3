package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// attempt is one call under way.
type attempt struct {
	task
	call     run.Call
	ctx      context.Context
	cancel   context.CancelCauseFunc
	deadline scheduler.Timer
}

// result is what a worker returns of an attempt: an error when it is lost.
type result struct {
	*attempt
	run.Result
	err error
}

// worker makes one attempt at a time. Its result always has a place in the
// channel, which is as long as there are workers.
func (e *Engine) worker(ctx context.Context) {
	for {
		select {
		case a := <-e.work:
			e.results <- e.invoke(a)
		case <-ctx.Done():
			return
		}
	}
}

// invoke turns a panic of the invoker into a lost attempt: one broken call must
// not take the host down.
func (e *Engine) invoke(a *attempt) (r result) {
	defer func() {
		if p := recover(); p != nil {
			r = result{attempt: a, err: fmt.Errorf("the host panicked: %v", p)}
		}
	}()
	answer, err := e.config.Invoker.Invoke(a.ctx, a.call)
	return result{attempt: a, Result: answer, err: err}
}

// dispatch starts what may start while workers are free.
func (e *Engine) dispatch() {
	for len(e.starting) > 0 {
		o := e.starting[0]
		e.starting = e.starting[1:]
		if o.run.State == run.Pending {
			e.start(o)
		}
	}
	for e.idle > 0 && len(e.runnable) > 0 && !e.draining && !e.congested() && e.fault == nil {
		t := e.runnable[0]
		e.runnable = e.runnable[1:]
		e.begin(t)
	}
}

// begin starts a task's next attempt. Its input is evaluated once, now; later
// attempts are given the recorded bytes.
func (e *Engine) begin(t task) {
	started, failure := t.nextAttempt()
	if failure == nil {
		failure = e.recordStart(t, started)
	}
	if failure != nil {
		e.end(t, run.Failed, failure)
		e.advance(t.openRun)
		return
	}
	if e.fault != nil {
		return
	}
	timeout := t.spec.Timeout
	if timeout <= 0 {
		timeout = e.config.Timeout
	}
	state := t.state()
	a := &attempt{task: t, call: run.Call{
		Run: t.run.ID, Flow: t.run.Flow, Task: t.spec.Name, Attempt: state.Attempts,
		Scheduled: t.run.Trigger.Time, Module: state.Module, Function: state.Function,
		Input: state.Input, Config: state.Config, Timeout: timeout, Limits: t.spec.Limits, Grants: t.spec.Grants,
	}}
	a.ctx, a.cancel = context.WithCancelCause(e.ctx)
	a.deadline = e.at(time.Now().Add(timeout), func() { a.cancel(run.ErrDeadline) })
	t.attempts[t.ref()] = a
	e.idle--
	e.work <- a // never blocks: there are as many places as workers
}

func (t task) nextAttempt() (*run.AttemptStarted, *run.Failure) {
	started := &run.AttemptStarted{TaskRef: t.ref(), Attempt: 1, Module: t.spec.Plugin.Digest, Function: t.spec.Function}
	if state := t.state(); state != nil {
		started.Attempt = state.Attempts + 1
		return started, nil
	}
	var failure *run.Failure
	if started.Input, failure = t.spec.Input(t.scope); failure != nil {
		return nil, failure
	}
	started.Config, failure = t.spec.Config(t.scope)
	return started, failure
}

func (e *Engine) recordStart(t task, started *run.AttemptStarted) *run.Failure {
	err := e.record(t.event(started))
	if size := (*SizeError)(nil); errors.As(err, &size) {
		return &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeInputSize, Message: "the input: " + err.Error()}
	}
	return nil
}

// attemptEnded records a result and lets the run go on.
func (e *Engine) attemptEnded(r result) {
	e.idle++
	e.timers.Cancel(r.deadline)
	r.cancel(nil)
	delete(r.attempts, r.ref())
	if r.err != nil {
		if e.ctx.Err() != nil {
			return // the host stops; the attempt is found without an end and made again
		}
		r.Result = lostResult(r.err.Error())
	}
	e.recordEnd(r.task, r.Result)
	e.advance(r.openRun)
}

// lost ends an attempt that was under way when the process ended before.
func (e *Engine) lost(t task) {
	e.recordEnd(t, lostResult("the host stopped while the attempt was under way"))
}

func lostResult(message string) run.Result {
	return run.Result{Outcome: run.OutcomeLost, Failure: &run.Failure{
		Outcome: run.OutcomeLost, Code: run.CodeLost, Message: message, Retryable: true,
	}}
}

// recordEnd records how an attempt ended, and when the next one is due if the
// policy allows one.
func (e *Engine) recordEnd(t task, r run.Result) {
	state := t.state()
	end := &run.AttemptFinished{
		TaskRef: t.ref(), Attempt: state.Attempts,
		Outcome: r.Outcome, Output: compact(r.Output), Failure: r.Failure, Duration: r.Duration,
	}
	if r.Failure != nil {
		r.Failure.At = t.spec.At()
		end.Output, end.RetryAt = nil, e.nextDue(t, r.Failure)
	}
	if err := e.record(t.event(end)); errors.As(err, new(*SizeError)) {
		end.Outcome, end.Output = run.OutcomeRejected, nil
		end.Failure = &run.Failure{
			Outcome: run.OutcomeRejected, Code: run.CodeOutputSize,
			Message: "the output: " + err.Error(), At: t.spec.At(),
		}
		e.record(t.event(end))
	}
	if e.fault != nil {
		return
	}
	e.logEnd(t, end)
	if state.State.Done() {
		e.settled(t)
		return
	}
	e.retryAt(t, state.Due)
}

// nextDue is when the attempt after a failed one may start; zero for never.
func (e *Engine) nextDue(t task, f *run.Failure) time.Time {
	state := t.state()
	spent, lost := state.Attempts, state.Lost
	if f.Outcome == run.OutcomeLost {
		lost++
	}
	if t.stopping() || !t.spec.Retry.Allows(f, spent, lost) {
		return time.Time{}
	}
	if f.Outcome == run.OutcomeLost {
		return now()
	}
	return now().Add(max(t.spec.Retry.After(spent-lost, rand.Float64()), f.RetryAfter))
}

// retryAt makes a task runnable when it is due.
func (e *Engine) retryAt(t task, due time.Time) {
	t.retries[t.ref()] = e.at(due, func() {
		if _, waiting := t.retries[t.ref()]; waiting {
			delete(t.retries, t.ref())
			e.runnable = append(e.runnable, t)
		}
	})
}

// compact gives JSON the form in which the journal keeps it, so that a task that
// is given it now and one that is given it after a restart see the same bytes.
func compact(output json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if json.Compact(&out, output) != nil {
		return output
	}
	return out.Bytes()
}

func (e *Engine) logEnd(t task, end *run.AttemptFinished) {
	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.Any("run", t.run.ID), slog.String("flow", t.run.Flow), slog.String("task", t.spec.Name),
		slog.Int("attempt", end.Attempt), slog.Duration("took", end.Duration),
	}
	if end.Failure != nil {
		level = slog.LevelWarn
		attrs = append(attrs, failureAttr(end.Failure))
	}
	if !end.RetryAt.IsZero() {
		attrs = append(attrs, slog.Time("retry_at", end.RetryAt))
	}
	e.log.LogAttrs(e.ctx, level, "attempt "+string(end.Outcome), attrs...)
}

// failureAttr is empty, and so left out of the log, without a failure.
func failureAttr(f *run.Failure) slog.Attr {
	if f == nil {
		return slog.Attr{}
	}
	return slog.Group("error", "outcome", f.Outcome, "code", f.Code, "message", f.Message, "at", f.At)
}

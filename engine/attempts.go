package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
)

// attempt is one call in flight.
type attempt struct {
	place    attemptPlace
	task     task
	call     run.Call
	ctx      context.Context
	cancel   context.CancelCauseFunc
	deadline countdown     // of its time
	extended time.Duration // how much of the time in which that stood still the deadline allows for
	decided  atomic.Bool   // its end is decided: by the worker that returns, or by the loop that waits no longer
}

// result is the answer of a worker to an attempt: an error when it is lost.
type result struct {
	*attempt
	run.Result
	err error
}

// begin starts a task's next attempt, which has been admitted. The input is evaluated
// once, now; later attempts get the recorded bytes.
func (e *executor) begin(t task, place fairq.Place) {
	if t.busy() {
		t.openRun.beginning = append(t.beginning, beginning{task: t, place: place})
		t.whenIdle(func() { e.beginLate(t) })
		return
	}
	started := &run.AttemptStarted{TaskRef: t.ref(), Attempt: 1, Module: t.spec.Plugin.Digest, Function: t.spec.Function}
	if state := t.state(); state != nil {
		started.Attempt = state.Attempts + 1
		e.startAttempt(t, place, started, nil)
		return
	}
	if failure, enough := e.tryInput(t, started); enough {
		e.startAttempt(t, place, started, failure)
		return
	}
	t.openRun.beginning = append(t.beginning, beginning{task: t, place: place})
	e.prepare(t, started)
}

// tryInput evaluates what a function gets, unless that takes long.
func (e *executor) tryInput(t task, started *run.AttemptStarted) (failure *run.Failure, enough bool) {
	if !e.evaluations.tries(t.openRun) {
		return nil, false
	}
	if t.item != nil {
		t.scope.Each(&t.item.Item)
		defer t.scope.Each(nil)
	}
	trial := t.scope.BeginTrial(e.evaluations.units())
	failure = evaluateInput(t.spec, t.scope, started)
	return failure, trial.End()
}

// evaluateInput evaluates what a function gets.
func evaluateInput(spec *flows.Task, s *flows.Scope, started *run.AttemptStarted) (failure *run.Failure) {
	if started.Input, failure = spec.Input(s); failure == nil {
		started.Config, failure = spec.Config(s)
	}
	return failure
}

// prepare evaluates what a function gets beside the loop, and starts the attempt.
func (e *executor) prepare(t task, started *run.AttemptStarted) {
	var failure *run.Failure
	e.evaluations.evaluateBeside(t.openRun, func() {
		defer t.lookAt()()
		failure = evaluateInput(t.spec, t.scope, started)
	}, func() {
		if place := t.begun(); e.draining { // it begins after the restart
			e.giveBack(t, place)
		} else {
			e.startAttempt(t, place, started, failure)
		}
	}, func() { e.beginLate(t) })
}

// beginLate begins an attempt that was admitted a while ago, unless its task was withdrawn
// since, or the host stops: it begins after the restart then.
func (e *executor) beginLate(t task) {
	if !t.begins() {
		return
	}
	if place := t.begun(); e.draining {
		e.giveBack(t, place)
	} else {
		e.begin(t, place)
	}
}

// giveBack frees what an admitted attempt holds that does not begin.
func (e *executor) giveBack(t task, place fairq.Place) {
	e.places.Exit(&place)
	e.runnable.Done(t.run.Flow, e.limits.of(t))
}

// startAttempt records the start of an attempt, unless its input could not be evaluated, and
// passes it to a worker.
func (e *executor) startAttempt(t task, place fairq.Place, started *run.AttemptStarted, failure *run.Failure) {
	if failure == nil {
		failure = e.recordStart(t, started)
	}
	if failure != nil {
		e.giveBack(t, place)
		e.end(t, run.Failed, failure)
		e.advance(t.openRun)
		return
	}
	if e.fault != nil {
		return
	}
	e.limits.started(t)
	timeout := t.spec.Timeout
	if timeout <= 0 && t.spec.Child == nil { // a sub-flow has no default timeout, also where a call replaces it
		timeout = time.Duration(e.timeout.Load())
	}
	state := t.state()
	a := &attempt{task: t, place: attemptPlace{places: e.places, clock: e.clock, place: place}, call: run.Call{
		Run: t.run.ID, Flow: t.run.Flow, Task: t.spec.Name, Key: t.ref().Key, Attempt: state.Attempts,
		Scheduled: t.run.Trigger.Time, Hops: hopsOf(t.run), Module: state.Module, Function: state.Function,
		Input: state.Input, Config: state.Config, Timeout: timeout, Heartbeat: t.spec.Heartbeat, Limits: t.spec.Limits, Grants: t.spec.Grants,
	}}
	a.ctx, a.cancel = context.WithCancelCause(e.ctx)
	if timeout > 0 {
		e.clock.countDown(&a.deadline, e.clock.now().Add(timeout), func() { e.attemptDue(a) })
	}
	t.attempts = append(t.attempts, a)
	e.inFlight++
	if e.config.Sim != nil {
		e.simulate(a)
		return
	}
	a.place.Context, a.ctx = a.ctx, &a.place
	e.workers.Begin(a)
}

// attemptDue interrupts an attempt at its deadline, or extends that by the time in which
// the attempt's time has stood still.
func (e *executor) attemptDue(a *attempt) {
	stood := a.place.stoodStill()
	if stood <= a.extended {
		e.interrupt(a, run.ErrDeadline)
		return
	}
	e.clock.countDown(&a.deadline, e.clock.now().Add(stood-a.extended), func() { e.attemptDue(a) })
	a.extended = stood
}

// lookAt makes the item visible to expressions until the returned function is called.
func (t task) lookAt() func() {
	if t.item == nil {
		return func() {}
	}
	t.scope.Each(&t.item.Item)
	return func() { t.scope.Each(nil) }
}

func (e *executor) recordStart(t task, started *run.AttemptStarted, also ...run.Event) *run.Failure {
	err := errors.Join(fits(started.Input), fits(started.Config))
	if err == nil {
		err = e.commits.record(append([]run.Event{t.event(started)}, also...)...)
	}
	if size := (*SizeError)(nil); errors.As(err, &size) {
		return &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeInputSize, Message: "the input: " + size.Error()}
	}
	return nil
}

// invocations makes attempts, on workers.
type invocations struct {
	invoker Invoker
	log     *slog.Logger
	stuck   atomic.Int32 // attempts that were given up and have not ended yet
}

// make makes an attempt. The result of one that was given up meanwhile is not wanted. A
// panic of the invoker makes it a lost attempt: one broken call must not take the host down.
func (c *invocations) make(a *attempt) (r result, wanted bool) {
	defer func() {
		if panicked := recover(); panicked != nil {
			r = result{attempt: a, err: fmt.Errorf("the host panicked: %v", panicked)}
		}
		if wanted = a.decided.CompareAndSwap(false, true); !wanted {
			c.stuck.Add(-1)
			c.log.Warn("an attempt that was given up has ended", "run", a.call.Run, "task", a.call.Task, "attempt", a.call.Attempt)
		}
	}()
	answer, err := c.invoker.Invoke(a.ctx, a.call)
	return result{attempt: a, Result: answer, err: err}, false
}

// giveUpAfter is how long an attempt may take to end after it was interrupted. A call
// that takes longer hangs where the sandbox cannot interrupt it.
const giveUpAfter = 10 * time.Second

// interrupt asks an attempt to end, and gives it up when it does not.
func (e *executor) interrupt(a *attempt, cause error) {
	if a.ctx.Err() != nil {
		return
	}
	a.cancel(cause)
	e.clock.stopCountdown(&a.deadline)
	e.clock.countDown(&a.deadline, e.clock.now().Add(giveUpAfter), func() { e.abandonAttempt(a, cause) })
}

// abandonAttempt records the end of an attempt that hangs and replaces its worker,
// unless as many hang as may compute: each keeps a thread and its memory.
func (e *executor) abandonAttempt(a *attempt, cause error) {
	if workers, _ := e.places.Bounds(); int(e.calls.stuck.Load()) >= max(workers, 1) {
		e.clock.countDown(&a.deadline, e.clock.now().Add(giveUpAfter), func() { e.abandonAttempt(a, cause) })
		return
	}
	if !a.decided.CompareAndSwap(false, true) {
		return // its result is on the way
	}
	hanging := e.calls.stuck.Add(1)
	if e.config.Sim == nil {
		e.workers.Abandon()
	}
	e.log.Error("an attempt does not end and is given up; its memory stays in use", "run", a.call.Run, "flow", a.call.Flow,
		"task", a.call.Task, "attempt", a.call.Attempt, "module", a.call.Module, "hanging", hanging)
	outcome := run.OutcomeTimedOut
	if errors.Is(cause, run.ErrCanceled) {
		outcome = run.OutcomeCanceled
	}
	e.attemptEnded(result{attempt: a, Result: run.Result{Outcome: outcome, Failure: &run.Failure{
		Outcome: outcome, Code: run.CodeStuck, Retryable: outcome == run.OutcomeTimedOut,
		Message: fmt.Sprintf("the call did not end within %s after it was interrupted", giveUpAfter),
	}}})
}

// attemptEnded records a result and advances the run.
func (e *executor) attemptEnded(r result) {
	r.Queued = r.place.stoodStill()
	e.inFlight--
	e.places.Exit(&r.place.place)
	e.clock.stopCountdown(&r.deadline)
	r.cancel(nil)
	r.task.openRun.attempts = slices.DeleteFunc(r.task.openRun.attempts, func(a *attempt) bool { return a == r.attempt })
	if r.err != nil {
		if e.ctx.Err() != nil {
			return // the host stops; the attempt is found without an end and repeated
		}
		r.Result = lostResult(r.err.Error())
	}
	if r.task.busy() {
		concludeLater(e, r.task, r.Result)
	} else {
		e.concludeAttempt(r.task, r.Result)
	}
}

// concludeLater keeps the result of an attempt until its run is idle. It is apart from
// attemptEnded so that most results do not escape to the heap.
func concludeLater(e *executor, t task, r run.Result) {
	t.openRun.ending = append(t.ending, t)
	t.whenIdle(func() { e.concludeAttempt(t, r) })
}

// concludeAttempt records the result of an attempt and advances the run.
func (e *executor) concludeAttempt(t task, r run.Result) {
	if r.Failure == nil {
		e.attemptConcluded(t, t.endWith(t.state().Attempts, r))
	} else {
		concludeFailed(e, t, r)
	}
	e.advance(t.openRun)
}

func concludeFailed(e *executor, t task, r run.Result) {
	if !slices.Contains(t.ending, t) {
		t.openRun.ending = append(t.ending, t)
	}
	e.endOf(t, r, func(end *run.AttemptFinished) { e.attemptConcluded(t, end) })
}

func (e *executor) attemptConcluded(t task, end *run.AttemptFinished) {
	e.runnable.Done(t.run.Flow, e.limits.of(t)) // not before the end is recorded
	if i := slices.Index(t.ending, t); i >= 0 {
		t.openRun.ending = slices.Delete(t.ending, i, i+1)
	}
	e.recordAttemptEnd(t, end)
}

// recordLost ends an attempt that was running when the previous process ended: as
// lost, or as canceled if it was being canceled.
func (e *executor) recordLost(t task) {
	result := lostResult("the host stopped while the attempt was running")
	if why := t.stopped(); why != nil && why.Outcome == run.OutcomeCanceled {
		failure := *why
		result = run.Result{Outcome: run.OutcomeCanceled, Failure: &failure}
	}
	e.recordEnd(t, result)
}

func lostResult(message string) run.Result {
	return run.Result{Outcome: run.OutcomeLost, Failure: &run.Failure{
		Outcome: run.OutcomeLost, Code: run.CodeLost, Message: message, Retryable: true,
	}}
}

// recordEnd records how an attempt ended, and when the next one is due if the retry
// policy allows one.
func (e *executor) recordEnd(t task, r run.Result) {
	e.endOf(t, r, func(end *run.AttemptFinished) { e.recordAttemptEnd(t, end) })
}

func (e *executor) recordAttemptEnd(t task, end *run.AttemptFinished) {
	err := fits(end.Output)
	if err == nil {
		err = e.commits.record(t.event(end))
	}
	if errors.As(err, new(*SizeError)) {
		end.Outcome, end.Output = run.OutcomeRejected, nil
		end.Failure = &run.Failure{
			Outcome: run.OutcomeRejected, Code: run.CodeOutputSize,
			Message: "the output: " + err.Error(), At: t.spec.At(),
		}
		e.commits.record(t.event(end))
	}
	if e.fault == nil {
		e.attemptOver(t, end)
	}
}

// endWith is the event for the end of an attempt with that result, before anything is
// decided.
func (t task) endWith(attempt int, r run.Result) *run.AttemptFinished {
	return &run.AttemptFinished{
		TaskRef: t.ref(), Attempt: attempt,
		Outcome: r.Outcome, Output: r.Output, Failure: r.Failure, Duration: r.Duration, Queued: r.Queued,
	}
}

// endOf gives the event for the end of the attempt under way.
func (e *executor) endOf(t task, r run.Result, then func(*run.AttemptFinished)) {
	state := t.state()
	e.endOfAttempt(t, state.Attempts, state.Lost, r, then)
}

// endOfAttempt gives the event for the end of an attempt, with the time of the next one if
// there is one. A retry condition that cannot be evaluated replaces the failure.
func (e *executor) endOfAttempt(t task, spent, lost int, r run.Result, then func(*run.AttemptFinished)) {
	end := t.endWith(spent, r)
	if r.Failure == nil {
		then(end)
		return
	}
	r.Failure.At, end.Output = t.spec.At(), nil
	gone := lost
	if end.Outcome == run.OutcomeLost {
		gone++
	}
	decide := func(s *flows.Scope) (bool, *run.Failure) { return t.spec.Again(s, r.Failure, spent, gone) }
	decided := func(again bool, broken *run.Failure) {
		if broken != nil {
			end.Failure = t.locate(broken)
			end.Outcome = broken.Outcome
		}
		if again {
			end.RetryAt = e.nextDue(t, end, spent-gone)
		}
		then(end)
	}
	switch {
	case t.stopped() != nil:
		then(end)
	case t.spec.DecidesRetries(r.Failure):
		evaluateTask(e, t, decide, decided, func() { e.endOfAttempt(t, spent, lost, r, then) })
	default:
		decided(decide(t.scope))
	}
}

// attemptOver continues after the recorded end of an attempt.
func (e *executor) attemptOver(t task, end *run.AttemptFinished) {
	e.logEnd(t, end)
	state := t.state()
	if state.State.Done() {
		e.settled(t)
		return
	}
	e.retryAt(t, state.Due)
}

// nextDue is when the next attempt after a failed one may start.
func (e *executor) nextDue(t task, end *run.AttemptFinished, counted int) time.Time {
	if end.Outcome == run.OutcomeLost {
		return e.clock.now()
	}
	return e.clock.now().Add(max(t.spec.Retry.After(counted, e.random()), end.Failure.RetryAfter))
}

// retryAt makes a task ready when it is due.
func (e *executor) retryAt(t task, due time.Time) {
	if t.retries == nil {
		t.openRun.retries = map[run.TaskRef]*countdown{}
	}
	wait := new(countdown)
	t.retries[t.ref()] = wait
	e.clock.countDown(wait, due, func() {
		t.whenIdle(func() {
			if t.retries[t.ref()] == wait {
				delete(t.retries, t.ref())
				if t.item != nil {
					t.fan().activate(t.item)
				}
				e.enqueue(t)
			}
		})
	})
	if t.item != nil {
		t.fan().deactivate(t.item)
		e.feed(t.fanTask())
	}
}

func (e *executor) logEnd(t task, end *run.AttemptFinished) {
	level := slog.LevelDebug
	if end.Failure != nil {
		level = slog.LevelWarn
	}
	if !e.log.Enabled(e.ctx, level) {
		return
	}
	attrs := []slog.Attr{
		slog.Any("run", t.run.ID), slog.String("flow", t.run.Flow), slog.String("task", t.ref().Label()),
		slog.Int("attempt", end.Attempt), slog.Duration("took", end.Duration),
	}
	if end.Failure != nil {
		attrs = append(attrs, failureAttr(end.Failure))
	}
	if !end.RetryAt.IsZero() {
		attrs = append(attrs, slog.Time("retry_at", end.RetryAt))
	}
	e.log.LogAttrs(e.ctx, level, "attempt "+string(end.Outcome), attrs...)
}

// failureAttr is empty, and so not logged, without a failure.
func failureAttr(f *run.Failure) slog.Attr {
	if f == nil {
		return slog.Attr{}
	}
	return slog.Group("error", "outcome", f.Outcome, "code", f.Code, "message", f.Message, "at", f.At)
}

// hopsOf is how many messages have led to a run.
func hopsOf(r *run.Run) int {
	hops, _ := r.Trigger.Hops() // it has started
	return hops
}

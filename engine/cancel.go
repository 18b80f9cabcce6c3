package engine

import (
	"cmp"
	"fmt"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// cancel stops a run for the given reason. Running attempts are interrupted and end by
// themselves; everything else ends now. The tasks of finally run nevertheless; once
// they run, a further cancellation applies to them.
func (e *executor) cancel(o *openRun, why *run.Failure) {
	if o.busy() {
		o.interrupt(func() { e.cancel(o, why) })
		return
	}
	if o.run.State.Done() {
		return
	}
	if o.phase.part == flows.PartFinally {
		e.stopFinally(o, why)
		return
	}
	if o.run.Cancel != nil || e.commits.record(o.event(&run.CancelRequested{Failure: why})) != nil {
		return
	}
	if o.run.State == run.Pending {
		e.cancelPending(o)
		return
	}
	for ref, timer := range o.retries {
		e.clock.stopCountdown(timer)
		e.endRetry(o, ref, o.run.Cancel)
	}
	for _, w := range o.waits {
		e.endWait(w.task, &run.WaitEnded{State: run.Canceled, Failure: o.run.Cancel})
	}
	for _, a := range o.attempts {
		e.interrupt(a, causeOf(why))
	}
	for _, t := range e.withdraw(o, task.stopping) {
		e.end(t, run.Canceled, o.run.Cancel)
	}
	e.children.stopAll(o, o.run.Cancel, func(run.TaskRef) bool { return true })
	e.advance(o)
}

// causeOf is the cause with which attempts are interrupted for a reason.
func causeOf(why *run.Failure) error {
	kind := run.ErrCanceled
	if why.Outcome == run.OutcomeTimedOut {
		kind = run.ErrDeadline
	}
	return &stopError{kind, cmp.Or(why.Message, kind.Error())}
}

// stopError is run.ErrCanceled or run.ErrDeadline with the reason as its message, which
// becomes the message of a call's failure.
type stopError struct {
	kind    error
	message string
}

func (e *stopError) Error() string { return e.message }

func (e *stopError) Is(target error) bool { return target == e.kind }

// cancelPending ends a run that waits for its slot: none of its tasks has started.
func (e *executor) cancelPending(o *openRun) {
	for _, spec := range o.flow.Tasks {
		ref := run.TaskRef{Task: spec.Name}
		if state := o.run.Task(ref); state != nil && state.State.Done() {
			continue // carried over from the run that this one continues
		}
		end := &run.TaskEnded{TaskRef: ref, State: run.Canceled, Failure: o.run.Cancel}
		if e.commits.record(o.event(end)) != nil {
			return
		}
	}
	e.finish(o, o.run.Cancel)
}

// endRetry ends a task that waits for its next attempt.
func (e *executor) endRetry(o *openRun, ref run.TaskRef, why *run.Failure) {
	delete(o.retries, ref)
	if t, ok := o.task(ref); ok {
		e.end(t, run.Canceled, why)
	}
}

// task finds a task of the current phase, or an item that has begun.
func (o *openRun) task(ref run.TaskRef) (task, bool) {
	spec := o.flow.Task(ref.Task)
	if !o.phase.holds(spec) {
		return task{}, false
	}
	t := o.leaf(spec.Node)
	if ref.Key == "" {
		return t, true
	}
	if f := t.fan(); f != nil {
		t.item = f.active[ref.Key]
	}
	return t, t.item != nil
}

// cancelTask stops one task of a run, or an item that has begun: its running attempt
// is interrupted and no further one starts. A task that has not started ends when its
// turn comes.
func (e *executor) cancelTask(o *openRun, ref run.TaskRef, why *run.Failure) error {
	state := o.run.Task(ref)
	if state != nil && state.State.Done() {
		return ErrFinished
	}
	if !o.knows(ref) {
		return ErrUnknownTask
	}
	if state != nil && state.Cancel != nil {
		return nil
	}
	if err := e.commits.record(o.event(&run.TaskCancelRequested{TaskRef: ref, Failure: why})); err != nil {
		return err
	}
	e.stopTask(o, ref, why)
	e.advance(o)
	return nil
}

// stopTask stops what runs or waits of a task or an item.
func (e *executor) stopTask(o *openRun, ref run.TaskRef, why *run.Failure) {
	of := func(other run.TaskRef) bool { return other == ref || ref.Key == "" && other.Task == ref.Task }
	for _, a := range o.attempts {
		if of(a.task.ref()) {
			e.interrupt(a, causeOf(why))
		}
	}
	for other, timer := range o.retries {
		if of(other) {
			e.clock.stopCountdown(timer)
			e.endRetry(o, other, why)
		}
	}
	if w := o.waits[ref]; w != nil {
		e.endWait(w.task, &run.WaitEnded{State: run.Canceled, Failure: why})
	}
	for _, t := range e.withdraw(o, func(t task) bool { return of(t.ref()) }) {
		e.end(t, run.Canceled, why)
	}
	e.children.stopAll(o, why, of)
}

// knows reports whether the run's flow or one of its hooks has the task; for an item,
// whether it has begun.
func (o *openRun) knows(ref run.TaskRef) bool {
	if ref.Key == "" {
		return o.flow.Task(ref.Task) != nil
	}
	_, known := o.task(ref)
	return known
}

func (e *executor) runTimedOut(o *openRun) {
	if o.run.State.Done() || o.phase.over() {
		return
	}
	e.cancel(o, &run.Failure{
		Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout,
		Message: fmt.Sprintf("the run took longer than its timeout of %s", o.flow.Timeout),
	})
}

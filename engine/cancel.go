package engine

import (
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// cancel stops a run for the given reason. Attempts under way are told and end
// by themselves; everything else ends now. The tasks of finally run all the same;
// once they do, a further cancellation is for them.
func (e *Engine) cancel(o *openRun, why *run.Failure) {
	if o.phase.part == flows.PartFinally {
		e.stopFinally(o, why)
		return
	}
	if o.run.Cancel != nil || e.record(o.event(&run.CancelRequested{Failure: why})) != nil {
		return
	}
	if o.run.State == run.Pending {
		e.cancelPending(o)
		return
	}
	for ref, timer := range o.retries {
		e.stopCountdown(timer)
		e.unready(o, ref, o.run.Cancel)
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
	e.advance(o)
}

// causeOf is what attempts are told that are stopped for a reason.
func causeOf(why *run.Failure) error {
	if why.Outcome == run.OutcomeTimedOut {
		return run.ErrDeadline
	}
	return run.ErrCanceled
}

// cancelPending ends a run that waits for its slot: nothing of it has started.
func (e *Engine) cancelPending(o *openRun) {
	for _, spec := range o.flow.Tasks {
		ref := run.TaskRef{Task: spec.Name}
		if state := o.run.Task(ref); state != nil && state.State.Done() {
			continue // taken over from the run that this one continues
		}
		end := &run.TaskEnded{TaskRef: ref, State: run.Canceled, Failure: o.run.Cancel}
		if e.record(o.event(end)) != nil {
			return
		}
	}
	e.finish(o, o.run.Cancel)
}

// unready ends a task that waits for its next attempt.
func (e *Engine) unready(o *openRun, ref run.TaskRef, why *run.Failure) {
	delete(o.retries, ref)
	if t, ok := o.task(ref); ok {
		e.end(t, run.Canceled, why)
	}
}

// task finds a task of the phase that is being executed.
func (o *openRun) task(ref run.TaskRef) (task, bool) {
	for node, spec := range o.phase.tasks {
		if spec.Name == ref.Task {
			return task{o, spec, node}, true
		}
	}
	return task{}, false
}

// cancelTask stops one task of a run: the attempt under way is told, no further
// one starts. A task that has not started ends when its turn comes.
func (e *Engine) cancelTask(o *openRun, ref run.TaskRef, why *run.Failure) error {
	if !o.knows(ref) {
		return ErrUnknownTask
	}
	state := o.run.Task(ref)
	if state != nil && state.State.Done() {
		return ErrFinished
	}
	if state != nil && state.Cancel != nil {
		return nil
	}
	if err := e.record(o.event(&run.TaskCancelRequested{TaskRef: ref, Failure: why})); err != nil {
		return err
	}
	for _, a := range o.attempts {
		if a.ref() == ref {
			e.interrupt(a, causeOf(why))
		}
	}
	if timer, waiting := o.retries[ref]; waiting {
		e.stopCountdown(timer)
		e.unready(o, ref, why)
	}
	if w := o.waits[ref]; w != nil {
		e.endWait(w.task, &run.WaitEnded{State: run.Canceled, Failure: why})
	}
	for _, t := range e.withdraw(o, func(t task) bool { return t.ref() == ref }) {
		e.end(t, run.Canceled, why)
	}
	e.advance(o)
	return nil
}

// knows reports whether the run's flow has the task, or one of its hooks.
func (o *openRun) knows(ref run.TaskRef) bool {
	named := func(spec *flows.Task) bool { return spec.Name == ref.Task }
	return ref.Key == "" && slices.ContainsFunc(o.flow.Sections, func(s *flows.Section) bool { return slices.ContainsFunc(s.Tasks, named) })
}

func (e *Engine) runTimedOut(o *openRun) {
	if o.run.State.Done() || o.phase.hook() {
		return
	}
	e.cancel(o, &run.Failure{
		Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout,
		Message: fmt.Sprintf("the run took longer than its timeout of %s", o.flow.Timeout),
	})
}

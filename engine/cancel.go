package engine

import (
	"fmt"

	"github.com/flowhost/flowhost/run"
)

// cancel stops a run for the given reason. Attempts under way are told and end
// by themselves; everything else ends now.
func (e *Engine) cancel(o *openRun, why *run.Failure) {
	if o.run.Cancel != nil || e.record(o.event(&run.CancelRequested{Failure: why})) != nil {
		return
	}
	if o.run.State == run.Pending {
		e.cancelPending(o)
		return
	}
	for ref, timer := range o.retries {
		e.timers.Cancel(timer)
		e.unready(o, ref)
	}
	cause := run.ErrCanceled
	if why.Outcome == run.OutcomeTimedOut {
		cause = run.ErrDeadline
	}
	for _, a := range o.attempts {
		a.cancel(cause)
	}
	e.runnable = e.withdraw(o)
	e.advance(o)
}

// cancelPending ends a run that waits for its slot: nothing of it has started.
func (e *Engine) cancelPending(o *openRun) {
	for _, spec := range o.flow.Tasks {
		end := &run.TaskEnded{TaskRef: run.TaskRef{Task: spec.Name}, State: run.Canceled, Failure: o.run.Cancel}
		if e.record(o.event(end)) != nil {
			return
		}
	}
	e.finish(o, o.run.Cancel)
}

// withdraw takes a run's tasks off the list of runnable ones, ending them.
func (e *Engine) withdraw(o *openRun) []task {
	var kept, ended []task
	for _, t := range e.runnable {
		if t.openRun == o && t.stopping() {
			ended = append(ended, t)
		} else {
			kept = append(kept, t)
		}
	}
	for _, t := range ended {
		e.end(t, run.Canceled, o.run.Cancel)
	}
	return kept
}

// unready ends a task that waits for its next attempt.
func (e *Engine) unready(o *openRun, ref run.TaskRef) {
	delete(o.retries, ref)
	for node, spec := range o.phase.tasks {
		if spec.Name == ref.Task {
			e.end(task{o, spec, node}, run.Canceled, o.run.Cancel)
		}
	}
}

func (e *Engine) runTimedOut(o *openRun) {
	if o.run.State.Done() {
		return
	}
	e.cancel(o, &run.Failure{
		Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout,
		Message: fmt.Sprintf("the run took longer than its timeout of %s", o.flow.Timeout),
	})
}

package engine

import (
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// wants reports whether a hook runs now. A hook that began before a restart does in
// any case: its tasks have to end.
func (o *openRun) wants(s *flows.Section) bool {
	switch s.Part {
	case flows.PartOnFailure:
		return o.failure != nil && (o.failure.Outcome != run.OutcomeCanceled || o.begun(s))
	case flows.PartOnSuccess:
		return o.failure == nil || o.begun(s)
	}
	return true
}

// begun reports whether something has happened to a task of a section.
func (o *openRun) begun(s *flows.Section) bool {
	return slices.ContainsFunc(s.Tasks, func(spec *flows.Task) bool {
		t := o.run.Task(run.TaskRef{Task: spec.Name})
		return t != nil && t.State != run.Waiting
	})
}

// phaseFailure is the failure of the first task or group outside any group that
// failed; nil if none did.
func (o *openRun) phaseFailure() *run.Failure {
	var first *run.TaskRun
	for node := range o.phase.nodes {
		n := &o.phase.nodes[node]
		if n.Parent != nil || n.Group != nil && !n.End {
			continue
		}
		state := o.stateOf(node)
		if o.failing(node, state) && (first == nil || o.failedAt(state).Before(o.failedAt(first))) {
			first = state
		}
	}
	if first == nil {
		return nil
	}
	return failureIn(first)
}

// stopFinally ends the tasks of finally, which a cancellation of their run does not
// end.
func (e *executor) stopFinally(o *openRun, why *run.Failure) {
	if o.busy() {
		o.interrupt(func() { e.stopFinally(o, why) })
		return
	}
	for _, spec := range o.phase.tasks {
		if o.run.State.Done() {
			return
		}
		// A task that has ended meanwhile, or is ending, stays as it is.
		e.cancelTask(o, run.TaskRef{Task: spec.Name}, why)
	}
}

func (e *executor) finallyTimedOut(o *openRun, limit fmt.Stringer) {
	if !o.run.State.Done() {
		e.stopFinally(o, &run.Failure{
			Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout,
			Message: fmt.Sprintf("the tasks of finally took longer than their timeout of %s", limit),
		})
	}
}

package engine

import (
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// phaseEnded goes on to the part of the flow that the end of this one asks for, or
// finishes the run.
func (e *Engine) phaseEnded(o *openRun) {
	o.judge()
	next := o.nextPart()
	if next == nil {
		e.finish(o, o.failure)
		return
	}
	e.stopCountdown(&o.deadline)
	if o.failure != nil {
		o.scope.Failed(o.failure)
	}
	o.phase = newPhase(next)
	o.holdBegun()
	if next.Part == flows.PartFinally {
		e.countDown(&o.deadline, e.now().Add(next.Timeout), func() { e.finallyTimedOut(o, next.Timeout) })
	}
	e.advance(o)
}

// judge takes note of how a part has ended. The first part that did not succeed
// decides, and a cancellation before all others.
func (o *openRun) judge() {
	switch {
	case o.run.Cancel != nil:
		o.failure = o.run.Cancel
	case o.failure == nil:
		o.failure = o.failureOfPhase()
	}
	if !o.phase.hook() && o.failure == nil {
		o.output, o.failure = o.flow.Output(o.scope)
	}
}

// nextPart is the part that runs now, nil when the run is over.
func (o *openRun) nextPart() *flows.Section {
	for _, s := range o.flow.Sections[1+slices.IndexFunc(o.flow.Sections, o.phase.of):] {
		if o.wants(s) {
			return s
		}
	}
	return nil
}

// of reports whether the phase is that of a section.
func (p *phase) of(s *flows.Section) bool { return p.part == s.Part }

// wants reports whether a hook runs after what has happened so far. One that had
// begun before a restart does in any case: its tasks have to end.
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

// failureOfPhase is that of the first task or group that failed, of those that are
// in no group; nil when all went well.
func (o *openRun) failureOfPhase() *run.Failure {
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

// stopFinally ends the tasks of finally, which do not end with their run.
func (e *Engine) stopFinally(o *openRun, why *run.Failure) {
	for _, spec := range o.phase.tasks {
		if o.run.State.Done() {
			return
		}
		// What has ended meanwhile, or is ending, is left alone.
		e.cancelTask(o, run.TaskRef{Task: spec.Name}, why)
	}
}

func (e *Engine) finallyTimedOut(o *openRun, limit fmt.Stringer) {
	if !o.run.State.Done() {
		e.stopFinally(o, &run.Failure{
			Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout,
			Message: fmt.Sprintf("the tasks of finally took longer than their timeout of %s", limit),
		})
	}
}

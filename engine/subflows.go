package engine

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/flowhost/flowhost/engine/internal/rerun"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// An attempt of a task that runs a flow is itself a run. It begins in one commit with
// the attempt and ends in one with it, so that neither is ever seen without the other.
// It takes no worker and belongs to an accepted run, so nothing that might wait for its
// parent can delay it.

// children starts and ends the runs of sub-flows.
type children struct {
	exec   *executor
	starts []task // tasks that may start a sub-flow, which needs no worker
}

// maxNested bounds the nesting of runs, the outermost included: flows may run each
// other, and it cannot be known beforehand whether that ends.
const maxNested = 32

// withdraw removes the tasks that match and have not started.
func (c *children) withdraw(match func(task) bool) []task {
	var out []task
	c.starts = slices.DeleteFunc(c.starts, func(t task) bool {
		if match(t) {
			out = append(out, t)
			return true
		}
		return false
	})
	return out
}

// start starts the sub-flow runs that may start.
func (c *children) start() {
	for len(c.starts) > 0 && !c.exec.draining && !c.exec.commits.congested() && c.exec.fault == nil {
		t := c.starts[0]
		c.starts[0] = task{}
		c.starts = c.starts[1:]
		c.begin(t)
	}
}

// begin makes a task's next attempt. As for a function, the input is evaluated
// once.
func (c *children) begin(t task) {
	t.openRun.beginning = append(t.beginning, beginning{task: t})
	t.whenIdle(func() { c.prepare(t) })
}

func (c *children) prepare(t task) {
	if !t.begins() { // withdrawn
		return
	}
	next := &childStart{started: &run.ChildStarted{TaskRef: t.ref(), Attempt: 1}}
	state := t.state()
	first := state == nil || state.Attempts == 0
	if !first {
		next.started.Attempt, next.input = state.Attempts+1, state.Input
	}
	c.exec.evaluations.evaluate(t.openRun, func(units int) bool { return t.tryChild(next, first, units) }, func() {
		if failure := t.nextChild(next); failure != nil {
			next.failure = failure
		}
		c.admitted(t, next)
	}, func() { c.prepare(t) })
}

// admitted starts the run of a sub-flow whose flow has admitted it, if it may start.
func (c *children) admitted(t task, next *childStart) {
	failure := next.failure
	switch {
	case c.exec.draining: // it starts after the restart
		t.begun()
		return
	case failure != nil:
	case c.exec.overLimit(t.spec.Child, t.backfill, next.child.Concurrency):
		c.refuse(t, next.started)
		return
	case !t.begins(): // withdrawn, by the end of a run that was canceled in favor of this one
		return
	default:
		failure = c.record(t, next)
	}
	t.begun()
	if failure != nil {
		c.exec.end(t, run.Failed, failure)
		c.exec.advance(t.openRun)
		return
	}
	if c.exec.fault == nil {
		o := c.exec.newOpenRun(c.exec.shard.Runs[next.started.Child], t.spec.Child)
		c.armDeadline(t, o)
		c.exec.enter(o)
	}
}

// childStart is what is recorded for an attempt that is a run.
type childStart struct {
	started   *run.ChildStarted
	input     json.RawMessage // recorded with the first attempt only
	admission *flows.Admission
	failure   *run.Failure // instead of a start
	child     *run.Submitted
	reused    []*run.TaskReused // that the run carries over from the run that it continues
}

// tryChild evaluates the input of a sub-flow's run and lets the flow admit it, as
// [evaluations.try] does.
func (t task) tryChild(next *childStart, first bool, units int) (enough bool) {
	next.failure = nil
	if first {
		defer t.lookAt()()
		if !t.scope.Try(units, func() { next.input, next.failure = t.spec.Input(t.scope) }) {
			return false
		}
		next.started.Input = next.input
	}
	if next.failure != nil || depth(t.run)+1 >= maxNested {
		return true
	}
	var err error
	next.admission, enough, err = t.spec.TryAdmit(units, t.run, next.input)
	if err != nil {
		next.failure = &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeExpression, Message: "input: " + err.Error()}
	}
	return enough
}

// nextChild completes what is recorded for the start.
func (t task) nextChild(next *childStart) *run.Failure {
	parent := &run.Parent{Run: t.run.ID, TaskRef: t.ref(), Depth: depth(t.run) + 1}
	switch {
	case next.failure != nil:
		return next.failure
	case parent.Depth >= maxNested:
		return &run.Failure{
			Outcome: run.OutcomeRejected, Code: run.CodeNesting,
			Message: fmt.Sprintf("%d runs are nested, which is the limit, and a run of %s would be one more: flows that run each other must end", maxNested, t.spec.Flow),
		}
	}
	next.child = &run.Submitted{
		Flow: t.spec.Flow, Definition: t.run.Definition, Trigger: next.admission.Trigger,
		Params: next.admission.Params, Concurrency: next.admission.Concurrency, Parent: parent,
	}
	if earlier := t.continues(next.admission.Params); earlier != nil {
		var err error
		next.child.RetryOf, next.child.Attempt, next.reused = earlier.Run, earlier.Attempt, earlier.Reused
		if next.child.Continuation, err = earlier.Continuation.Encode(); err != nil {
			return &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeExpression, Message: "what the run is to continue: " + err.Error()}
		}
	}
	return nil
}

// depth is the number of runs around a run.
func depth(r *run.Run) int {
	if r.Parent == nil {
		return 0
	}
	return r.Parent.Depth
}

func (c *children) record(t task, next *childStart) *run.Failure {
	at, started := c.exec.clock.now(), next.started
	started.Child = c.exec.newID(at)
	events := []run.Event{{Run: t.run.ID, At: at, Data: started}, {Run: started.Child, At: at, Data: next.child}}
	for _, data := range rerun.Events(next.reused) {
		events = append(events, run.Event{Run: started.Child, At: at, Data: data})
	}
	err := fits(started.Input)
	if err == nil {
		err = c.exec.commits.record(events...)
	}
	if size := (*SizeError)(nil); errors.As(err, &size) {
		return &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeInputSize, Message: "the input: " + size.Error()}
	}
	return nil
}

// refuse records, in one commit, an attempt that found the flow at its limit.
func (c *children) refuse(t task, would *run.ChildStarted) {
	lost := 0
	if state := t.state(); state != nil {
		lost = state.Lost
	}
	c.exec.endOfAttempt(t, would.Attempt, lost, run.Result{Outcome: run.OutcomeRejected, Failure: &run.Failure{
		Outcome: run.OutcomeRejected, Code: run.CodeConcurrency, Retryable: true,
		Message: fmt.Sprintf("flow %s is at its concurrency limit, and its on_limit is %s", t.spec.Flow, flows.LimitSkip),
	}}, func(end *run.AttemptFinished) {
		if !t.begins() { // withdrawn
			return
		}
		t.begun()
		started := &run.AttemptStarted{TaskRef: would.TaskRef, Attempt: would.Attempt, Input: would.Input}
		if failure := c.exec.recordStart(t, started, t.event(end)); failure != nil {
			c.exec.end(t, run.Failed, failure)
		} else if c.exec.fault == nil {
			c.exec.attemptOver(t, end)
		}
		c.exec.advance(t.openRun)
	})
}

// armDeadline bounds the time of a run by the timeout of its task.
func (c *children) armDeadline(t task, o *openRun) {
	if limit := t.spec.Timeout; limit > 0 {
		c.exec.clock.countDown(&o.parentDeadline, o.run.CreatedAt.Add(limit), func() { c.timedOut(o, limit) })
	}
}

// timedOut stops a run that takes longer than its task allows. The tasks of hooks
// have timeouts of their own, as after a timeout of the run itself.
func (c *children) timedOut(o *openRun, limit fmt.Stringer) {
	if o.run.State.Done() || o.phase.over() {
		return
	}
	c.exec.cancel(o, &run.Failure{
		Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout, Retryable: true,
		Message: fmt.Sprintf("it took longer than the timeout of its task, %s", limit),
	})
}

// stopAll cancels the runs that are attempts of matching tasks. The tasks of
// their finally end by themselves, and after a timeout those of all hooks.
func (c *children) stopAll(o *openRun, why *run.Failure, match func(run.TaskRef) bool) {
	for _, t := range o.run.Tasks {
		if t.State == run.Running && t.Child != "" && match(t.TaskRef) {
			c.stop(c.exec.open[t.Child], why)
		}
	}
}

func (c *children) stop(o *openRun, why *run.Failure) {
	switch {
	case o == nil || o.phase.part == flows.PartFinally:
	case why.Outcome == run.OutcomeTimedOut && o.phase.over():
	default:
		c.exec.cancel(o, why)
	}
}

// parentTask is the task of which a run is the current attempt, if there is one.
func (c *children) parentTask(r *run.Run) (task, bool) {
	if r.Parent == nil {
		return task{}, false
	}
	parent := c.exec.open[r.Parent.Run]
	if parent == nil {
		return task{}, false
	}
	t, ok := parent.task(r.Parent.TaskRef)
	if !ok {
		return task{}, false
	}
	state := t.state()
	return t, state != nil && state.State == run.Running && state.Child == r.ID
}

// resultOf translates the end of a run into the result of its parent's attempt. A
// timeout may be retried, as for a function; a lost host was already handled inside
// the run.
func (c *children) resultOf(r *run.Run, end *run.Finished) run.Result {
	took := c.exec.clock.now().Sub(r.CreatedAt)
	if end.Failure == nil {
		return run.Result{Outcome: run.OutcomeSucceeded, Output: end.Output, Duration: took}
	}
	f := *end.Failure
	f.Message, f.Task, f.Key = childFailure(r, end.Failure), "", ""
	switch f.Outcome {
	case run.OutcomeLost:
		f.Outcome, f.Retryable = run.OutcomeFailed, true
	case run.OutcomeTimedOut:
		f.Retryable = true
	}
	return run.Result{Outcome: f.Outcome, Failure: &f, Duration: took}
}

// childFailure names the run and the task that failed. Of nested runs these are the
// innermost ones, where the reason is.
func childFailure(r *run.Run, f *run.Failure) string {
	failed := run.TaskRef{Task: f.Task, Key: f.Key}
	switch t := r.Task(failed); {
	case f.Task == "":
		return fmt.Sprintf("run %s of %s: %s", r.ID, r.Flow, f.Message)
	case t != nil && t.Child != "":
		return f.Message
	}
	end := "failed"
	if f.Outcome == run.OutcomeCanceled {
		end = "was canceled"
	}
	return fmt.Sprintf("run %s of %s %s in task %s: %s", r.ID, r.Flow, end, failed.Label(), f.Message)
}

// resumeRunning continues a task that was running when the previous process ended.
func (e *executor) resumeRunning(t task) {
	if t.spec.Child == nil || e.shard.Runs[t.state().Child] == nil {
		e.recordLost(t)
	} // otherwise the run continues, and the task with it
}

// reattach connects the runs of sub-flows with their tasks after a restart. It
// stops the runs whose task was stopped or could not be continued.
func (c *children) reattach() {
	var children []*openRun
	for _, o := range c.exec.open {
		if o.run.Parent != nil {
			children = append(children, o)
		}
	}
	slices.SortFunc(children, func(a, b *openRun) int { return cmp.Compare(a.run.ID, b.run.ID) })
	for _, o := range children {
		t, ok := c.parentTask(o.run)
		switch {
		case o.run.State.Done():
		case !ok:
			c.stop(o, canceled(fmt.Sprintf("run %s, to which it belongs, cannot be continued", o.run.Parent.Run)))
		case t.stopped() != nil:
			c.stop(o, t.stopped())
		default:
			c.armDeadline(t, o)
		}
	}
}

// isBackfill reports whether an open run belongs to a backfill.
func (e *executor) isBackfill(id run.ID) bool {
	o := e.open[id]
	return o != nil && o.backfill
}

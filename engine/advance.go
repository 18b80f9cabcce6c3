package engine

import (
	"log/slog"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// start lets a pending run go.
func (e *Engine) start(o *openRun) {
	if e.record(o.event(&run.Started{})) == nil {
		e.resume(o)
	}
}

// resume takes up a running run wherever its recorded state stands.
func (e *Engine) resume(o *openRun) {
	o.scope = o.flow.Scope(o.run)
	if limit := o.flow.Timeout; limit > 0 {
		e.countDown(&o.deadline, o.run.StartedAt.Add(limit), func() { e.runTimedOut(o) })
	}
	o.phase = newPhase(o.flow.Section(flows.PartMain))
	o.holdBegun()
	e.advance(o)
}

// advance settles and starts all tasks that what has happened so far allows, and
// finishes the run when nothing is left.
func (e *Engine) advance(o *openRun) {
	for o.run.State == run.Running && e.fault == nil {
		nodes := o.phase.frontier.Ready()
		if len(nodes) == 0 {
			break
		}
		for _, node := range nodes {
			if o.phase.nodes[node].Group != nil {
				e.visitGroup(o, node)
			} else {
				e.visit(o.leaf(node))
			}
		}
	}
	if o.run.State == run.Running && o.phase.frontier.Done() && e.fault == nil {
		e.phaseEnded(o)
	}
}

// visit decides what becomes of a task all of whose upstream tasks are settled.
func (e *Engine) visit(t task) {
	state := t.state()
	switch {
	case state == nil || state.State == run.Waiting:
		e.decide(t)
	case state.State.Done():
		e.settled(t)
	case state.Waits():
		e.keepWaiting(t)
	case state.Items != nil && state.Reused && state.Open() == 0 && !t.tookAll():
		e.decide(t)
	case state.Items != nil:
		e.takeUpFan(t)
	default:
		e.takeUpTask(t)
	}
}

// takeUpTask goes on with a task, or an item, that has begun before a restart.
func (e *Engine) takeUpTask(t task) {
	t.hold()
	switch state := t.state(); {
	case state.State == run.Running:
		e.rejoin(t)
	case t.stopped() != nil:
		e.end(t, run.Canceled, t.stopped())
	case state.State == run.Ready:
		e.retryAt(t, state.Due)
	}
}

// decide runs, skips or fails a task by its joins and its condition.
func (e *Engine) decide(t task) {
	if why := t.stopped(); why != nil {
		e.end(t, run.Canceled, why)
		return
	}
	if verdict, failure := t.verdict(t.node, t.spec.RunOn); verdict != run.Ready {
		e.end(t, verdict, failure)
		return
	}
	wanted, failure := t.spec.When(t.scope)
	switch {
	case failure != nil:
		e.end(t, run.Failed, failure)
	case !wanted:
		e.end(t, run.Skipped, nil)
	default:
		e.letRun(t)
	}
}

// letRun lets a task go that its flow lets run.
func (e *Engine) letRun(t task) {
	if earlier := e.ahead(t); earlier != nil {
		t.follow(earlier)
		return
	}
	if t.spec.Wait != nil {
		e.beginWait(t)
		return
	}
	if state := t.state(); state != nil && state.Items != nil {
		e.takeUpFan(t)
		return
	}
	if t.spec.FanOut {
		e.expand(t)
		return
	}
	e.queue(t)
}

// queue lets a task start as soon as the groups around it have a slot and it is
// its turn.
func (e *Engine) queue(t task) {
	if s := t.full(); s != nil {
		s.waiting = append(s.waiting, t)
		return
	}
	t.hold()
	e.enqueue(t)
}

// stopped is why the task gets no further attempt, nil while it may have one.
func (t task) stopped() *run.Failure {
	if t.stopping() {
		return t.run.Cancel
	}
	if state := t.state(); state != nil && state.Cancel != nil {
		return state.Cancel
	}
	if t.item != nil {
		return t.whole().stopped()
	}
	return nil
}

// stopping reports whether the task may not start because its run is being
// canceled. The tasks of hooks still run after a run whose time was up, those of
// finally in any case.
func (t task) stopping() bool {
	cancel := t.run.Cancel
	return cancel != nil && t.phase.part != flows.PartFinally && (!t.phase.hook() || cancel.Outcome == run.OutcomeCanceled)
}

// end records the end of a task that gets no (further) attempt.
func (e *Engine) end(t task, state run.State, failure *run.Failure) {
	failure = t.locate(failure)
	if e.record(t.event(&run.TaskEnded{TaskRef: t.ref(), State: state, Failure: failure})) != nil {
		return
	}
	if e.log.Enabled(e.ctx, slog.LevelDebug) {
		e.log.Debug("task "+string(state), "run", t.run.ID, "flow", t.run.Flow, "task", t.ref().Label(), failureAttr(failure))
	}
	e.settled(t)
}

// locate gives a failure the task's place in its flow file. The failure may be
// that of the whole run, and is left as it is.
func (t task) locate(failure *run.Failure) *run.Failure {
	if failure == nil || failure.At != "" {
		return failure
	}
	located := *failure
	located.At = t.spec.At()
	return &located
}

// settled makes a finished task's result visible and unblocks what waits for it.
func (e *Engine) settled(t task) {
	e.free(t)
	if t.item != nil {
		e.itemSettled(t)
		return
	}
	t.scope.Settle(t.state())
	e.unblock(t.openRun, t.node)
	e.pass(t)
	e.memberSettled(t.openRun, t.node)
}

// unblock unblocks what waits for a node.
func (e *Engine) unblock(o *openRun, node int) {
	if err := o.phase.frontier.Complete(node); err != nil {
		e.fail(err)
	}
}

// finish ends a run whose tasks are all done.
func (e *Engine) finish(o *openRun, failure *run.Failure) {
	if err := fits(o.output); err != nil && failure == nil {
		o.output, failure = nil, outputFailure(err)
	}
	end := &run.Finished{State: run.Succeeded, Output: o.output, Failure: failure}
	if end.Failure != nil {
		end.State, end.Output = run.Failed, nil
	}
	if end.Failure != nil && end.Failure.Outcome == run.OutcomeCanceled {
		end.State = run.Canceled
	}
	e.endUnused(o)
	after, err := e.recordFinished(o.run, end)
	if err != nil && e.fault == nil {
		end.State, end.Output = run.Failed, nil
		end.Failure = outputFailure(err)
		after, err = e.recordFinished(o.run, end)
	}
	if err == nil {
		e.close(o)
		e.goOn(after)
	}
}

// endUnused ends the tasks of a hook that were canceled before there was a reason
// to run it.
func (e *Engine) endUnused(o *openRun) {
	for _, t := range o.run.Tasks {
		if !t.State.Done() {
			e.record(o.event(&run.TaskEnded{TaskRef: t.TaskRef, State: run.Canceled, Failure: t.Cancel}))
		}
	}
}

func outputFailure(err error) *run.Failure {
	return &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeOutputSize, Message: "the output of the run: " + err.Error()}
}

// close forgets a finished run but for its record, which waits for the journal.
func (e *Engine) close(o *openRun) {
	if e.log.Enabled(e.ctx, slog.LevelInfo) {
		e.log.Info("run "+string(o.run.State), "run", o.run.ID, "flow", o.run.Flow,
			"took", o.run.FinishedAt.Sub(o.run.CreatedAt), failureAttr(o.run.Failure))
	}
	e.stopCountdown(&o.deadline)
	e.stopCountdown(&o.patience)
	e.finished.add(o.end, e.toldUpTo())
	end := o.end
	e.afterCommit(func() { end.settle(e.revision) })
	delete(e.open, o.run.ID)
	e.shard.Forget(o.run.ID)
	e.leave(o)
	e.unrefer(o)
	e.closed(o)
}

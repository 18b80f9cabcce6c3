package engine

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// A run is read in this order, from its request to its record:
//
//	commands.go  Submit hands the request to the loop
//	submit.go    submit, accept and admit record the run
//	advance.go   enter and start open it; advance visits the tasks that may start,
//	             decide evaluates their joins and conditions, enqueue makes them ready
//	engine.go    loop, where dispatch gives ready tasks to idle workers
//	attempts.go  begin, worker and attemptEnded: one attempt, or several with retries
//	advance.go   settled unblocks what is downstream; phaseEnded moves on to the hooks
//	finished.go  finish records the end; Wait answers once that is durable
//	commits.go   record, which all of these use, and the committer
//	notices.go   the notifier, which gives durable events to the observers
//
// Groups, fan-outs, waits, sub-flows, limits and schedules have files of their own.
// A plain task does not pass through them.

// enter starts a run, or queues it for the next slot that it needs.
func (e *executor) enter(o *openRun) {
	limits := o.runLimits()
	for o.held < len(limits) {
		l := limits[o.held]
		if g := e.runLimits.limiter(l.key); g.started >= l.max || g.ahead(o) > 0 {
			g.enqueue(o)
			return
		}
		e.runLimits.limiter(l.key).started++
		o.held++
	}
	e.start(o)
}

// start records that a pending run starts, and opens it.
func (e *executor) start(o *openRun) {
	if e.commits.record(o.event(&run.Started{})) == nil {
		e.resume(o)
	}
}

// resume continues a running run from its recorded state.
func (e *executor) resume(o *openRun) {
	o.scope = o.flow.Scope(o.run)
	if limit := o.flow.Timeout; limit > 0 {
		e.clock.countDown(&o.deadline, o.run.StartedAt.Add(limit), func() { e.runTimedOut(o) })
	}
	o.phase = newPhase(o.flow.Section(flows.PartMain))
	o.holdResumed()
	e.advance(o)
}

// advance settles and starts all tasks that the state of the run allows, and moves on
// when nothing is left of the phase.
func (e *executor) advance(o *openRun) {
	for o.run.State == run.Running && e.fault == nil && !o.busy() {
		node, ok := o.phase.next()
		if !ok {
			if o.phase.frontier.Done() {
				e.phaseEnded(o)
			}
			return
		}
		if o.phase.nodes[node].Group != nil {
			e.visitGroup(o, node)
		} else {
			e.visitTask(o.leaf(node))
		}
	}
}

// visitTask decides the next step of a task whose upstream tasks are all settled.
func (e *executor) visitTask(t task) {
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
		e.resumeFan(t)
	default:
		e.resumeTask(t)
	}
}

// decide runs, skips or fails a task by its joins and its condition.
func (e *executor) decide(t task) {
	if why := t.stopped(); why != nil {
		e.end(t, run.Canceled, why)
		return
	}
	if end := t.joinEnd(t.node, t.spec.RunOn); end != nil {
		e.endAs(t, *end)
		return
	}
	if !t.spec.Conditional() {
		e.admitTask(t)
		return
	}
	evaluateTask(e, t, t.spec.When, func(wanted bool, failure *run.Failure) {
		switch {
		case failure != nil:
			e.end(t, run.Failed, failure)
		case !wanted:
			e.endAs(t, run.TaskEnded{State: run.Skipped, Reason: skippedByCondition})
		default:
			e.admitTask(t)
		}
	}, func() { e.decide(t) })
}

// admitTask starts a task that its flow allows to run: as a wait, a fan-out or an
// attempt.
func (e *executor) admitTask(t task) {
	if t.overlap == flows.OverlapNode {
		if earlier := t.earlierRun(); earlier != nil {
			t.waitFor(earlier)
			return
		}
	}
	if t.spec.Wait != nil {
		e.beginWait(t)
		return
	}
	if state := t.state(); state != nil && state.Items != nil {
		e.resumeFan(t)
		return
	}
	if t.spec.FanOut {
		e.expand(t)
		return
	}
	e.queue(t)
}

// queue makes a task ready, or lets it wait for a slot of the groups around it.
func (e *executor) queue(t task) {
	if t.spec.Group != nil {
		if s := t.fullGroup(); s != nil {
			s.waiting = append(s.waiting, t)
			return
		}
		t.holdSlots()
	}
	e.enqueue(t)
}

// enqueue makes a task ready: it starts as soon as a worker is idle and its limits
// have room.
func (e *executor) enqueue(t task) {
	if t.spec.Child != nil && !e.config.Sim.replacesChild(t) {
		e.children.starts = append(e.children.starts, t)
		return
	}
	e.runnable.Push(t, t.run.Flow, t.priority(), e.limits.of(t))
}

// skippedByCondition is the reason of a task or a group whose condition is false.
const skippedByCondition = "when is false"

// joinEnd is nil when the nodes upstream allow a node to run, and otherwise how it
// ends.
func (o *openRun) joinEnd(node int, runOn flows.RunOn) *run.TaskEnded {
	n := &o.phase.nodes[node]
	if n.Parent != nil {
		switch begin := o.phase.states[n.Parent.Begin]; begin.State {
		case run.Failed:
			return &run.TaskEnded{State: run.Skipped, Failure: o.upstreamFailure(begin)}
		case run.Skipped, run.Canceled:
			return memberOf(begin)
		}
		if end := o.memberEnd(n); end != nil {
			return end
		}
	}
	return o.needsEnd(n, runOn)
}

// needsEnd is nil when the states of a node's needs allow it to run. Otherwise the node
// is skipped, with a failure if something upstream did not succeed. The failure sets
// this skip apart from one by condition, which has a reason instead: the nodes further
// downstream must not run either.
func (o *openRun) needsEnd(n *flows.Node, runOn flows.RunOn) *run.TaskEnded {
	var culprit, left *run.TaskRun
	skipped, counted := 0, 0
	for _, need := range n.Needs {
		up := o.stateOf(need.Node)
		if !need.Before {
			counted++
		}
		switch {
		case up.State == run.Succeeded || o.forgiven(need.Node, up):
		case up.State == run.Skipped && up.Failure == nil || raced(up):
			if !need.Before {
				left = up
				skipped++
			}
		case culprit == nil:
			culprit = up
		}
	}
	switch {
	case runOn == flows.RunAlways || runOn == flows.RunOnFailure && culprit != nil:
		return nil
	case runOn == flows.RunOnFailure:
		return &run.TaskEnded{State: run.Skipped, Reason: "nothing before it failed"}
	case culprit != nil:
		return &run.TaskEnded{State: run.Skipped, Failure: o.upstreamFailure(culprit)}
	case counted > 1 && skipped == counted:
		return &run.TaskEnded{State: run.Skipped, Reason: "everything before it was skipped"}
	case counted > 0 && skipped == counted:
		return &run.TaskEnded{State: run.Skipped, Reason: fmt.Sprintf("%s was %s", taskLabel(left.Task), left.State)}
	}
	return nil
}

// stateOf is the state of a node, nil while nothing has happened to it.
func (o *openRun) stateOf(node int) *run.TaskRun {
	if n := &o.phase.nodes[node]; n.Group == nil {
		return o.leaf(node).state()
	}
	return o.phase.states[node]
}

// forgiven reports whether a task has failed and counts as done.
func (o *openRun) forgiven(node int, state *run.TaskRun) bool {
	n := &o.phase.nodes[node]
	return n.Task != nil && n.Task.Continue && state.State == run.Failed
}

func (o *openRun) upstreamFailure(culprit *run.TaskRun) *run.Failure {
	return &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeUpstream, Message: taskLabel(culprit.Task) + " did not succeed"}
}

// stopped is the reason for which the task gets no further attempt, nil while it may
// have one.
func (t task) stopped() *run.Failure {
	if t.stopping() {
		return t.run.Cancel
	}
	if state := t.state(); state != nil && state.Cancel != nil {
		return state.Cancel
	}
	if t.item != nil {
		return t.fanTask().stopped()
	}
	return nil
}

// stopping reports whether the task may not start because its run is being canceled.
// After a timeout of the run the tasks of hooks still run; the tasks of finally run in
// any case.
func (t task) stopping() bool {
	cancel := t.run.Cancel
	return cancel != nil && t.phase.part != flows.PartFinally && (!t.phase.hook() || cancel.Outcome == run.OutcomeCanceled)
}

// end records the end of a task that gets no attempt, or no further one.
func (e *executor) end(t task, state run.State, failure *run.Failure) {
	e.endAs(t, run.TaskEnded{State: state, Failure: failure})
}

func (e *executor) endAs(t task, end run.TaskEnded) {
	end.TaskRef, end.Failure = t.ref(), t.locate(end.Failure)
	if e.commits.record(t.event(&end)) != nil {
		return
	}
	if e.log.Enabled(e.ctx, slog.LevelDebug) {
		e.log.Debug("task "+string(end.State), "run", t.run.ID, "flow", t.run.Flow, "task", end.Label(), failureAttr(end.Failure))
	}
	e.settled(t)
}

// locate adds the task's place in its flow file to a copy of a failure, which may be
// the failure of the whole run.
func (t task) locate(failure *run.Failure) *run.Failure {
	if failure == nil || failure.At != "" {
		return failure
	}
	located := *failure
	located.At = t.spec.At()
	return &located
}

// settled publishes the result of a task that is done and unblocks what waits for it.
func (e *executor) settled(t task) {
	if t.spec.Group != nil {
		e.freeSlots(t)
	}
	if t.item != nil {
		e.itemSettled(t)
		return
	}
	t.scope.Settle(t.state())
	e.unblock(t.openRun, t.node)
	if len(t.waiters) > 0 {
		e.releaseWaitersOf(t)
	}
	if t.spec.Group != nil {
		e.memberSettled(t.openRun, t.node)
	}
}

// unblock makes the nodes ready that waited only for this one.
func (e *executor) unblock(o *openRun, node int) {
	if err := o.phase.frontier.Complete(node); err != nil {
		e.fail(err)
	}
}

// phaseEnded evaluates the output of a flow whose main tasks have succeeded, and moves on.
func (e *executor) phaseEnded(o *openRun) {
	o.settlePhase()
	if o.phase.hook() || o.failure != nil {
		e.enterNextPart(o)
		return
	}
	if e.evaluations.tries(o) {
		trial := o.scope.BeginTrial(e.evaluations.units())
		o.output, o.failure = o.flow.Output(o.scope)
		if trial.End() {
			e.enterNextPart(o)
			return
		}
		o.output, o.failure = nil, nil
	}
	outputBeside(e, o)
}

// outputBeside evaluates an output that takes long.
func outputBeside(e *executor, o *openRun) {
	var output json.RawMessage
	var failure *run.Failure
	e.evaluations.evaluateBeside(o, func() { output, failure = o.flow.Output(o.scope) }, func() {
		o.output, o.failure = output, failure
		e.enterNextPart(o)
	}, func() { e.advance(o) })
}

// settlePhase notes how a part has ended. The first part that did not succeed decides
// the run's failure, and a cancellation before all others.
func (o *openRun) settlePhase() {
	switch {
	case o.run.Cancel != nil:
		o.failure = o.run.Cancel
	case o.failure == nil:
		o.failure = o.phaseFailure()
	}
}

// enterNextPart moves on to the part of the flow that the end of this one requires, or
// finishes the run.
func (e *executor) enterNextPart(o *openRun) {
	next := o.nextPart()
	if next == nil {
		e.finish(o, o.failure)
		return
	}
	e.clock.stopCountdown(&o.deadline)
	if o.failure != nil {
		o.scope.Failed(o.failure)
	}
	o.phase = newPhase(next)
	o.holdResumed()
	if next.Part == flows.PartFinally {
		e.clock.countDown(&o.deadline, e.clock.now().Add(next.Timeout), func() { e.finallyTimedOut(o, next.Timeout) })
	}
	e.advance(o)
}

// nextPart is the part that runs next, nil when the run is over.
func (o *openRun) nextPart() *flows.Section {
	for _, s := range o.flow.Sections[1+slices.IndexFunc(o.flow.Sections, o.phase.of):] {
		if o.wants(s) {
			return s
		}
	}
	return nil
}

// of reports whether the phase is of a section.
func (p *phase) of(s *flows.Section) bool { return p.part == s.Part }

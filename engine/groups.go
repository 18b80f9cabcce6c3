package engine

import (
	"cmp"
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// The beginnings and ends of groups are nodes of the graph, as tasks are. Their states
// follow from the tasks and are not recorded: after a restart they are computed again.

// visitGroup decides how a group begins, or how it has ended, once all nodes before
// are settled.
func (e *executor) visitGroup(o *openRun, node int) {
	n := &o.phase.nodes[node]
	if !n.End {
		e.beginGroup(o, node)
		return
	}
	end := o.groupState(n.Group)
	o.phase.states[node] = end
	o.scope.Settle(end)
	e.config.Sim.groupEnded(o, end)
	e.unblock(o, node)
	e.memberSettled(o, node)
}

// beginGroup decides whether a group begins: its beginning is Ready then, and otherwise in
// the state in which its members end.
func (e *executor) beginGroup(o *openRun, node int) {
	g := o.phase.nodes[node].Group
	begin := &run.TaskRun{TaskRef: groupRef(g), State: run.Ready}
	settle := func() {
		o.phase.states[node] = begin
		e.unblock(o, node)
	}
	if o.resumed && o.begunIn(g) { // before the restart: the group has begun whatever has ended since
		settle()
		return
	}
	if end := o.joinEnd(g.Begin, flows.RunOnSuccess); end != nil {
		begin.State, begin.Failure, begin.Reason = end.State, end.Failure, end.Reason
		settle()
		return
	}
	wanted := true
	var failure *run.Failure
	e.evaluations.evaluate(o, func(units int) bool {
		return o.scope.Try(units, func() { wanted, failure = g.When(o.scope) })
	}, func() {
		switch {
		case failure != nil:
			begin.State, begin.Failure = run.Failed, failure
		case !wanted:
			begin.State, begin.Reason = run.Skipped, skippedByCondition
		}
		settle()
	}, func() { e.beginGroup(o, node) })
}

// memberOf is how a member of a group ends that did not begin.
func memberOf(begin *run.TaskRun) *run.TaskEnded {
	end := &run.TaskEnded{State: begin.State, Failure: begin.Failure}
	if begin.Reason != "" {
		end.Reason = taskLabel(begin.Task) + " was skipped: " + begin.Reason
	}
	return end
}

// begunIn reports whether a task of a group has started.
func (o *openRun) begunIn(g *flows.Group) bool {
	return slices.ContainsFunc(g.Leaves(), func(t *flows.Task) bool {
		state := o.run.Task(run.TaskRef{Task: t.Name})
		return state != nil && !state.StartedAt.IsZero() && !state.Reused
	})
}

func groupRef(g *flows.Group) run.TaskRef { return run.TaskRef{Task: "group." + g.Name} }

// memberEnd is nil while no other member of the groups around a node has ended them, and
// otherwise how the node ends. A group from which results were carried over is past that; its members that
// were not carried over are not.
func (o *openRun) memberEnd(n *flows.Node) *run.TaskEnded {
	if n.Group != nil && o.run.RetryOf != "" && o.tookPart(n.Group) {
		return nil
	}
	for g, place := n.Parent, n.Place; g != nil; g, place = g.Parent, o.phase.nodes[g.Begin].Place {
		if !g.FirstWins() {
			continue
		}
		switch first := o.winner(g); {
		case first < 0 || first == place || o.isAskedFor(g, place):
		case g.Mode == flows.GroupRace:
			return &run.TaskEnded{State: run.Canceled, Failure: raceLost(g, first)}
		default:
			return &run.TaskEnded{State: run.Skipped, Reason: g.Members[first].Name() + " succeeded first in group " + g.Name}
		}
	}
	return nil
}

// tookPart reports whether the result of a task of a group was carried over from the
// run that this one continues.
func (o *openRun) tookPart(g *flows.Group) bool {
	return slices.ContainsFunc(g.Leaves(), func(t *flows.Task) bool {
		state := o.run.Task(run.TaskRef{Task: t.Name})
		return state != nil && state.Reused && state.State.Done() && state.State != run.Skipped
	})
}

// winner is the place of the member that succeeded first, -1 for none.
func (o *openRun) winner(g *flows.Group) int {
	first := -1
	var at *run.TaskRun
	for place, m := range g.Members {
		state := o.stateOf(m.Exit())
		if state != nil && state.State == run.Succeeded && (at == nil || state.FinishedAt.Before(at.FinishedAt)) {
			first, at = place, state
		}
	}
	return first
}

func raceLost(g *flows.Group, winner int) *run.Failure {
	return &run.Failure{
		Outcome: run.OutcomeCanceled, Code: run.CodeRace,
		Message: g.Members[winner].Name() + " was first in the race of group " + g.Name,
	}
}

// raced reports whether a task was canceled because another one was faster, as the
// flow intends.
func raced(state *run.TaskRun) bool {
	lost := func(f *run.Failure) bool { return f != nil && f.Code == run.CodeRace }
	return state.State == run.Canceled && (lost(state.Failure) || lost(state.Cancel))
}

// groupState is the state of a group whose members are all done.
func (o *openRun) groupState(g *flows.Group) *run.TaskRun {
	end := &run.TaskRun{TaskRef: groupRef(g), State: run.Skipped}
	states := make([]*run.TaskRun, len(g.Members))
	for i, m := range g.Members {
		states[i] = o.stateOf(m.Exit())
		if s := states[i].StartedAt; !s.IsZero() && (end.StartedAt.IsZero() || s.Before(end.StartedAt)) {
			end.StartedAt = s
		}
		f := states[i].FinishedAt
		if raced(states[i]) { // after the winner, also where the clock did not advance
			f = f.Add(time.Nanosecond)
		}
		if f.After(end.FinishedAt) {
			end.FinishedAt = f
		}
	}
	if begin := o.phase.states[g.Begin]; begin.State != run.Ready {
		end.State, end.Failure = begin.State, begin.Failure
		return end
	}
	if first := -1; g.Mode == flows.GroupFirstSuccess || g.Mode == flows.GroupRace {
		if first = o.winner(g); first >= 0 {
			end.State, end.Outcome, end.FinishedAt = run.Succeeded, run.OutcomeSucceeded, states[first].FinishedAt
			return end
		}
	}
	o.foldMembers(g, states, end)
	return end
}

// foldMembers derives the state of a group in which no single member decides: from the
// first member that failed, or that could not run, or from all.
func (o *openRun) foldMembers(g *flows.Group, states []*run.TaskRun, end *run.TaskRun) {
	var failed, blocked *run.TaskRun
	for i, state := range states {
		switch {
		case o.failing(g.Members[i].Exit(), state):
			if failed == nil || o.failedAt(state).Before(o.failedAt(failed)) {
				failed = state
			}
		case state.State == run.Skipped && state.Failure != nil:
			blocked = cmp.Or(blocked, state)
		case state.State == run.Succeeded || o.forgiven(g.Members[i].Exit(), state):
			end.State, end.Outcome = run.Succeeded, run.OutcomeSucceeded
		}
	}
	switch {
	case failed != nil:
		end.State, end.Failure = failed.State, failureIn(failed)
		end.Outcome = end.Failure.Outcome
	case blocked != nil:
		end.State, end.Outcome, end.Failure = run.Skipped, "", blocked.Failure
	}
}

// failing reports whether a node that is done makes the group or phase around it fail.
func (o *openRun) failing(node int, state *run.TaskRun) bool {
	return (state.State == run.Failed || state.State == run.Canceled) && !o.forgiven(node, state) && !raced(state)
}

// failedAt is when the cause of a failure failed: a group continues until all of its
// members are done.
func (o *openRun) failedAt(state *run.TaskRun) time.Time {
	name := failureIn(state).Task
	if task := o.run.Task(run.TaskRef{Task: name}); task != nil {
		return task.FinishedAt
	}
	for node, n := range o.phase.nodes {
		if n.End && groupRef(n.Group).Task == name {
			return o.phase.states[node].FinishedAt
		}
	}
	return state.FinishedAt
}

// failureIn is the failure of a node that is done, with the task that caused it.
func failureIn(state *run.TaskRun) *run.Failure {
	failure := *state.Failure
	if state.Cancel != nil && state.Cancel.Outcome == state.Outcome { // and not a failure of the task itself
		failure = *state.Cancel
	}
	if failure.Task == "" {
		failure.Task = state.Task
	}
	return &failure
}

// memberSettled ends the race of a group when a member has succeeded.
func (e *executor) memberSettled(o *openRun, node int) {
	n := &o.phase.nodes[node]
	if g := n.Parent; g != nil && g.Mode == flows.GroupRace && o.stateOf(node).State == run.Succeeded {
		e.stopRace(o, g)
	}
}

// stopRace cancels the running tasks of the members that were not first. The others
// end when it is their turn.
func (e *executor) stopRace(o *openRun, g *flows.Group) {
	first := o.winner(g)
	for place, m := range g.Members {
		if place == first || o.isAskedFor(g, place) {
			continue
		}
		for _, spec := range leavesOf(m) {
			e.stopLeaf(o, run.TaskRef{Task: spec.Name}, raceLost(g, first))
		}
	}
}

func leavesOf(m flows.Member) []*flows.Task {
	if m.Group != nil {
		return m.Group.Leaves()
	}
	return []*flows.Task{m.Task}
}

// stopLeaf cancels a task if anything of it runs or waits.
func (e *executor) stopLeaf(o *openRun, ref run.TaskRef, why *run.Failure) {
	state := o.run.Task(ref)
	if state != nil && (state.State.Done() || state.Cancel != nil) || e.fault != nil {
		return
	}
	if state != nil && state.State != run.Waiting {
		if e.commits.record(o.event(&run.TaskCancelRequested{TaskRef: ref, Failure: why})) != nil {
			return
		}
	}
	e.stopTask(o, ref, why)
}

// groupLimiter bounds how many tasks of a group run at once.
type groupLimiter struct {
	group   *flows.Group
	used    int
	waiting []task
}

// fullGroup is the first of the groups around a task that has no slot for it, nil if
// all have one.
func (t task) fullGroup() *groupLimiter {
	for g := t.spec.Group; g != nil; g = g.Parent {
		if s := t.phase.groupLimiters[g]; g.MaxParallel > 0 && s != nil && s.used >= g.MaxParallel {
			return s
		}
	}
	return nil
}

// holdSlots takes a slot of each group around a task, until the task is done.
func (t task) holdSlots() {
	if t.phase.holding[t.ref()] {
		return
	}
	for g := t.spec.Group; g != nil; g = g.Parent {
		if g.MaxParallel == 0 {
			continue
		}
		p := &t.openRun.phase
		if p.groupLimiters == nil {
			p.groupLimiters, p.holding = map[*flows.Group]*groupLimiter{}, map[run.TaskRef]bool{}
		}
		if p.groupLimiters[g] == nil {
			p.groupLimiters[g] = &groupLimiter{group: g}
		}
		p.groupLimiters[g].used++
		p.holding[t.ref()] = true
	}
}

// holdResumed takes slots for the tasks that began before a restart: nothing else may
// take them before.
func (o *openRun) holdResumed() {
	bounded := func(n flows.Node) bool { return n.Group != nil && n.Group.MaxParallel > 0 }
	if !slices.ContainsFunc(o.phase.nodes, bounded) {
		return
	}
	for _, state := range o.run.Tasks {
		spec := o.flow.Task(state.Task)
		if state.Attempts == 0 || state.State.Done() || !o.phase.holds(spec) {
			continue
		}
		t := o.leaf(spec.Node)
		if state.Key != "" {
			t.item = &item{Item: run.Item{Key: state.Key}, state: state}
		}
		t.holdSlots()
	}
}

// freeSlots gives the slots of a task that is done to the tasks that wait for them.
func (e *executor) freeSlots(t task) {
	if !t.phase.holding[t.ref()] {
		return
	}
	delete(t.phase.holding, t.ref())
	for g := t.spec.Group; g != nil; g = g.Parent {
		s := t.phase.groupLimiters[g]
		if s == nil {
			continue
		}
		s.used--
		for len(s.waiting) > 0 && s.used < g.MaxParallel {
			next := s.waiting[0]
			s.waiting = s.waiting[1:]
			e.queue(next)
		}
	}
}

package engine

import (
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// groupLimiter bounds how many tasks of a group run at once.
type groupLimiter struct {
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
			p.groupLimiters[g] = new(groupLimiter)
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

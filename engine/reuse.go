package engine

import (
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// reusable is what a run takes over from an earlier one.
func (b *predecessor) reusable(f *flows.Flow, how run.RerunOptions) (*reuse, error) {
	r := newReuse(f, b)
	if how.Task.Task != "" {
		return r, r.allBut(f, how)
	}
	r.allThatCounts()
	return r, nil
}

func newReuse(f *flows.Flow, b *predecessor) *reuse {
	r := &reuse{
		section: f.Section(flows.PartMain), children: b.children,
		before: make(map[string]*run.TaskRecord, len(b.run.Tasks)), items: map[string][]*run.TaskRecord{},
	}
	r.settled = make([]bool, len(r.section.Nodes))
	for i := range b.run.Tasks {
		if t := &b.run.Tasks[i]; t.Key == nil {
			r.before[t.Task] = t
		} else {
			r.items[t.Task] = append(r.items[t.Task], t)
		}
	}
	return r
}

// reuse collects what a run takes over from another one.
type reuse struct {
	section  *flows.Section
	before   map[string]*run.TaskRecord   // of tasks
	items    map[string][]*run.TaskRecord // of fan-outs
	children map[run.ID]*run.Record       // of sub-flows
	settled  []bool                       // by node: taken over, or skipped by the flow's wiring

	reused []*run.TaskReused
	run.Continuation
}

// record is that of a task, or item, nil for none.
func (r *reuse) record(ref run.TaskRef) *run.TaskRecord {
	if ref.Key == "" {
		return r.before[ref.Task]
	}
	for _, item := range r.items[ref.Task] {
		if *item.Key == ref.Key {
			return item
		}
	}
	return nil
}

func (r *reuse) add(t *run.TaskReused) { r.reused = append(r.reused, t) }

// allThatCounts takes over the tasks that succeeded, are still part of the flow and
// depend on nothing that will be run again: what a rescue did after a failure that is
// tried again does not count. Of a fan-out that did not succeed, these are the items
// that did; of the run of a sub-flow, its tasks in the same way.
func (r *reuse) allThatCounts() {
	for _, node := range r.section.Graph.Order() {
		r.settled[node] = r.settle(node)
	}
}

// settle takes over what has become of a node, if it still counts, and reports
// whether what comes after it may be taken over, too.
func (r *reuse) settle(node int) bool {
	n := &r.section.Nodes[node]
	if n.End && n.Group.Mode != flows.GroupParallel && n.Group.Mode != flows.GroupSerial {
		return slices.ContainsFunc(n.Group.Members, func(m flows.Member) bool { return r.settled[m.Exit()] && r.succeeded(m) })
	}
	upstream := r.section.Graph.Upstream(node)
	if n.Parent != nil && n.Parent.Mode == flows.GroupFirstSuccess {
		upstream = []int{n.Parent.Begin} // those before it did not succeed, or it was not run
		for _, need := range n.Needs {
			upstream = append(upstream, need.Node)
		}
	}
	if slices.ContainsFunc(upstream, func(up int) bool { return !r.settled[up] }) {
		return false
	}
	if n.Group != nil {
		return true
	}
	t := r.before[n.Task.Name]
	switch {
	case t == nil:
		return false
	case t.State == run.Skipped && t.Error == nil:
		return true
	case !n.Task.FanOut && r.forgiven(n.Task), t.State == run.Failed && r.won(n.Parent):
		r.add(&run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, State: t.State, Failure: t.Error})
		return true
	case r.inItems(n.Task, t):
		return r.fan(n.Task, t)
	case t.State == run.Succeeded:
		r.add(&run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, Output: t.Output})
		return true
	}
	r.continueChild(n.Task, t)
	return false
}

// succeeded reports whether a member of a group did in the earlier run.
func (r *reuse) succeeded(m flows.Member) bool { return r.ended(m) == run.Succeeded }

// ended is how a member of a group ended in the earlier run: succeeded, skipped by
// the flow's wiring, or failed, which all else counts as. That of a group follows
// from its members, as it did then.
func (r *reuse) ended(m flows.Member) run.State {
	if m.Group == nil {
		return r.taskEnded(m.Task)
	}
	won, well, bad := false, false, false
	for _, inner := range m.Group.Members {
		switch state := r.ended(inner); {
		case state == run.Succeeded:
			won, well = true, true
		case inner.Task != nil && r.forgiven(inner.Task):
			well = true
		case state == run.Failed:
			bad = true
		}
	}
	switch {
	case won && m.Group.FirstWins(), well && !bad:
		return run.Succeeded
	case bad:
		return run.Failed
	}
	return run.Skipped
}

func (r *reuse) taskEnded(spec *flows.Task) run.State {
	switch t := r.before[spec.Name]; {
	case t == nil:
		return run.Failed
	case t.State == run.Succeeded:
		return run.Succeeded
	case t.State == run.Skipped && t.Error == nil, t.State == run.Canceled && t.Error != nil && t.Error.Code == run.CodeRace:
		return run.Skipped
	}
	return run.Failed
}

// forgiven reports whether a task has failed and counts as done.
func (r *reuse) forgiven(spec *flows.Task) bool {
	t := r.before[spec.Name]
	return t != nil && t.State == run.Failed && spec.Continue
}

// won reports whether a group around a task, in which one success is enough, had it:
// what failed there need not be run again.
func (r *reuse) won(g *flows.Group) bool {
	for ; g != nil; g = g.Parent {
		if g.Mode == flows.GroupFirstSuccess && slices.ContainsFunc(g.Members, r.succeeded) {
			return true
		}
	}
	return false
}

// inItems reports whether a fan-out is taken over item by item. One that succeeded is
// not, if the flow has changed so that it would have to run again: when items that
// failed count as a failure now.
func (r *reuse) inItems(spec *flows.Task, t *run.TaskRecord) bool {
	failed := func(item *run.TaskRecord) bool { return item.State != run.Succeeded }
	return spec.FanOut && t.Items != nil && (t.State != run.Succeeded || spec.Continue || !slices.ContainsFunc(r.items[t.Task], failed))
}

// fan takes over the items of a fan-out that need not be run again.
func (r *reuse) fan(spec *flows.Task, t *run.TaskRecord) bool {
	r.add(&run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, State: run.Running, Items: t.Items})
	for _, item := range r.items[t.Task] {
		reused := &run.TaskReused{TaskRef: run.TaskRef{Task: t.Task, Key: *item.Key}, State: item.State}
		switch {
		case item.State == run.Succeeded:
			reused.Output = item.Output
		case t.State == run.Succeeded:
			reused.Failure = item.Error
		default:
			r.continueChild(spec, item)
			continue
		}
		r.add(reused)
	}
	return t.State == run.Succeeded
}

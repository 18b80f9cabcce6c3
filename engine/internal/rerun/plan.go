package rerun

import (
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Predecessor is the run that is made again, with those runs of its sub-flows that the
// request concerns.
type Predecessor struct {
	Run      *run.Record
	Children map[run.ID]*run.Record
}

// Plan gives what a new run of the flow carries over.
func (b *Predecessor) Plan(f *flows.Flow, how run.RerunOptions) (*Plan, error) {
	p := newPlan(f, b)
	if how.Task.Task != "" {
		return p, p.allBut(f, how)
	}
	p.allThatCounts()
	return p, nil
}

func newPlan(f *flows.Flow, b *Predecessor) *Plan {
	p := &Plan{
		section: f.Section(flows.PartMain), children: b.Children,
		before: make(map[string]*run.TaskRecord, len(b.Run.Tasks)), items: map[string][]*run.TaskRecord{},
	}
	p.settled = make([]bool, len(p.section.Nodes))
	for i := range b.Run.Tasks {
		if t := &b.Run.Tasks[i]; t.Key == nil {
			p.before[t.Task] = t
		} else {
			p.items[t.Task] = append(p.items[t.Task], t)
		}
	}
	return p
}

// Plan is what a run carries over from an earlier one.
type Plan struct {
	section  *flows.Section
	before   map[string]*run.TaskRecord   // of tasks
	items    map[string][]*run.TaskRecord // of fan-outs
	children map[run.ID]*run.Record       // of sub-flows
	settled  []bool                       // by node: carried over, or skipped by the flow's wiring

	Reused []*run.TaskReused
	run.Continuation
}

// record is the record of a task or an item, nil for none.
func (p *Plan) record(ref run.TaskRef) *run.TaskRecord {
	if ref.Key == "" {
		return p.before[ref.Task]
	}
	for _, item := range p.items[ref.Task] {
		if *item.Key == ref.Key {
			return item
		}
	}
	return nil
}

func (p *Plan) add(t *run.TaskReused) { p.Reused = append(p.Reused, t) }

// allThatCounts carries over the tasks that succeeded, are still part of the flow and
// depend on nothing that will run again: a rescue of a failure that is retried does
// not count. A fan-out that did not succeed carries over the items that did, and the
// run of a sub-flow its tasks in the same way.
func (p *Plan) allThatCounts() {
	for _, node := range p.section.Graph.Order() {
		p.settled[node] = p.settle(node)
	}
}

// settle carries over the result of a node if it still counts, and reports whether
// the nodes after it may be carried over, too.
func (p *Plan) settle(node int) bool {
	n := &p.section.Nodes[node]
	if n.End && n.Group.Mode != flows.GroupParallel && n.Group.Mode != flows.GroupSerial {
		return slices.ContainsFunc(n.Group.Members, func(m flows.Member) bool { return p.settled[m.Exit()] && p.succeeded(m) })
	}
	upstream := p.section.Graph.Upstream(node)
	if n.Parent != nil && n.Parent.Mode == flows.GroupFirstSuccess {
		upstream = []int{n.Parent.Begin} // the members before it did not succeed, or it did not run
		for _, need := range n.Needs {
			upstream = append(upstream, need.Node)
		}
	}
	if slices.ContainsFunc(upstream, func(up int) bool { return !p.settled[up] }) {
		return false
	}
	if n.Group != nil {
		return true
	}
	t := p.before[n.Task.Name]
	switch {
	case t == nil:
		return false
	case t.State == run.Skipped && t.Error == nil:
		return true
	case !n.Task.FanOut && p.forgiven(n.Task), t.State == run.Failed && p.won(n.Parent):
		p.add(&run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, State: t.State, Failure: t.Error})
		return true
	case p.inItems(n.Task, t):
		return p.fan(n.Task, t)
	case t.State == run.Succeeded:
		p.add(&run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, Output: t.Output})
		return true
	}
	p.continueChild(n.Task, t)
	return false
}

// succeeded reports whether a member of a group succeeded in the earlier run.
func (p *Plan) succeeded(m flows.Member) bool { return p.ended(m) == run.Succeeded }

// ended is how a member of a group ended in the earlier run: succeeded, skipped by
// the flow's wiring, or failed, which every other state counts as. The end of a group
// follows from its members, as it did then.
func (p *Plan) ended(m flows.Member) run.State {
	if m.Group == nil {
		return p.taskEnded(m.Task)
	}
	won, well, bad := false, false, false
	for _, inner := range m.Group.Members {
		switch state := p.ended(inner); {
		case state == run.Succeeded:
			won, well = true, true
		case inner.Task != nil && p.forgiven(inner.Task):
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

func (p *Plan) taskEnded(spec *flows.Task) run.State {
	switch t := p.before[spec.Name]; {
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
func (p *Plan) forgiven(spec *flows.Task) bool {
	t := p.before[spec.Name]
	return t != nil && t.State == run.Failed && spec.Continue
}

// won reports whether a group around a task in which one success is enough had one:
// what failed in it need not run again.
func (p *Plan) won(g *flows.Group) bool {
	for ; g != nil; g = g.Parent {
		if g.Mode == flows.GroupFirstSuccess && slices.ContainsFunc(g.Members, p.succeeded) {
			return true
		}
	}
	return false
}

// inItems reports whether a fan-out is carried over item by item. A fan-out that
// succeeded is not if it would have to run again because the flow has changed: items
// that failed count as a failure now.
func (p *Plan) inItems(spec *flows.Task, t *run.TaskRecord) bool {
	failed := func(item *run.TaskRecord) bool { return item.State != run.Succeeded }
	return spec.FanOut && t.Items != nil && (t.State != run.Succeeded || spec.Continue || !slices.ContainsFunc(p.items[t.Task], failed))
}

// fan carries over the items of a fan-out that need not run again.
func (p *Plan) fan(spec *flows.Task, t *run.TaskRecord) bool {
	p.add(&run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, State: run.Running, Items: t.Items})
	for _, item := range p.items[t.Task] {
		reused := &run.TaskReused{TaskRef: run.TaskRef{Task: t.Task, Key: *item.Key}, State: item.State}
		switch {
		case item.State == run.Succeeded:
			reused.Output = item.Output
		case t.State == run.Succeeded:
			reused.Failure = item.Error
		default:
			p.continueChild(spec, item)
			continue
		}
		p.add(reused)
	}
	return t.State == run.Succeeded
}

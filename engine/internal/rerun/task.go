package rerun

import (
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// allBut carries over everything as it was except one task or one item, and the tasks
// downstream of it if the request includes them. Tasks that had not ended are left
// out.
func (p *Plan) allBut(f *flows.Flow, how run.RerunOptions) error {
	target := how.Target()
	spec := f.Task(target.Task)
	if spec == nil || spec.Node >= len(p.section.Tasks) || p.section.Tasks[spec.Node] != spec {
		return run.Requestf(run.RequestUnknownTask, "flow %s has no task %q among its main tasks", f.Name, target.Task)
	}
	if culprit := p.culprit(spec); culprit != "" {
		return run.Requestf(run.RequestUnknownTask, "task %s depends on task %s, which did not succeed in that run: name that task instead", spec.Name, culprit)
	}
	p.Task = target
	again := p.downstream(spec.Node, how.Downstream)
	for _, t := range p.section.Tasks {
		switch {
		case t == spec && target.Key != "":
			if err := p.allItemsBut(t, target.Key); err != nil {
				return err
			}
		case !again[t.Node]:
			p.take(t)
		}
	}
	if len(how.Within) > 0 {
		return p.inside(spec, how)
	}
	return nil
}

// inside makes the run of a sub-flow run one task again and carry over all others.
func (p *Plan) inside(spec *flows.Task, how run.RerunOptions) error {
	target := how.Target()
	if spec.Child == nil {
		return run.Requestf(run.RequestUnknownTask, "task %s runs no flow, so there is no task %q in it", spec.Name, how.Inside().Target().Task)
	}
	if spec.FanOut && target.Key == "" {
		return run.Requestf(run.RequestUnknownTask, "task %s is fanned out: name the item, %s[KEY]/%s", spec.Name, spec.Name, how.Inside().Target().Task)
	}
	child := p.children[p.record(target).Child]
	if child.Flow != spec.Flow {
		return run.Requestf(run.RequestUnknownTask, "task %s runs flow %s, and ran %s in that run", spec.Name, spec.Flow, child.Flow)
	}
	inner, err := (&Predecessor{Run: child, Children: p.children}).Plan(spec.Child, how.Inside())
	if err == nil {
		p.Within = append(p.Within, run.ContinuedChild{
			TaskRef: target, Run: child.Run, Attempt: child.NextAttempt(), Reused: inner.Reused, Continuation: &inner.Continuation,
		})
	}
	return err
}

// culprit is an upstream task that keeps a task from running, empty for none.
func (p *Plan) culprit(spec *flows.Task) string {
	if spec.RunOn != flows.RunOnSuccess {
		return ""
	}
	for _, need := range p.section.Nodes[spec.Node].Needs {
		up := p.section.Nodes[need.Node].Task
		if up == nil {
			continue
		}
		t := p.before[up.Name]
		fine := t != nil && (t.State == run.Succeeded || t.State == run.Skipped && t.Error == nil || t.State == run.Failed && up.Continue)
		if !fine {
			return up.Name
		}
	}
	return ""
}

// downstream marks a node and, if all is set, the nodes that depend on it.
func (p *Plan) downstream(node int, all bool) []bool {
	marked := make([]bool, len(p.section.Nodes))
	marked[node] = true
	if !all {
		return marked
	}
	for _, n := range p.section.Graph.Order() {
		for _, up := range p.section.Graph.Upstream(n) {
			marked[n] = marked[n] || marked[up]
		}
	}
	return marked
}

// take carries over how a task ended, in whatever state.
func (p *Plan) take(spec *flows.Task) {
	t := p.before[spec.Name]
	ref := run.TaskRef{Task: spec.Name}
	switch {
	case t == nil || !t.State.Done():
		p.add(&run.TaskReused{TaskRef: ref, State: run.Skipped, Failure: leftOut()})
	case t.State == run.Succeeded && p.inItems(spec, t):
		p.fan(spec, t)
	case t.State == run.Succeeded:
		p.add(&run.TaskReused{TaskRef: ref, Output: t.Output})
	default:
		p.add(&run.TaskReused{TaskRef: ref, State: t.State, Output: t.Output, Failure: t.Error})
	}
}

// allItemsBut carries over all items of a fan-out that have ended, except one.
func (p *Plan) allItemsBut(spec *flows.Task, key string) error {
	t := p.before[spec.Name]
	if t == nil || t.Items == nil || !spec.FanOut {
		return run.Requestf(run.RequestUnknownTask, "task %s was not fanned out in that run: name it without an item", spec.Name)
	}
	items, err := run.Items(t.Items)
	if err != nil {
		return run.Requestf(run.RequestUnknownTask, "task %s: %s", spec.Name, err)
	}
	known := false
	for _, item := range items {
		known = known || item.Key == key
	}
	if !known {
		return run.Requestf(run.RequestUnknownTask, "task %s has no item %q", spec.Name, key)
	}
	p.add(&run.TaskReused{TaskRef: run.TaskRef{Task: spec.Name}, State: run.Running, Items: t.Items})
	for _, item := range p.items[spec.Name] {
		if *item.Key == key || !item.State.Done() {
			continue
		}
		reused := &run.TaskReused{TaskRef: run.TaskRef{Task: spec.Name, Key: *item.Key}, State: item.State, Failure: item.Error}
		if item.State == run.Succeeded {
			reused.Output, reused.Failure = item.Output, nil
		}
		p.add(reused)
	}
	return nil
}

// leftOut is the failure of a task that is skipped because it had not ended. It sets
// this skip apart from one by the flow's wiring: a retry runs the task and what depends
// on it.
func leftOut() *run.Failure {
	return &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeLeftOut, Message: "it had not ended in the run that this one was made of"}
}

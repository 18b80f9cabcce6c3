package engine

import (
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// allBut takes everything over as it was but one task, or one item, and what comes
// after it if that is asked for. What had not ended is left out.
func (r *reuse) allBut(f *flows.Flow, how run.RerunOptions) error {
	target := how.Target()
	spec := f.Task(target.Task)
	if spec == nil || spec.Node >= len(r.section.Tasks) || r.section.Tasks[spec.Node] != spec {
		return run.Requestf(run.RequestUnknownTask, "flow %s has no task %q among its main tasks", f.Name, target.Task)
	}
	if culprit := r.culprit(spec); culprit != "" {
		return run.Requestf(run.RequestUnknownTask, "task %s depends on task %s, which did not succeed in that run: begin with that one", spec.Name, culprit)
	}
	r.Task = target
	again := r.downstream(spec.Node, how.Downstream)
	for _, t := range r.section.Tasks {
		switch {
		case t == spec && target.Key != "":
			if err := r.allItemsBut(t, target.Key); err != nil {
				return err
			}
		case !again[t.Node]:
			r.take(t)
		}
	}
	if len(how.Within) > 0 {
		return r.inside(spec, how)
	}
	return nil
}

// inside has the run of a sub-flow run one task again, and take over all but that.
func (r *reuse) inside(spec *flows.Task, how run.RerunOptions) error {
	target := how.Target()
	if spec.Child == nil {
		return run.Requestf(run.RequestUnknownTask, "task %s runs no flow, so there is no task %q in it", spec.Name, how.Inside().Target().Task)
	}
	if spec.FanOut && target.Key == "" {
		return run.Requestf(run.RequestUnknownTask, "task %s is fanned out: say in which item, %s[KEY]/%s", spec.Name, spec.Name, how.Inside().Target().Task)
	}
	child := r.children[r.record(target).Child]
	if child.Flow != spec.Flow {
		return run.Requestf(run.RequestUnknownTask, "task %s runs flow %s, and ran %s in that run", spec.Name, spec.Flow, child.Flow)
	}
	inner, err := (&predecessor{run: child, children: r.children}).reusable(spec.Child, how.Inside())
	if err == nil {
		r.Within = append(r.Within, run.ContinuedChild{
			TaskRef: target, Run: child.Run, Attempt: child.NextAttempt(), Reused: inner.reused, Continuation: &inner.Continuation,
		})
	}
	return err
}

// culprit is a task that keeps another one from running.
func (r *reuse) culprit(spec *flows.Task) string {
	if spec.RunOn != flows.RunOnSuccess {
		return ""
	}
	for _, need := range r.section.Nodes[spec.Node].Needs {
		up := r.section.Nodes[need.Node].Task
		if up == nil {
			continue
		}
		t := r.before[up.Name]
		fine := t != nil && (t.State == run.Succeeded || t.State == run.Skipped && t.Error == nil || t.State == run.Failed && up.Continue)
		if !fine {
			return up.Name
		}
	}
	return ""
}

// downstream marks a node and, if all is set, those that depend on it.
func (r *reuse) downstream(node int, all bool) []bool {
	marked := make([]bool, len(r.section.Nodes))
	marked[node] = true
	if !all {
		return marked
	}
	for _, n := range r.section.Graph.Order() {
		for _, up := range r.section.Graph.Upstream(n) {
			marked[n] = marked[n] || marked[up]
		}
	}
	return marked
}

// take takes over how a task ended, whatever that was.
func (r *reuse) take(spec *flows.Task) {
	t := r.before[spec.Name]
	ref := run.TaskRef{Task: spec.Name}
	switch {
	case t == nil || !t.State.Done():
		r.add(&run.TaskReused{TaskRef: ref, State: run.Skipped, Failure: leftOut()})
	case t.State == run.Succeeded && r.inItems(spec, t):
		r.fan(spec, t)
	case t.State == run.Succeeded:
		r.add(&run.TaskReused{TaskRef: ref, Output: t.Output})
	default:
		r.add(&run.TaskReused{TaskRef: ref, State: t.State, Output: t.Output, Failure: t.Error})
	}
}

// allItemsBut takes over all items of a fan-out that have ended but one.
func (r *reuse) allItemsBut(spec *flows.Task, key string) error {
	t := r.before[spec.Name]
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
	r.add(&run.TaskReused{TaskRef: run.TaskRef{Task: spec.Name}, State: run.Running, Items: t.Items})
	for _, item := range r.items[spec.Name] {
		if *item.Key == key || !item.State.Done() {
			continue
		}
		reused := &run.TaskReused{TaskRef: run.TaskRef{Task: spec.Name, Key: *item.Key}, State: item.State, Failure: item.Error}
		if item.State == run.Succeeded {
			reused.Output, reused.Failure = item.Output, nil
		}
		r.add(reused)
	}
	return nil
}

// leftOut is why a task is skipped that had not ended. It tells this skip from one by
// the flow's wiring: a retry runs the task, and what depends on it.
func leftOut() *run.Failure {
	return &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeLeftOut, Message: "it had not ended in the run that this one was made of"}
}

package engine

import (
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// allBut takes everything over as it was but one task, or one item, and what comes
// after it if that is asked for. What had not ended is left out.
func (r *reuse) allBut(f *flows.Flow, how run.Again) ([]run.EventData, error) {
	spec := f.Task(how.Task.Task)
	if spec == nil || spec.Node >= len(r.section.Tasks) || r.section.Tasks[spec.Node] != spec {
		return nil, run.Requestf(run.RequestUnknownTask, "flow %s has no task %q among its main tasks", f.Name, how.Task.Task)
	}
	if culprit := r.culprit(spec); culprit != "" {
		return nil, run.Requestf(run.RequestUnknownTask, "task %s depends on task %s, which did not succeed in that run: begin with that one", spec.Name, culprit)
	}
	again := r.downstream(spec.Node, how.Downstream)
	for _, t := range r.section.Tasks {
		switch {
		case t == spec && how.Task.Key != "":
			if err := r.allItemsBut(t, how.Task.Key); err != nil {
				return nil, err
			}
		case !again[t.Node]:
			r.take(t)
		}
	}
	return r.events, nil
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
		r.events = append(r.events, &run.TaskReused{TaskRef: ref, State: run.Skipped})
	case t.State == run.Succeeded && r.inItems(spec, t):
		r.fan(t)
	case t.State == run.Succeeded:
		r.events = append(r.events, &run.TaskReused{TaskRef: ref, Output: t.Output})
	default:
		r.events = append(r.events, &run.TaskReused{TaskRef: ref, State: t.State, Output: t.Output, Failure: t.Error})
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
	r.events = append(r.events, &run.TaskReused{TaskRef: run.TaskRef{Task: spec.Name}, State: run.Running, Items: t.Items})
	for _, item := range r.items[spec.Name] {
		if *item.Key == key || !item.State.Done() {
			continue
		}
		reused := &run.TaskReused{TaskRef: run.TaskRef{Task: spec.Name, Key: *item.Key}, State: item.State, Failure: item.Error}
		if item.State == run.Succeeded {
			reused.Output, reused.Failure = item.Output, nil
		}
		r.events = append(r.events, reused)
	}
	return nil
}

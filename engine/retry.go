package engine

import (
	"context"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Retry makes a new run that continues one which has finished without success:
// with its trigger and params, and the flow as it is deployed now. The outputs of
// tasks that succeeded are taken over, unless whole asks for all tasks to be run
// again. It answers ErrUnfinished and ErrSucceeded for runs that cannot be
// continued, and otherwise as Submit does.
func (e *Engine) Retry(ctx context.Context, id run.ID, whole bool) (run.Receipt, error) {
	record, err := e.Get(ctx, id)
	switch {
	case err != nil:
		return run.Receipt{}, err
	case !record.State.Done():
		return run.Receipt{}, ErrUnfinished
	case record.State == run.Succeeded && !whole:
		return run.Receipt{}, ErrSucceeded
	}
	return e.receive(ctx, func() (run.Receipt, error) { return e.retry(record, whole) })
}

func (e *Engine) retry(old *run.Record, whole bool) (run.Receipt, error) {
	if err := e.taking(); err != nil {
		return run.Receipt{}, err
	}
	if old.Truncated && len(old.Tasks) == 0 {
		return run.Receipt{}, run.Requestf(run.RequestSize, "the run was too large for its record, payload and params were left out: start a new one")
	}
	f := e.flows[old.Flow]
	if f == nil {
		return run.Receipt{}, run.Requestf(run.RequestUnknownFlow, "flow %q of the run is not deployed any more", old.Flow)
	}
	admission, err := f.Admit(run.Request{Flow: old.Flow, Trigger: old.Trigger, Params: old.Params})
	if err != nil {
		return run.Receipt{}, err
	}
	if !admission.Accepted {
		return run.Receipt{}, run.Requestf(run.RequestExpression, "the filter of the run's trigger turns it away now")
	}
	var reused []run.EventData
	if !whole {
		if reused, err = reusable(f, old); err != nil {
			return run.Receipt{}, err
		}
	}
	return e.admit(f, &run.Submitted{
		Flow: f.Name, Definition: f.DefinitionDigest, Trigger: admission.Trigger,
		Params: admission.Params, Concurrency: admission.Concurrency, RetryOf: old.Run,
	}, reused...)
}

// reusable are the tasks that succeeded, are still part of the flow and depend on
// nothing that will be run again: what a rescue did after a failure that is tried
// again does not count. Of a fan-out that did not succeed, they are the items that
// did.
func reusable(f *flows.Flow, old *run.Record) ([]run.EventData, error) {
	if old.Truncated {
		return nil, run.Requestf(run.RequestSize, "the outputs of the run were too large for its record, so it can only be run again as a whole")
	}
	r := reuse{section: f.Section(flows.PartMain), before: make(map[string]*run.TaskRecord, len(old.Tasks)), items: map[string][]*run.TaskRecord{}}
	for i := range old.Tasks {
		if t := &old.Tasks[i]; t.Key == nil {
			r.before[t.Task] = t
		} else {
			r.items[t.Task] = append(r.items[t.Task], t)
		}
	}
	r.settled = make([]bool, len(r.section.Nodes))
	frontier := f.Graph.Frontier()
	for nodes := frontier.Ready(); len(nodes) > 0; nodes = frontier.Ready() {
		for _, node := range nodes {
			r.settled[node] = r.settle(node)
			if err := frontier.Complete(node); err != nil {
				return nil, err
			}
		}
	}
	return r.events, nil
}

// reuse collects what a run takes over from another one.
type reuse struct {
	section *flows.Section
	before  map[string]*run.TaskRecord   // of tasks
	items   map[string][]*run.TaskRecord // of fan-outs
	settled []bool                       // by node: taken over, or skipped by the flow's wiring
	events  []run.EventData
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
		upstream = nil // those before it did not succeed, or it was not run
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
	case n.Task.FanOut:
		return r.fan(n.Task, t)
	case t.Items != nil:
		return false
	case t.State == run.Succeeded:
		r.events = append(r.events, &run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, Output: t.Output})
		return true
	case t.State == run.Failed && n.Task.Continue:
		r.events = append(r.events, &run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, State: run.Failed, Failure: t.Error})
		return true
	}
	return t.State == run.Skipped && t.Error == nil
}

// succeeded reports whether a member of a group did in the earlier run, as far as
// its own tasks tell.
func (r *reuse) succeeded(m flows.Member) bool {
	if m.Group != nil {
		return slices.ContainsFunc(m.Group.Members, r.succeeded)
	}
	t := r.before[m.Task.Name]
	return t != nil && t.State == run.Succeeded
}

// fan takes over the items of a fan-out that need not be run again.
func (r *reuse) fan(spec *flows.Task, t *run.TaskRecord) bool {
	if t.State == run.Skipped && t.Error == nil {
		return true
	}
	if t.Items == nil {
		return false
	}
	r.events = append(r.events, &run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, State: run.Running, Items: t.Items})
	for _, item := range r.items[t.Task] {
		reused := &run.TaskReused{TaskRef: run.TaskRef{Task: t.Task, Key: *item.Key}, State: item.State}
		switch {
		case item.State == run.Succeeded:
			reused.Output = item.Output
		case t.State == run.Succeeded && spec.Continue:
			reused.Failure = item.Error
		default:
			continue
		}
		r.events = append(r.events, reused)
	}
	return t.State == run.Succeeded
}

package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Retry makes a new run of one that was there before, with its trigger. The
// outputs of what need not run again are taken over, see [run.Again]. It answers
// ErrUnfinished and ErrSucceeded for runs that cannot be continued, and otherwise
// as Submit does. With a task, the run may be in any state: what has not ended of
// it is left out.
func (e *Engine) Retry(ctx context.Context, id run.ID, how run.Again) (run.Receipt, error) {
	record, err := e.Get(ctx, id)
	switch one := how.Task.Task != ""; {
	case err != nil:
		return run.Receipt{}, err
	case !record.State.Done() && !one:
		return run.Receipt{}, ErrUnfinished
	case record.State == run.Succeeded && !how.Whole && !one:
		return run.Receipt{}, ErrSucceeded
	}
	f, err := e.flowOf(ctx, record, how)
	if err != nil {
		return run.Receipt{}, err
	}
	return e.receive(ctx, func() (run.Receipt, error) { return e.retry(f, record, how) })
}

// flowOf is the recorded flow of a run, if that is asked for, and nil otherwise.
func (e *Engine) flowOf(ctx context.Context, old *run.Record, how run.Again) (*flows.Flow, error) {
	if !how.Recorded {
		return nil, nil
	}
	var set *flows.Set
	var definition *run.Definition
	err := e.command(ctx, func() { set, definition = e.sets[old.Definition], e.shard.Definitions[old.Definition] })
	switch {
	case err != nil:
		return nil, err
	case set == nil && definition == nil:
		return nil, run.Requestf(run.RequestUnknownFlow, "the flow as it was is not kept any more (definition %s): use the current one", old.Definition)
	case set == nil:
		if set, err = e.config.Restore(ctx, definition); err != nil {
			return nil, run.Requestf(run.RequestUnknownFlow, "the flow as it was cannot be loaded: %s", err)
		}
	}
	if f := set.Flow(old.Flow); f != nil {
		return f, nil
	}
	return nil, run.Requestf(run.RequestUnknownFlow, "the recorded definition has no flow %q", old.Flow)
}

// retry makes the run with the given flow, or with the one that is deployed.
func (e *Engine) retry(f *flows.Flow, old *run.Record, how run.Again) (run.Receipt, error) {
	if err := e.taking(); err != nil {
		return run.Receipt{}, err
	}
	if old.Truncated && len(old.Tasks) == 0 {
		return run.Receipt{}, run.Requestf(run.RequestSize, "the record of the run was larger than a message, and the rest of it is gone, payload and params too: start a new one")
	}
	if f == nil {
		f = e.flows[old.Flow]
	}
	if f == nil {
		return run.Receipt{}, run.Requestf(run.RequestUnknownFlow, "flow %q of the run is not deployed any more", old.Flow)
	}
	admission, err := f.Admit(run.Request{Flow: old.Flow, Trigger: old.Trigger, Params: paramsFor(old, how)})
	if err != nil {
		return run.Receipt{}, err
	}
	if !admission.Accepted {
		return run.Receipt{}, run.Requestf(run.RequestExpression, "the filter of the run's trigger turns it away now")
	}
	var reused []run.EventData
	if !how.Whole {
		if reused, err = reusable(f, old, how); err != nil {
			return run.Receipt{}, err
		}
	}
	return e.admit(f, &run.Submitted{
		Flow: f.Name, Definition: f.DefinitionDigest, Trigger: admission.Trigger,
		Params: admission.Params, Concurrency: admission.Concurrency, RetryOf: old.Run,
	}, reused...)
}

// paramsFor are the params that are given to a run made again.
func paramsFor(old *run.Record, how run.Again) map[string]json.RawMessage {
	params := map[string]json.RawMessage{}
	if !how.FreshParams {
		maps.Copy(params, old.Params)
	}
	maps.Copy(params, how.Params)
	return params
}

// reusable are the tasks that succeeded, are still part of the flow and depend on
// nothing that will be run again: what a rescue did after a failure that is tried
// again does not count. Of a fan-out that did not succeed, they are the items that
// did.
func reusable(f *flows.Flow, old *run.Record, how run.Again) ([]run.EventData, error) {
	if old.Truncated {
		return nil, run.Requestf(run.RequestSize, "the record of the run was larger than a message, and the rest of it is gone: the run can only be run again as a whole")
	}
	r := newReuse(f, old)
	if how.Task.Task != "" {
		return r.allBut(f, how)
	}
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

func newReuse(f *flows.Flow, old *run.Record) *reuse {
	r := &reuse{section: f.Section(flows.PartMain), before: make(map[string]*run.TaskRecord, len(old.Tasks)), items: map[string][]*run.TaskRecord{}}
	r.settled = make([]bool, len(r.section.Nodes))
	for i := range old.Tasks {
		if t := &old.Tasks[i]; t.Key == nil {
			r.before[t.Task] = t
		} else {
			r.items[t.Task] = append(r.items[t.Task], t)
		}
	}
	return r
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
	case !n.Task.FanOut && r.forgiven(n.Task), t.State == run.Failed && r.won(n.Parent):
		r.events = append(r.events, &run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, State: t.State, Failure: t.Error})
		return true
	case n.Task.FanOut:
		return r.fan(n.Task, t)
	case t.Items != nil:
		return false
	case t.State == run.Succeeded:
		r.events = append(r.events, &run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, Output: t.Output})
		return true
	}
	return t.State == run.Skipped && t.Error == nil
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

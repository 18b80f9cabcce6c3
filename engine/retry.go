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
// again does not count.
func reusable(f *flows.Flow, old *run.Record) ([]run.EventData, error) {
	if old.Truncated {
		return nil, run.Requestf(run.RequestSize, "the outputs of the run were too large for its record, so it can only be run again as a whole")
	}
	before := make(map[string]*run.TaskRecord, len(old.Tasks))
	for i := range old.Tasks {
		before[old.Tasks[i].Task] = &old.Tasks[i]
	}
	settled := make([]bool, len(f.Tasks)) // reused, or skipped by its own condition
	var reused []run.EventData
	frontier := f.Graph.Frontier()
	for nodes := frontier.Ready(); len(nodes) > 0; nodes = frontier.Ready() {
		for _, node := range nodes {
			t := before[f.Tasks[node].Name]
			again := slices.ContainsFunc(f.Graph.Upstream(node), func(up int) bool { return !settled[up] })
			switch {
			case t == nil || again:
			case t.State == run.Succeeded:
				settled[node] = true
				reused = append(reused, &run.TaskReused{TaskRef: run.TaskRef{Task: t.Task}, Output: t.Output})
			case t.State == run.Skipped && t.Error == nil:
				settled[node] = true
			}
			if err := frontier.Complete(node); err != nil {
				return nil, err
			}
		}
	}
	return reused, nil
}

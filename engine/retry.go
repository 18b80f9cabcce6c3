package engine

import (
	"context"

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
	var reused []*run.TaskReused
	if !whole {
		if reused, err = reusable(taskNames(f), old); err != nil {
			return run.Receipt{}, err
		}
	}
	return e.admit(f, run.Position{}, &run.Submitted{
		Flow: f.Name, Definition: f.DefinitionDigest, Trigger: admission.Trigger,
		Params: admission.Params, Concurrency: admission.Concurrency, RetryOf: old.Run,
	}, reused...)
}

// reusable are the tasks that succeeded and are still part of the flow.
func reusable(names []string, old *run.Record) ([]*run.TaskReused, error) {
	if old.Truncated {
		return nil, run.Requestf(run.RequestSize, "the outputs of the run were too large for its record, so it can only be run again as a whole")
	}
	declared := make(map[string]bool, len(names))
	for _, name := range names {
		declared[name] = true
	}
	var reused []*run.TaskReused
	for _, t := range old.Tasks {
		if !declared[t.Task] || t.State != run.Succeeded {
			continue
		}
		ref := run.TaskRef{Task: t.Task}
		if t.Key != nil {
			ref.Key = *t.Key
		}
		reused = append(reused, &run.TaskReused{TaskRef: ref, Output: t.Output})
	}
	return reused, nil
}

package engine

import (
	"context"
	"errors"

	"github.com/flowhost/flowhost/run"
)

// predecessor is a run that is made again, with the runs of sub-flows that belong to
// what is asked for.
type predecessor struct {
	run      *run.Record
	children map[run.ID]*run.Record
}

// predecessor reads the runs of sub-flows that are to be continued: those that lead to
// a task that is named, or all that did not succeed. Of the latter, those that are
// not kept any more begin anew.
func (e *Engine) predecessor(ctx context.Context, record *run.Record, how run.RerunOptions) (*predecessor, error) {
	before := &predecessor{run: record, children: map[run.ID]*run.Record{}}
	if how.Whole {
		return before, nil
	}
	if err := whole(record); err != nil {
		return nil, err
	}
	if how.Task.Task == "" {
		return before, e.unsuccessful(ctx, record, before.children)
	}
	for _, ref := range how.Within {
		t := recordOf(record, ref)
		if t != nil && t.Items != nil {
			return nil, run.Requestf(run.RequestUnknownTask, "task %s is fanned out: say in which item, %s[KEY]/…", ref.Task, ref.Task)
		}
		if t == nil || t.Child == "" {
			return nil, run.Requestf(run.RequestUnknownTask, "task %s of run %s did not run a flow", ref.Label(), record.Run)
		}
		child, err := e.Get(ctx, t.Child)
		if errors.Is(err, run.ErrUnknown) {
			return nil, run.Requestf(run.RequestUnknownTask, "run %s, which task %s was, is not kept any more: run the whole task again", t.Child, ref.Label())
		}
		if err == nil {
			err = whole(child)
		}
		if err != nil {
			return nil, err
		}
		before.children[child.Run] = child
		record = child
	}
	return before, nil
}

// unsuccessful reads the runs within a run that did not succeed.
func (e *Engine) unsuccessful(ctx context.Context, record *run.Record, children map[run.ID]*run.Record) error {
	for i := range record.Tasks {
		t := &record.Tasks[i]
		if t.Child == "" || t.State == run.Succeeded {
			continue
		}
		child, err := e.Get(ctx, t.Child)
		if errors.Is(err, run.ErrUnknown) {
			continue
		}
		if err == nil && !child.Truncated {
			children[child.Run] = child
			err = e.unsuccessful(ctx, child, children)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// whole refuses a record that has not all of its run.
func whole(record *run.Record) error {
	if !record.Truncated {
		return nil
	}
	return run.Requestf(run.RequestSize, "the record of run %s was larger than a message, and the rest of it is gone: the run can only be run again as a whole", record.Run)
}

// recordOf is the record of a task, or item, nil for none.
func recordOf(record *run.Record, ref run.TaskRef) *run.TaskRecord {
	for i := range record.Tasks {
		if t := &record.Tasks[i]; t.Ref() == ref {
			return t
		}
	}
	return nil
}

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// A run that continues another one continues the runs of its sub-flows, too. What
// they take over is read when the run is asked for, and recorded with it: they
// begin when their tasks do.

// predecessor is a run that is made again, with the runs of sub-flows that belong to
// what is asked for.
type predecessor struct {
	run      *run.Record
	children map[run.ID]*run.Record
}

// predecessor reads the runs of sub-flows that are to be continued: those that lead to
// a task that is named, or all that did not succeed. Of the latter, those that are
// not kept any more begin anew.
func (e *Engine) predecessor(ctx context.Context, record *run.Record, how run.Again) (*predecessor, error) {
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

// within has the run of a sub-flow, which did not succeed, go on where it ended if
// its params stay the same: all that it depends on is taken over.
func (r *reuse) within(spec *flows.Task, t *run.TaskRecord) {
	child := r.children[t.Child]
	if spec.Child == nil || child == nil || child.Flow != spec.Flow {
		return
	}
	inner := newReuse(spec.Child, &predecessor{run: child, children: r.children})
	inner.allThatCounts()
	if len(inner.reused) == 0 && len(inner.Within) == 0 {
		return
	}
	r.Within = append(r.Within, run.ContinuedChild{
		TaskRef: t.Ref(), Run: child.Run, Attempt: child.NextAttempt(), Params: child.Params, Reused: inner.reused, Continuation: &inner.Continuation,
	})
}

// checkChildren refuses runs that take over more than a commit holds, in bytes.
func checkChildren(children []run.ContinuedChild, limit int) error {
	for _, child := range children {
		var events []run.Event
		for _, data := range asData(child.Reused) {
			events = append(events, run.Event{Run: child.Run, Data: data})
		}
		fits, err := new(run.Commit).AddWithin(limit, events...)
		if err == nil && !fits {
			err = run.Requestf(run.RequestSize, "run %s, which task %s was, has more to take over than the journal holds in one commit, so it can only be run again as a whole", child.Run, child.Label())
		}
		if err == nil {
			err = checkChildren(child.Continuation.Within, limit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func asData(reused []*run.TaskReused) []run.EventData {
	data := make([]run.EventData, len(reused))
	for i, r := range reused {
		data[i] = r
	}
	return data
}

// continues gives what the next run of a sub-flow's task goes on with. It is nil
// for one that begins anew: one made again by the task's own policy, too.
func (t task) continues(params map[string]json.RawMessage) *run.ContinuedChild {
	child := t.continued[t.ref()]
	if state := t.state(); child == nil || state != nil && state.Child != "" {
		return nil
	}
	if child.Params != nil && !maps.EqualFunc(child.Params, params, sameJSON) {
		return nil
	}
	return child
}

// sameJSON compares values that may be written in different ways, numbers by their
// digits.
func sameJSON(a, b json.RawMessage) bool {
	return bytes.Equal(a, b) || bytes.Equal(canonical(a), canonical(b))
}

func canonical(value json.RawMessage) []byte {
	d := json.NewDecoder(bytes.NewReader(value))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return value
	}
	out, _ := run.EncodeJSON(v)
	return out
}

// keepContinuation makes what is recorded of a continuation ready for use.
func (o *openRun) keepContinuation() error {
	c, err := run.DecodeContinuation(o.run.Continuation)
	if err != nil {
		return err
	}
	o.again = c.Task
	if len(c.Within) > 0 {
		o.continued = make(map[run.TaskRef]*run.ContinuedChild, len(c.Within))
	}
	for i := range c.Within {
		o.continued[c.Within[i].TaskRef] = &c.Within[i]
	}
	return nil
}

// asked reports whether a member of a group is, or holds, the task that was asked
// for by name: it runs again although another member has won.
func (o *openRun) asked(g *flows.Group, place int) bool {
	spec := o.flow.Task(o.again.Task)
	if !o.phase.holds(spec) {
		return false
	}
	for n := &o.phase.nodes[spec.Node]; n.Parent != nil; n = &o.phase.nodes[n.Parent.Begin] {
		if n.Parent == g {
			return n.Place == place
		}
	}
	return false
}

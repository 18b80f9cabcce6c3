package engine

import (
	"bytes"
	"encoding/json"
	"maps"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// A run that continues another one continues the runs of its sub-flows, too. What
// they take over is read when the run is asked for, and recorded with it: they
// begin when their tasks do.

// continueChild has the run of a sub-flow, which did not succeed, go on where it ended if
// its params stay the same: all that it depends on is taken over.
func (r *reuse) continueChild(spec *flows.Task, t *run.TaskRecord) {
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
		fits, err := new(wire.Commit).AddWithin(limit, events...)
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

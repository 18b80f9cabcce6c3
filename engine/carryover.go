package engine

import (
	"bytes"
	"encoding/json"
	"maps"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// A run that continues an earlier one continues the runs of its sub-flows, too. What
// they carry over is read when the new run is requested, and recorded with it: they
// start when their tasks do.

// continues gives what the next run of a sub-flow's task carries over. It is nil for a
// run that starts from the beginning, also for a retry by the task's own policy.
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

// sameJSON compares values whose text may differ, numbers by their digits.
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

// keepContinuation decodes the recorded continuation.
func (o *openRun) keepContinuation() error {
	c, err := run.DecodeContinuation(o.run.Continuation)
	if err != nil {
		return err
	}
	o.askedFor = c.Task
	if len(c.Within) > 0 {
		o.continued = make(map[run.TaskRef]*run.ContinuedChild, len(c.Within))
	}
	for i := range c.Within {
		o.continued[c.Within[i].TaskRef] = &c.Within[i]
	}
	return nil
}

// isAskedFor reports whether a member of a group is, or contains, the task that was
// requested by name: it runs again although another member has won.
func (o *openRun) isAskedFor(g *flows.Group, place int) bool {
	spec := o.flow.Task(o.askedFor.Task)
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

package rerun

import (
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// continueChild lets the run of a sub-flow that did not succeed continue where it ended
// if its params stay the same: everything that it depends on is carried over.
func (p *Plan) continueChild(spec *flows.Task, t *run.TaskRecord) {
	child := p.children[t.Child]
	if spec.Child == nil || child == nil || child.Flow != spec.Flow {
		return
	}
	inner := newPlan(spec.Child, &Predecessor{Run: child, Children: p.children})
	inner.allThatCounts()
	if len(inner.Reused) == 0 && len(inner.Within) == 0 {
		return
	}
	p.Within = append(p.Within, run.ContinuedChild{
		TaskRef: t.Ref(), Run: child.Run, Attempt: child.NextAttempt(), Params: child.Params, Reused: inner.Reused, Continuation: &inner.Continuation,
	})
}

// CheckChildren refuses runs that carry over more than a commit may hold, in bytes.
func CheckChildren(children []run.ContinuedChild, limit int) error {
	for _, child := range children {
		var events []run.Event
		for _, data := range Events(child.Reused) {
			events = append(events, run.Event{Run: child.Run, Data: data})
		}
		fits, err := new(wire.Commit).AddWithin(limit, events...)
		if err == nil && !fits {
			err = run.Requestf(run.RequestSize, "run %s, which task %s was, has more results to carry over than one commit of the journal may hold: rerun it as a whole", child.Run, child.Label())
		}
		if err == nil {
			err = CheckChildren(child.Continuation.Within, limit)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Events gives the events that record what is carried over.
func Events(reused []*run.TaskReused) []run.EventData {
	data := make([]run.EventData, len(reused))
	for i, r := range reused {
		data[i] = r
	}
	return data
}

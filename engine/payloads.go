package engine

import (
	"context"
	"encoding/json"

	"github.com/flowhost/flowhost/run"
)

// maxVisited is how many task runs are visited in one turn of the loop.
const maxVisited = 1000

// Payloads calls visit, on the caller's goroutine, with the JSON that open runs hold and
// with that of runs that ended recently: at least those that were accepted before the call
// and whose records the observers have not received when it returns. visit does not change
// it.
func (e *Engine) Payloads(ctx context.Context, visit func(json.RawMessage)) error {
	var v visitor
	if err := e.command(ctx, func() { v.list(e.exec) }); err != nil {
		return err
	}
	for len(v.runs) > 0 {
		if err := e.command(ctx, func() { v.next(e.exec) }); err != nil {
			return err
		}
		for _, payload := range v.found {
			visit(payload)
		}
	}
	return nil
}

// visitor collects the payloads of runs, some in each turn of the loop.
type visitor struct {
	runs  []run.ID // still to be visited
	tasks int      // of the first of these, how many have been
	ended bool     // these were of its record, where they have another order
	found []json.RawMessage
}

func (v *visitor) list(e *executor) {
	v.runs = make([]run.ID, 0, len(e.open)+len(e.finished.completions))
	for id := range e.open {
		v.runs = append(v.runs, id)
	}
	for id := range e.finished.completions {
		v.runs = append(v.runs, id)
	}
}

// next collects the payloads of the next task runs. A run that has ended meanwhile is
// visited as a finished one, unless it is in the history.
func (v *visitor) next(e *executor) {
	v.found = v.found[:0]
	for room := maxVisited; room > 0 && len(v.runs) > 0; room-- {
		id := v.runs[0]
		o, end := e.open[id], e.finished.get(id)
		visited, whole := 0, true
		switch {
		case o != nil:
			visited, whole = v.open(o.run, room)
		case end != nil:
			if !v.ended {
				v.tasks, v.ended = 0, true
			}
			visited, whole = v.record(end.record, room)
		}
		room -= visited
		if v.tasks += visited; whole {
			v.runs, v.tasks, v.ended = v.runs[1:], 0, false
		}
	}
}

// open collects those of an open run, from where it was left on. It reports how many task
// runs it has visited, and whether none is left.
func (v *visitor) open(r *run.Run, room int) (visited int, whole bool) {
	if v.tasks == 0 {
		v.add(r.Trigger.Payload, r.Continuation, r.Output)
		v.params(r.Params)
		v.failure(r.Failure)
	}
	tasks := r.Tasks[min(v.tasks, len(r.Tasks)):]
	visited = min(len(tasks), room)
	for _, t := range tasks[:visited] {
		v.add(t.Input, t.Config, t.Output, t.Items)
		v.failure(t.Failure)
	}
	return visited, visited == len(tasks)
}

// record does the same for a finished run.
func (v *visitor) record(r *run.Record, room int) (visited int, whole bool) {
	if v.tasks == 0 {
		v.add(r.Trigger.Payload, r.Output)
		v.params(r.Params)
		v.failure(r.Error)
	}
	tasks := r.Tasks[min(v.tasks, len(r.Tasks)):]
	visited = min(len(tasks), room)
	for i := range tasks[:visited] {
		t := &tasks[i]
		v.add(t.Input, t.Output, t.Items)
		v.failure(t.Error)
	}
	return visited, visited == len(tasks)
}

func (v *visitor) add(all ...json.RawMessage) {
	for _, payload := range all {
		if len(payload) > 0 {
			v.found = append(v.found, payload)
		}
	}
}

func (v *visitor) params(all map[string]json.RawMessage) {
	for _, value := range all {
		v.add(value)
	}
}

func (v *visitor) failure(f *run.Failure) {
	if f != nil {
		v.add(f.Details)
	}
}

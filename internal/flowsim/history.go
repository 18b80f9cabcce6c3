package flowsim

import (
	"encoding/json"
	"math/rand/v2"
	"time"

	"github.com/flowhost/flowhost/internal/virtual"
	"github.com/flowhost/flowhost/run"
)

// History is what runs of a flow have come to.
//
// A record has the whole time of a task from the beginning of its first attempt to
// the end of its last one, how many attempts there were, and how the last one
// ended. So the lengths of attempts are those of tasks that had one; where a task
// never had only one, its time is shared equally, with the time between attempts
// in it. The attempts before the last one failed, in a way that is not known.
type History struct {
	tasks  map[string]*past
	donors []*donor
	runs   int
}

// donor is a run that has succeeded and holds its outputs.
type donor struct {
	*run.Record
	outputs map[run.TaskRef]json.RawMessage // of its tasks and their items
}

// past is what attempts of a task have done.
type past struct {
	ends    []end
	lengths []time.Duration
	outputs []json.RawMessage
}

// end is how one attempt has ended.
type end struct {
	takes   time.Duration
	timed   bool         // takes is known
	failure *run.Failure // nil: it has succeeded
}

// NewHistory reads records of runs of one flow. Those that continue, and what was
// canceled, lost or reused from another run, is ignored.
func NewHistory(records []*run.Record) *History {
	h := &History{tasks: map[string]*past{}}
	shared := map[string][]time.Duration{}
	for _, r := range records {
		if !r.State.Done() {
			continue
		}
		h.runs++
		if r.State == run.Succeeded && !r.Truncated {
			h.donors = append(h.donors, donorOf(r))
		}
		for i := range r.Tasks {
			if t := &r.Tasks[i]; usable(t) {
				each := h.add(t, !r.Truncated)
				shared[t.Task] = append(shared[t.Task], each)
			}
		}
	}
	for task, p := range h.tasks {
		if len(p.lengths) == 0 {
			p.lengths = shared[task]
		}
	}
	return h
}

func donorOf(r *run.Record) *donor {
	d := &donor{Record: r, outputs: map[run.TaskRef]json.RawMessage{}}
	for i := range r.Tasks {
		if t := &r.Tasks[i]; t.State == run.Succeeded && t.Output != nil {
			d.outputs[run.TaskRef{Task: t.Task, Key: keyOf(t)}] = t.Output
		}
	}
	return d
}

// Runs is how many runs it is of.
func (h *History) Runs() int { return h.runs }

// usable reports whether a task run contains data about its attempts.
func usable(t *run.TaskRecord) bool {
	return t.Attempts > 0 && !t.Reused && t.DurationMS != nil && t.Outcome != nil &&
		*t.Outcome != run.OutcomeCanceled && *t.Outcome != run.OutcomeLost
}

// add notes the attempts of a task run, and its output where it is whole. It gives
// the time of one attempt if all took equally long.
func (h *History) add(t *run.TaskRecord, whole bool) time.Duration {
	p := h.tasks[t.Task]
	if p == nil {
		p = new(past)
		h.tasks[t.Task] = p
	}
	for range t.Attempts - 1 {
		p.ends = append(p.ends, end{failure: drawn(true).Failure})
	}
	last := end{failure: failureOf(t)}
	if last.failure == nil && t.Output != nil && whole {
		p.outputs = append(p.outputs, t.Output)
	}
	took := time.Duration(*t.DurationMS * float64(time.Millisecond))
	if t.Attempts == 1 {
		last.takes, last.timed = took, true
		p.lengths = append(p.lengths, took)
	}
	p.ends = append(p.ends, last)
	return took / time.Duration(t.Attempts)
}

// failureOf is how the last attempt of a task run failed, without where it did; nil
// for one that succeeded.
func failureOf(t *run.TaskRecord) *run.Failure {
	switch {
	case t.State == run.Succeeded:
		return nil
	case t.Error == nil:
		return drawn(true).Failure
	}
	f := *t.Error
	f.Task, f.Key, f.At = "", "", ""
	return &f
}

// draw is what an attempt does: one of those that there were.
func (p *past) draw(choice uint64, otherwise time.Duration) virtual.ScriptedCall {
	r := rand.New(rand.NewPCG(choice, 0))
	drawn := p.ends[r.IntN(len(p.ends))]
	turn := virtual.ScriptedCall{Takes: otherwise, Result: run.Result{Outcome: run.OutcomeSucceeded}}
	switch {
	case drawn.timed:
		turn.Takes = drawn.takes
	case len(p.lengths) > 0:
		turn.Takes = p.lengths[r.IntN(len(p.lengths))]
	}
	if drawn.failure != nil {
		turn.Result = run.Result{Outcome: drawn.failure.Outcome, Failure: drawn.failure}
	}
	return turn
}

// output is one of those that there were; nil when there was none.
func (p *past) output(choice uint64) json.RawMessage {
	if len(p.outputs) == 0 {
		return nil
	}
	return p.outputs[choice%uint64(len(p.outputs))]
}

func keyOf(t *run.TaskRecord) string {
	if t.Key == nil {
		return ""
	}
	return *t.Key
}

// drawDonor draws the run whose outputs, params and payload are taken.
func (t *trial) drawDonor() *donor {
	h := t.config.History
	if h == nil || len(h.donors) == 0 {
		return nil
	}
	return h.donors[t.dice("", "donor", 0).IntN(len(h.donors))]
}

// past is what is known of the attempts of a call's task; nil for nothing.
func (t *trial) past(call *run.Call) *past {
	if t.config.History == nil || !t.own(call) {
		return nil
	}
	return t.config.History.tasks[call.Task]
}

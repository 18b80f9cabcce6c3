package run

import (
	"encoding/json"
	"time"
)

// Run is the state of one execution of a flow. It changes only through
// [Shard.Apply].
type Run struct {
	ID          ID
	Flow        string
	Definition  string // digest
	Trigger     Trigger
	Params      map[string]json.RawMessage
	Concurrency string // the run's key under the flow's limit
	RetryOf     ID     // the run that this one continues; empty for most

	Version uint64 // the number of events so far
	State   State
	Cancel  *Failure // why the run is being stopped, nil while it is not
	Output  json.RawMessage
	Failure *Failure

	CreatedAt  time.Time
	StartedAt  time.Time
	FinishedAt time.Time

	// Tasks holds the task runs to which something has happened, in the order in
	// which it first did.
	Tasks []*TaskRun
	index map[TaskRef]*TaskRun // of Tasks, once they are many
	last  *TaskRun             // that was looked for: one event asks several times
}

// manyTasks is from how many on a map finds a task faster than a look at each.
const manyTasks = 16

// Task is the task run of that name, or nil when nothing has happened to it.
func (r *Run) Task(ref TaskRef) *TaskRun {
	if r.last != nil && r.last.TaskRef == ref {
		return r.last
	}
	t := r.find(ref)
	if t != nil {
		r.last = t
	}
	return t
}

func (r *Run) find(ref TaskRef) *TaskRun {
	if r.index != nil {
		return r.index[ref]
	}
	for _, t := range r.Tasks {
		if t.TaskRef == ref {
			return t
		}
	}
	return nil
}

func (r *Run) add(t *TaskRun) {
	r.Tasks = append(r.Tasks, t)
	r.last = t
	switch {
	case r.index != nil:
		r.index[t.TaskRef] = t
	case len(r.Tasks) > manyTasks:
		r.index = make(map[TaskRef]*TaskRun, 2*manyTasks)
		for _, known := range r.Tasks {
			r.index[known.TaskRef] = known
		}
	}
}

// TaskRun is one task within a run: its attempts seen as one.
type TaskRun struct {
	TaskRef
	State    State
	Attempts int      // started so far
	Lost     int      // of these, how many were lost
	Reused   bool     // the output is that of the run which this one continues
	Cancel   *Failure // why the task is being stopped, nil while it is not

	Module   string
	Function string
	Input    json.RawMessage
	Config   json.RawMessage

	Outcome Outcome // of the last attempt that ended; empty before
	Output  json.RawMessage
	Failure *Failure
	Due     time.Time // while Ready after a failed attempt: when the next one may start

	StartedAt  time.Time     // of the first attempt
	FinishedAt time.Time     // of the task run, zero while it is not done
	Busy       time.Duration // in guests, over all attempts
}

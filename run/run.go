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
	index map[TaskRef]*TaskRun
}

// Task is the task run of that name, or nil when nothing has happened to it.
func (r *Run) Task(ref TaskRef) *TaskRun { return r.index[ref] }

// TaskRun is one task within a run: its attempts seen as one.
type TaskRun struct {
	TaskRef
	State    State
	Attempts int // started so far
	Lost     int // of these, how many were lost

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

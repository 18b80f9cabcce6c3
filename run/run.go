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
	Concurrency string  // the run's key under the flow's limit
	RetryOf     ID      // the run that this one continues; empty for most
	Attempt     int     // 1 for a first run, otherwise one more than that of the run before
	Parent      *Parent // of a sub-flow; nil for most
	Awaits      int     // task runs that are still to be taken over before the run is accepted

	Continuation json.RawMessage // a [Continuation]; nil for most

	Version uint64 // the number of events so far
	State   State
	Cancel  *Failure // why the run is being stopped, nil while it is not
	Output  json.RawMessage
	Failure *Failure

	CreatedAt  time.Time
	StartedAt  time.Time
	FinishedAt time.Time

	PreviousSuccess time.Time // when the run started: the nominal time of the flow's last run that had succeeded

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

// AddTask adds a task run of a decoded snapshot: events do it in [Shard.Apply]. A
// fan-out comes before its items.
func (r *Run) AddTask(t *TaskRun) {
	if t.Key != "" {
		if t.whole = r.Task(TaskRef{Task: t.Task}); t.whole != nil && !t.State.Done() {
			t.whole.open++
		}
	}
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
	Reason  string    // why the flow's own wiring skipped it; empty for most
	Due     time.Time // while Ready after a failed attempt: when the next one may start; while a wait is running: when it ends by itself

	Items json.RawMessage // of a fan-out, see [TaskExpanded]; nil for other tasks
	Child ID              // the run of the sub-flow that is the last attempt

	Subject  string    // of a wait for a message
	Approval string    // of a wait for one: what is to be approved
	Deadline time.Time // when a wait times out

	StartedAt  time.Time     // of the first attempt
	FinishedAt time.Time     // of the task run, zero while it is not done
	Busy       time.Duration // in guests, over all attempts
	Queued     time.Duration // over all attempts, as of a [Result]

	whole *TaskRun // of an item: its fan-out
	open  int      // of a fan-out: items that are not done, of those that something has happened to
}

// Waits reports whether the task run is an open wait.
func (t *TaskRun) Waits() bool { return t.State == Running && t.Attempts == 0 && t.Items == nil }

// Open is the number of items of a fan-out that have begun and are not done.
func (t *TaskRun) Open() int { return t.open }

package run

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"
)

// Record is a run as other systems see it: the object in the output of "exec --json",
// in the answer to a waiting publisher and in the event "finished". Its JSON form is
// stable.
type Record struct {
	Run        ID                         `json:"run"`
	Flow       string                     `json:"flow"`
	State      State                      `json:"state"`
	WaitsFor   *WaitsFor                  `json:"waits_for,omitempty"`  // why it is pending; in the record of an open run
	Definition string                     `json:"definition,omitempty"` // digest of the flow's files, as they were
	Policy     string                     `json:"policy,omitempty"`     // digest of what its tasks were granted and the operator allowed; empty without grants
	RetryOf    ID                         `json:"retry_of,omitempty"`   // the run that this one continues
	Attempt    int                        `json:"attempt,omitempty"`    // position in its chain of reruns; none for the first run
	Parent     *Parent                    `json:"parent,omitempty"`     // the task of which this is a run of a sub-flow
	Params     map[string]json.RawMessage `json:"params"`
	Trigger    Trigger                    `json:"trigger"`
	Output     json.RawMessage            `json:"output"` // null until the run is done
	Error      *Failure                   `json:"error"`
	CreatedAt  time.Time                  `json:"created_at"`
	StartedAt  *time.Time                 `json:"started_at"`
	FinishedAt *time.Time                 `json:"finished_at"`
	DurationMS *float64                   `json:"duration_ms"` // from start to finish
	Tasks      []TaskRecord               `json:"tasks"`
	Truncated  bool                       `json:"truncated,omitempty"` // kept without what would not fit into a message
}

// TaskRecord is one task run of a [Record].
type TaskRecord struct {
	Task       string          `json:"task"`
	Key        *string         `json:"key"`
	State      State           `json:"state"`
	Outcome    *Outcome        `json:"outcome"` // of the last attempt
	Attempts   int             `json:"attempts"`
	Reused     bool            `json:"reused,omitempty"`    // the output is that of the run which this one continues
	Child      ID              `json:"child,omitempty"`     // the run of the sub-flow
	Items      json.RawMessage `json:"items,omitempty"`     // of a fan-out: a list, or an object
	Counts     *ItemCounts     `json:"counts,omitempty"`    // of a fan-out: its items by state
	Subject    string          `json:"subject,omitempty"`   // of a wait for a message
	Approval   string          `json:"approval,omitempty"`  // of a wait for one: what is to be approved
	Due        *time.Time      `json:"due,omitempty"`       // when the next attempt may start, or when a wait ends by itself
	Deadline   *time.Time      `json:"deadline,omitempty"`  // when a wait times out
	WaitsFor   *WaitsFor       `json:"waits_for,omitempty"` // why it does not compute; of a fan-out, why its waiting items do not; in the record of an open run
	StartedAt  *time.Time      `json:"started_at"`
	FinishedAt *time.Time      `json:"finished_at"`
	DurationMS *float64        `json:"duration_ms"`
	QueuedMS   float64         `json:"queued_ms,omitempty"` // of it, waiting for a place, memory or the module
	Module     string          `json:"module,omitempty"`
	Input      json.RawMessage `json:"input"`
	Output     json.RawMessage `json:"output"`
	Error      *Failure        `json:"error"`
	Reason     string          `json:"reason,omitempty"` // why the flow's own wiring skipped it
}

// NextAttempt is the number of a run that makes this one again.
func (r *Record) NextAttempt() int { return max(1, r.Attempt) + 1 }

// Ref names the task run within its run.
func (t *TaskRecord) Ref() TaskRef {
	ref := TaskRef{Task: t.Task}
	if t.Key != nil {
		ref.Key = *t.Key
	}
	return ref
}

// Record is the run's present state, its tasks in the given order; tasks that
// are not in it come last, and tasks of it to which nothing has happened yet
// are shown as waiting.
func (r *Run) Record(order []string) *Record {
	rec := &Record{
		Run: r.ID, Flow: r.Flow, State: r.State, Definition: r.Definition, RetryOf: r.RetryOf, Parent: r.Parent, Params: r.Params, Trigger: r.Trigger,
		Output: r.Output, Error: r.Failure, CreatedAt: r.CreatedAt,
		StartedAt: timeOrNil(r.StartedAt), FinishedAt: timeOrNil(r.FinishedAt),
		DurationMS: milliseconds(r.StartedAt, r.FinishedAt),
		Tasks:      make([]TaskRecord, 0, max(len(order), len(r.Tasks))),
	}
	if r.Attempt > 1 {
		rec.Attempt = r.Attempt
	}
	if rec.Params == nil {
		rec.Params = map[string]json.RawMessage{}
	}
	counts := r.countItems()
	seen := make(map[string]int, len(order))
	for i, name := range order {
		seen[name] = i
		if r.Task(TaskRef{Task: name}) == nil {
			rec.Tasks = append(rec.Tasks, TaskRecord{Task: name, State: Waiting})
		}
	}
	for _, t := range r.Tasks {
		if _, known := seen[t.Task]; !known {
			seen[t.Task] = len(seen)
		}
		rec.Tasks = append(rec.Tasks, t.record())
		if t.Items != nil {
			rec.Tasks[len(rec.Tasks)-1].Output = r.Gather(t)
			rec.Tasks[len(rec.Tasks)-1].Counts = counts[t.Task]
		}
	}
	slices.SortStableFunc(rec.Tasks, func(a, b TaskRecord) int {
		return cmp.Compare(seen[a.Task], seen[b.Task])
	})
	return rec
}

// Conclude adds the end of a run to a record that was made when all of its tasks were done.
func (rec *Record) Conclude(r *Run) {
	rec.State, rec.Output, rec.Error = r.State, r.Output, r.Failure
	rec.FinishedAt, rec.DurationMS = timeOrNil(r.FinishedAt), milliseconds(r.StartedAt, r.FinishedAt)
}

func (t *TaskRun) record() TaskRecord {
	rec := TaskRecord{
		Task: t.Task, State: t.State, Attempts: t.Attempts, Reused: t.Reused, Child: t.Child, Items: t.Items,
		Due: timeOrNil(t.Due), Deadline: timeOrNil(t.Deadline), Subject: t.Subject, Approval: t.Approval,
		StartedAt: timeOrNil(t.StartedAt), FinishedAt: timeOrNil(t.FinishedAt),
		DurationMS: milliseconds(t.StartedAt, t.FinishedAt),
		QueuedMS:   float64(t.Queued) / 1e6,
		Module:     t.Module, Input: t.Input, Output: t.Output, Error: t.Failure, Reason: t.Reason,
	}
	if t.Key != "" {
		rec.Key = &t.Key
	}
	if t.Outcome != "" {
		rec.Outcome = &t.Outcome
	}
	return rec
}

func timeOrNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	own := t // escapes, and only where there is a time
	return &own
}

func milliseconds(from, to time.Time) *float64 {
	if from.IsZero() || to.IsZero() {
		return nil
	}
	ms := float64(to.Sub(from)) / float64(time.Millisecond)
	return &ms
}

package run

import (
	"encoding/json"
	"time"
)

// Event is one fact that the journal holds. Run is empty for facts that belong
// to no run.
type Event struct {
	Run  ID
	At   time.Time // UTC
	Data EventData
}

// EventData is one of the types below.
type EventData interface {
	// Kind is the word under which the event is stored and published.
	Kind() string
}

// TaskRef names a task run within its run. Key is the item's key in a fan-out.
type TaskRef struct {
	Task string `json:"task"`
	Key  string `json:"key,omitempty"`
}

// Label is the task's name, with the item's key in brackets: "copy[eu]".
func (r TaskRef) Label() string {
	if r.Key == "" {
		return r.Task
	}
	return r.Task + "[" + r.Key + "]"
}

// Parent is the task whose attempt a run of a sub-flow is.
type Parent struct {
	Run ID `json:"run"`
	TaskRef
	Depth int `json:"depth"` // how many runs are above the child
}

// Events of a run, in the order of its life.
type (
	// Submitted accepts a run.
	Submitted struct {
		Flow        string                     `json:"flow"`
		Definition  string                     `json:"definition"` // digest
		Trigger     Trigger                    `json:"trigger"`
		Params      map[string]json.RawMessage `json:"params,omitempty"`
		Concurrency string                     `json:"concurrency,omitempty"` // the run's key under the flow's limit
		Key         string                     `json:"key,omitempty"`         // idempotency key of the request
		RetryOf     ID                         `json:"retry_of,omitempty"`    // the run that this one continues
		Parent      *Parent                    `json:"parent,omitempty"`      // of the run of a sub-flow

		Continuation json.RawMessage `json:"continuation,omitempty"` // a [Continuation]; nil for most

		// Attempt is the number of the run among those that it makes again, itself
		// included; 0 and 1 for the first.
		Attempt int `json:"attempt,omitempty"`

		// Awaits is how many TaskReused belong to it, where they take more than one
		// commit. A run that has fewer was not accepted.
		Awaits int `json:"awaits,omitempty"`
	}

	// TaskReused takes over the end of a task run from the run that this one
	// continues: its output when it succeeded. An item comes after its fan-out.
	TaskReused struct {
		TaskRef
		State   State           `json:"state,omitempty"` // succeeded when it is empty; running for a fan-out of which some items are to run
		Output  json.RawMessage `json:"output,omitempty"`
		Failure *Failure        `json:"error,omitempty"`
		Items   json.RawMessage `json:"items,omitempty"` // of a fan-out, see [TaskExpanded]
	}

	// Started lets the run's tasks go.
	Started struct{}

	// AttemptStarted gives an attempt to a host. Input and Config are recorded
	// once, with the first attempt; later ones use the same bytes.
	AttemptStarted struct {
		TaskRef
		Attempt  int             `json:"attempt"`
		Module   string          `json:"module"`
		Function string          `json:"function,omitempty"`
		Input    json.RawMessage `json:"input,omitempty"`
		Config   json.RawMessage `json:"config,omitempty"`
	}

	// AttemptFinished records the end of an attempt. With RetryAt set the task
	// run is ready again and due then; otherwise it is done.
	AttemptFinished struct {
		TaskRef
		Attempt  int             `json:"attempt"`
		Outcome  Outcome         `json:"outcome"`
		Output   json.RawMessage `json:"output,omitempty"`
		Failure  *Failure        `json:"error,omitempty"`
		RetryAt  time.Time       `json:"retry_at,omitzero"`
		Duration time.Duration   `json:"duration_ns,omitempty"`
		Queued   time.Duration   `json:"queued_ns,omitempty"` // as of a [Result]
	}

	// TaskExpanded fans a task out: it is running until all of its items are done,
	// each of which has its own task run. Items is a JSON list, or an object
	// whose fields are the items in the order of their names.
	TaskExpanded struct {
		TaskRef
		Items json.RawMessage `json:"items"`
	}

	// WaitStarted begins a wait. It ends by itself when it is due, or with a message
	// or a signal where Due is zero.
	WaitStarted struct {
		TaskRef
		Subject  string    `json:"subject,omitempty"`
		Approval string    `json:"approval,omitempty"` // what is to be approved
		Due      time.Time `json:"due,omitzero"`
		Deadline time.Time `json:"deadline,omitzero"` // when it times out; zero for never
	}

	// WaitEnded ends a wait that was started.
	WaitEnded struct {
		TaskRef
		State   State           `json:"state"`
		Payload json.RawMessage `json:"payload,omitempty"` // what ended it
		Failure *Failure        `json:"error,omitempty"`
	}

	// ChildStarted is an attempt that is a run of a sub-flow. It is in one commit
	// with that run's Submitted. The attempt's end is in the commit of the run's end.
	ChildStarted struct {
		TaskRef
		Attempt int             `json:"attempt"`
		Child   ID              `json:"child"`
		Input   json.RawMessage `json:"input,omitempty"` // recorded once, with the first attempt
	}

	// TaskEnded ends a task run without a further attempt: skipped, canceled
	// while it waited, or failed because its input could not be evaluated. It also
	// ends a fan-out, once all items that were started are done. A task that the flow's
	// own wiring skips has no failure, but a reason.
	TaskEnded struct {
		TaskRef
		State   State    `json:"state"`
		Failure *Failure `json:"error,omitempty"`
		Reason  string   `json:"reason,omitempty"`
	}

	// TaskCancelRequested stops one task run: it gets no further attempt, and the
	// one under way is canceled. What follows it sees it as not succeeded.
	TaskCancelRequested struct {
		TaskRef
		Failure *Failure `json:"error"` // why
	}

	// CancelRequested stops a run: no further attempt starts but those of its
	// hooks, and the ones under way are canceled.
	CancelRequested struct {
		Failure *Failure `json:"error"` // why; its outcome is canceled or timed_out
	}

	// Finished ends a run.
	Finished struct {
		State   State           `json:"state"`
		Output  json.RawMessage `json:"output,omitempty"` // a JSON object
		Failure *Failure        `json:"error,omitempty"`
	}
)

// Events that belong to no run.
type (
	// Defined records a definition before the first run that refers to it.
	Defined struct {
		Definition *Definition `json:"definition"`
	}

	// Decided moves the watermark of a source of triggers: everything that is not
	// after the position has made its run, or was turned away for good.
	Decided struct {
		Position
	}

	// HostPaused stops the host: no attempt starts until HostResumed.
	HostPaused struct {
		Reason string `json:"reason"`
	}

	// HostResumed lets attempts start again.
	HostResumed struct{}
)

// Kinds under which events are stored.
const (
	KindSubmitted           = "submitted"
	KindStarted             = "started"
	KindAttemptStarted      = "attempt_started"
	KindAttemptFinished     = "attempt_finished"
	KindTaskEnded           = "task_ended"
	KindCancelRequested     = "cancel_requested"
	KindFinished            = "finished"
	KindTaskReused          = "task_reused"
	KindTaskCancelRequested = "task_cancel_requested"
	KindTaskExpanded        = "task_expanded"
	KindWaitStarted         = "wait_started"
	KindWaitEnded           = "wait_ended"
	KindChildStarted        = "child_started"
	KindDefined             = "defined"
	KindDecided             = "decided"
	KindHostPaused          = "host_paused"
	KindHostResumed         = "host_resumed"
	KindScheduleSet         = "schedule_set"
	KindScheduleAdvanced    = "schedule_advanced"
	KindSchedulePaused      = "schedule_paused"
	KindScheduleResumed     = "schedule_resumed"
	KindBackfillStarted     = "backfill_started"
	KindBackfillAdvanced    = "backfill_advanced"
	KindBackfillEnded       = "backfill_ended"
)

func (*Submitted) Kind() string           { return KindSubmitted }
func (*Started) Kind() string             { return KindStarted }
func (*AttemptStarted) Kind() string      { return KindAttemptStarted }
func (*AttemptFinished) Kind() string     { return KindAttemptFinished }
func (*TaskEnded) Kind() string           { return KindTaskEnded }
func (*TaskReused) Kind() string          { return KindTaskReused }
func (*TaskCancelRequested) Kind() string { return KindTaskCancelRequested }
func (*TaskExpanded) Kind() string        { return KindTaskExpanded }
func (*WaitStarted) Kind() string         { return KindWaitStarted }
func (*WaitEnded) Kind() string           { return KindWaitEnded }
func (*ChildStarted) Kind() string        { return KindChildStarted }
func (*CancelRequested) Kind() string     { return KindCancelRequested }
func (*Finished) Kind() string            { return KindFinished }
func (*Defined) Kind() string             { return KindDefined }
func (*Decided) Kind() string             { return KindDecided }
func (*HostPaused) Kind() string          { return KindHostPaused }
func (*HostResumed) Kind() string         { return KindHostResumed }

// OfTask reports whether an event is about one task of a run.
func OfTask(data EventData) bool {
	switch data.(type) {
	case *AttemptStarted, *AttemptFinished, *TaskEnded, *TaskReused, *TaskCancelRequested,
		*TaskExpanded, *WaitStarted, *WaitEnded, *ChildStarted:
		return true
	}
	return false
}

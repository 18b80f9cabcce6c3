package bus

import (
	"fmt"
	"time"

	"github.com/flowhost/flowhost/run"
)

// eventBody is an event as it is published. Inputs and outputs of tasks are in the
// record of the event "finished" only.
type eventBody struct {
	ID   string    `json:"id"` // "<shard>-<revision>-<index>", the same however often it is published
	Kind string    `json:"kind"`
	Flow string    `json:"flow"`
	Run  run.ID    `json:"run"`
	At   time.Time `json:"at"`

	Task       string       `json:"task,omitempty"`
	Key        string       `json:"key,omitempty"`
	Attempt    int          `json:"attempt,omitempty"`
	Outcome    run.Outcome  `json:"outcome,omitempty"`
	State      run.State    `json:"state,omitempty"`
	Error      *run.Failure `json:"error,omitempty"`
	RetryAt    *time.Time   `json:"retry_at,omitempty"`
	DurationMS *float64     `json:"duration_ms,omitempty"`

	Record    *run.Record `json:"record,omitempty"`
	Truncated bool        `json:"truncated,omitempty"` // the record, or parts of it, did not fit
}

// newEventBody gives the event of a notice without its record.
func newEventBody(n run.Notice, id string) eventBody {
	e := eventBody{ID: id, Kind: n.Event.Data.Kind(), Flow: n.Flow, Run: n.Event.Run, At: n.Event.At}
	switch d := n.Event.Data.(type) {
	case *run.AttemptStarted:
		e.Task, e.Key, e.Attempt = d.Task, d.Key, d.Attempt
	case *run.AttemptFinished:
		e.Task, e.Key, e.Attempt = d.Task, d.Key, d.Attempt
		e.Outcome, e.Error = d.Outcome, d.Failure
		ms := float64(d.Duration) / float64(time.Millisecond)
		e.DurationMS = &ms
		if !d.RetryAt.IsZero() {
			e.RetryAt = &d.RetryAt
		}
	case *run.TaskEnded:
		e.Task, e.Key, e.State, e.Error = d.Task, d.Key, d.State, d.Failure
	case *run.CancelRequested:
		e.Error = d.Failure
	case *run.Finished:
		e.State, e.Error = d.State, d.Failure
	}
	return e
}

// encodeEvent gives an event's JSON in at most limit bytes where that can be had
// by leaving parts of the record out.
func encodeEvent(n run.Notice, id string, limit int) ([]byte, error) {
	e := newEventBody(n, id)
	for _, record := range recordForms(n.Record) {
		e.Record, e.Truncated = record, record != n.Record
		body, err := run.EncodeJSON(e)
		if err != nil {
			return nil, fmt.Errorf("event %s: %w", id, err)
		}
		if len(body) <= limit || record == nil {
			return body, nil
		}
	}
	return nil, nil // not reached: the last form is nil
}

// recordBody is a record that answers a request.
type recordBody struct {
	*run.Record
	Truncated bool `json:"truncated,omitempty"`
}

// encodeRecord gives a record's JSON, without the tasks' inputs and outputs where
// it would be over the limit. It may still be.
func encodeRecord(record *run.Record, limit int) ([]byte, error) {
	body, err := run.EncodeJSON(recordBody{Record: record})
	if err != nil || len(body) <= limit {
		return body, err
	}
	return run.EncodeJSON(recordBody{Record: slim(record), Truncated: true})
}

// recordForms are a record, the same without the tasks' inputs and outputs, and
// none.
func recordForms(record *run.Record) []*run.Record {
	if record == nil {
		return []*run.Record{nil}
	}
	return []*run.Record{record, slim(record), nil}
}

func slim(record *run.Record) *run.Record {
	less := *record
	less.Tasks = make([]run.TaskRecord, len(record.Tasks))
	for i, t := range record.Tasks {
		t.Input, t.Output = nil, nil
		less.Tasks[i] = t
	}
	return &less
}

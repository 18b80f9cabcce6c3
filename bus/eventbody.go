package bus

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
)

// eventBody is an event as it is published. Inputs and outputs of tasks are in the
// record of the event "finished" only.
type eventBody struct {
	ID   string    `json:"id"` // "<shard>-<revision>-<index>-<checksum of the commit>", the same however often it is published
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
	Child      run.ID       `json:"child,omitempty"` // the run of a sub-flow that is the attempt
	Subject    string       `json:"subject,omitempty"`
	Approval   string       `json:"approval,omitempty"` // what is to be approved
	Due        *time.Time   `json:"due,omitempty"`      // when a wait ends by itself
	Deadline   *time.Time   `json:"deadline,omitempty"` // when it times out
	DurationMS *float64     `json:"duration_ms,omitempty"`

	// "record", and "truncated" when it, or parts of it, did not fit, are added to
	// the encoded event.
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
	case *run.TaskReused:
		e.Task, e.Key, e.State, e.Error = d.Task, d.Key, d.State, d.Failure
	case *run.TaskCancelRequested:
		e.Task, e.Key, e.Error = d.Task, d.Key, d.Failure
	case *run.TaskExpanded:
		e.Task = d.Task
	case *run.WaitStarted:
		e.Task, e.Subject, e.Approval = d.Task, d.Subject, d.Approval
		if !d.Due.IsZero() {
			e.Due = &d.Due
		}
		if !d.Deadline.IsZero() {
			e.Deadline = &d.Deadline
		}
	case *run.WaitEnded:
		e.Task, e.State, e.Error = d.Task, d.State, d.Failure
	case *run.ChildStarted:
		e.Task, e.Key, e.Attempt, e.Child = d.Task, d.Key, d.Attempt, d.Child
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
	event, err := run.EncodeJSON(newEventBody(n, id))
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", id, err)
	}
	if n.Record == nil {
		return event, nil
	}
	record, err := recordJSON(n)
	if err == nil && len(event)+len(record)+len(`,"record":`) <= limit {
		return extend(event, `,"record":`, record), nil
	}
	event = extend(event, `,"truncated":true`, nil)
	if err == nil {
		record, err = fitting(n.Record, nil, limit-len(event)-len(`,"record":`), folded, slim)
	}
	if err != nil {
		return nil, fmt.Errorf("event %s: %w", id, err)
	}
	if len(event)+len(record)+len(`,"record":`) > limit {
		return event, nil
	}
	return extend(event, `,"record":`, record), nil
}

// extend adds a member to a JSON object that has some: the encoder would go through
// an encoded value again.
func extend(object []byte, member string, value []byte) []byte {
	longer := make([]byte, 0, len(object)+len(member)+len(value))
	longer = append(longer, object[:len(object)-1]...)
	longer = append(longer, member...)
	longer = append(longer, value...)
	return append(longer, '}')
}

// encodeRecord gives a record's JSON, without the items of fan-outs and the tasks'
// inputs and outputs where it would be over the limit. It may still be.
func encodeRecord(record *run.Record, limit int) ([]byte, error) {
	body, err := record.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	return fitting(record, body, limit, folded, slim)
}

// fitting leaves out more and more of a record until its JSON has at most limit
// bytes. It is what is left in the end if it never has. The body is that of the
// whole record; nil for one that is too large.
func fitting(record *run.Record, body []byte, limit int, less ...func(*run.Record) *run.Record) ([]byte, error) {
	var err error
	for _, without := range less {
		if err != nil || body != nil && len(body) <= limit {
			break
		}
		record = without(record)
		body, err = record.AppendJSON(nil)
	}
	return body, err
}

// folded is a record without the items of fan-outs, which may be very many. What
// they gave is in the outputs of their tasks.
func folded(record *run.Record) *run.Record {
	less := *record
	less.Truncated = true
	less.Tasks = slices.DeleteFunc(slices.Clone(record.Tasks), func(t run.TaskRecord) bool { return t.Key != nil })
	return &less
}

// slim is a record without the tasks' inputs and outputs.
func slim(record *run.Record) *run.Record {
	less := *record
	less.Truncated = true
	less.Tasks = make([]run.TaskRecord, len(record.Tasks))
	for i, t := range record.Tasks {
		t.Input, t.Output, t.Items = nil, nil, nil
		less.Tasks[i] = t
	}
	return &less
}

// recordJSON gives the JSON of the record that a notice carries.
func recordJSON(n run.Notice) ([]byte, error) {
	if n.RecordJSON != nil {
		return n.RecordJSON, nil
	}
	return n.Record.AppendJSON(nil)
}

// encodeKept gives the JSON of a notice's record for the history, in at most limit
// bytes: first the items of fan-outs are left out, then the tasks' inputs and outputs,
// then all of the tasks, the params, the payload and the output. whole is the record
// that something was left out of; nil when nothing was.
func encodeKept(n run.Notice, limit int) (body, whole []byte, err error) {
	body, err = recordJSON(n)
	if err != nil || len(body) <= limit {
		return body, nil, err
	}
	whole = body
	body, err = fitting(n.Record, whole, limit, folded, slim, bare)
	return body, whole, err
}

// bare is a record without what can be large.
func bare(record *run.Record) *run.Record {
	less := *record
	less.Truncated = true
	less.Params, less.Output, less.Tasks = map[string]json.RawMessage{}, nil, []run.TaskRecord{}
	less.Trigger.Headers, less.Trigger.Payload = nil, nil
	if record.Error != nil {
		failure := *record.Error
		failure.Details = nil
		less.Error = &failure
	}
	return &less
}

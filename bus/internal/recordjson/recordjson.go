package recordjson

import (
	"encoding/json"
	"slices"

	"github.com/flowhost/flowhost/run"
)

// Encode gives a record's JSON, without the items of fan-outs and the tasks'
// inputs and outputs where it would be over the limit. It may still be.
func Encode(record *run.Record, limit int) ([]byte, error) {
	body, err := record.AppendJSON(nil)
	if err != nil {
		return nil, err
	}
	return Fit(record, body, limit, Folded, Slim)
}

// Fit leaves out more and more of a record until its JSON has at most limit
// bytes. It is what is left in the end if it never has. The body is that of the
// whole record; nil for one that is too large.
func Fit(record *run.Record, body []byte, limit int, less ...func(*run.Record) *run.Record) ([]byte, error) {
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

// Folded is a record without the items of fan-outs, which may be very many. What
// they gave is in the outputs of their tasks.
func Folded(record *run.Record) *run.Record {
	less := *record
	less.Truncated = true
	less.Tasks = slices.DeleteFunc(slices.Clone(record.Tasks), func(t run.TaskRecord) bool { return t.Key != nil })
	return &less
}

// Slim is a record without the tasks' inputs and outputs.
func Slim(record *run.Record) *run.Record {
	less := *record
	less.Truncated = true
	less.Tasks = make([]run.TaskRecord, len(record.Tasks))
	for i, t := range record.Tasks {
		t.Input, t.Output, t.Items = nil, nil, nil
		less.Tasks[i] = t
	}
	return &less
}

// Of gives the JSON of the record that a notice carries.
func Of(n run.Notice) ([]byte, error) {
	if n.RecordJSON != nil {
		return n.RecordJSON, nil
	}
	return n.Record.AppendJSON(nil)
}

// EncodeKept gives the JSON of a notice's record for the history, in at most limit
// bytes: first the items of fan-outs are left out, then the tasks' inputs and outputs,
// then all of the tasks, the params, the payload and the output. whole is the record
// that something was left out of; nil when nothing was.
func EncodeKept(n run.Notice, limit int) (body, whole []byte, err error) {
	body, err = Of(n)
	if err != nil || len(body) <= limit {
		return body, nil, err
	}
	whole = body
	body, err = Fit(n.Record, whole, limit, Folded, Slim, bare)
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

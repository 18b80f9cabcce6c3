package run

import (
	"encoding/json"
	"fmt"
	"time"
)

// TriggerKind is what requested a run.
type TriggerKind string

// Kinds of triggers.
const (
	TriggerManual   TriggerKind = "manual"   // a person or a program, through the CLI or the API
	TriggerSchedule TriggerKind = "schedule" // a schedule of the flow
	TriggerBackfill TriggerKind = "backfill" // a nominal time of a schedule, asked for afterwards
	TriggerMessage  TriggerKind = "message"  // a message on NATS
	TriggerTask     TriggerKind = "task"     // a task of another run, of which this is a sub-flow
	TriggerFlow     TriggerKind = "flow"     // the end of a run of a flow
)

// Trigger is what asked for a run, as the flow's expressions see it.
type Trigger struct {
	Kind    TriggerKind         `json:"kind"`
	Name    string              `json:"name,omitempty"` // of the trigger block; empty when the flow was asked for by name
	Time    time.Time           `json:"time"`           // nominal fire time, or when the message arrived
	Subject string              `json:"subject,omitempty"`
	Headers map[string][]string `json:"headers,omitempty"`
	Payload json.RawMessage     `json:"payload,omitempty"` // valid JSON
}

// Scheduled reports whether the time is the nominal time of a schedule: of a fire, of a
// backfill, or of a run that makes such a run again.
func (t *Trigger) Scheduled() bool { return t.Kind.Scheduled() }

// Scheduled reports whether the time of such a trigger is the nominal time of a schedule.
func (k TriggerKind) Scheduled() bool { return k == TriggerSchedule || k == TriggerBackfill }

// Request asks for a run of a flow.
type Request struct {
	Flow    string
	Trigger Trigger
	Params  map[string]json.RawMessage // given by name; others come from the trigger and the defaults

	// Key makes the request safe to repeat: the same key for the same flow within a
	// day gives the receipt of the first run again. Empty for none.
	Key string

	// Position is the request's place in the stream that it came from. A
	// request that is not after the recorded watermark of its source has been
	// decided before and is not accepted again. The zero value has no source.
	Position Position
}

// Position is a place in an ordered source of triggers: a JetStream stream.
type Position struct {
	Source string    `json:"source,omitempty"`
	Seq    uint64    `json:"seq,omitempty"`
	At     time.Time `json:"at,omitzero"` // when the source stored it, by the source's clock; zero if that is not known
}

// After reports whether a position comes after a watermark of its source. A stream
// that has lost its end gives the numbers of what is lost to other messages: these
// were stored later than everything that was decided.
func (p Position) After(watermark Position) bool {
	return p.Seq > watermark.Seq || !watermark.At.IsZero() && p.At.After(watermark.At)
}

// RequestError answers a request that cannot make a run. Nothing was recorded.
type RequestError struct {
	Code    string // one of the Request codes
	Message string // what is wrong and what to do
}

// Codes of request errors.
const (
	RequestUnknownFlow = "unknown_flow" // no flow, or no trigger of the flow, has that name
	RequestPayload     = "payload"      // the message is not JSON, or not what the trigger takes
	RequestUnknownTask = "unknown_task" // no task or item to be run again has that name
	RequestParams      = "params"       // a parameter is unknown, missing or of the wrong type
	RequestExpression  = "expression"   // filter, key or params of the trigger cannot be evaluated on it
	RequestHeader      = "header"       // a header of the message is wrong
	RequestLoop        = "loop"         // flows start each other through messages without an end
	RequestSize        = "size"         // larger than a record of the journal may be
)

func (e *RequestError) Error() string { return e.Message }

// Requestf makes a RequestError.
func Requestf(code, format string, args ...any) *RequestError {
	return &RequestError{Code: code, Message: fmt.Sprintf(format, args...)}
}

package run

import (
	"encoding/json"
	"fmt"
)

// Continuation is what a run that continues another one, or runs one task of it
// again, does otherwise than a new run, besides taking over how tasks have ended.
// The journal keeps its JSON.
type Continuation struct {
	// Task was asked for by name. It runs even where another task has won already in
	// a group around it.
	Task TaskRef `json:"task,omitzero"`

	// Within are runs of sub-flows that are continued with it.
	Within []ContinuedChild `json:"within,omitempty"`
}

// ContinuedChild defines how the first run of a sub-flow's task, or item, begins.
type ContinuedChild struct {
	TaskRef
	Run          ID                         `json:"run"`              // that it continues
	Attempt      int                        `json:"attempt"`          // its number
	Params       map[string]json.RawMessage `json:"params"`           // with others than these it begins again; nil for any
	Reused       []*TaskReused              `json:"reused,omitempty"` // what it takes over
	Continuation *Continuation              `json:"continuation,omitempty"`
}

// Encode gives the recorded form, nil for an empty continuation.
func (c *Continuation) Encode() (json.RawMessage, error) {
	if c == nil || c.Task.Task == "" && len(c.Within) == 0 {
		return nil, nil
	}
	return EncodeJSON(c)
}

// DecodeContinuation reads what Encode gave. The error wraps ErrDamaged.
func DecodeContinuation(recorded json.RawMessage) (*Continuation, error) {
	c := new(Continuation)
	if len(recorded) == 0 {
		return c, nil
	}
	if err := json.Unmarshal(recorded, c); err != nil {
		return nil, fmt.Errorf("%w: what the run is to continue: %w", ErrDamaged, err)
	}
	return c, nil
}

package run

import (
	"encoding/json"
	"time"
)

// OpenWait is an open wait for a message.
type OpenWait struct {
	Run     ID
	Flow    string
	Wait    string // its name in the flow
	Subject string
	Since   time.Time // messages before do not end it
}

// Approval answers a wait for one. Its JSON form is the wait's payload.
type Approval struct {
	Approved bool
	By       string          // who decided it; empty if unnamed
	Reason   string          // empty for none
	Payload  json.RawMessage // further data, valid JSON; nil for none
}

// MarshalJSON gives an object of approved, by, payload and reason, with null for
// what is missing.
func (a Approval) MarshalJSON() ([]byte, error) {
	return EncodeJSON(struct {
		Approved bool            `json:"approved"`
		By       *string         `json:"by"`
		Payload  json.RawMessage `json:"payload"`
		Reason   *string         `json:"reason"`
	}{a.Approved, textOrNil(a.By), a.Payload, textOrNil(a.Reason)})
}

func textOrNil(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

package api

import (
	"encoding/json"

	"github.com/flowhost/flowhost/run"
)

// FlowInfo describes a flow to those who may ask for it.
type FlowInfo struct {
	Flow        string        `json:"flow"` // full name
	Description string        `json:"description,omitempty"`
	Params      []ParamInfo   `json:"params,omitempty"`
	Triggers    []TriggerInfo `json:"triggers,omitempty"`
}

// ParamInfo describes a param of a flow.
type ParamInfo struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Type        string          `json:"type"` // as flow files have it: "list(string)", or "any"
	Required    bool            `json:"required,omitempty"`
	Default     json.RawMessage `json:"default,omitempty"` // not shown when the param is sensitive
	Sensitive   bool            `json:"sensitive,omitempty"`
}

// TriggerInfo describes a trigger of a flow.
type TriggerInfo struct {
	Kind     run.TriggerKind `json:"kind"`
	Name     string          `json:"name"`
	Enabled  bool            `json:"enabled"`
	Schedule string          `json:"schedule,omitempty"` // cron expression or interval
	Timezone string          `json:"timezone,omitempty"`
	Subject  string          `json:"subject,omitempty"`
	Stream   string          `json:"stream,omitempty"`
	Payload  string          `json:"payload,omitempty"` // type of its messages, as flow files have it
	After    string          `json:"after,omitempty"`   // flow after whose runs it fires
	On       []run.State     `json:"on,omitempty"`      // in which they have ended
}

// FlowsRequest asks for the flows that can be started.
type FlowsRequest struct {
	Flow  string `json:"flow"`  // full name of the only one to list
	After string `json:"after"` // cursor: only flows whose names come later
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (*FlowsRequest) Check() error { return nil }

// FlowsPage is the answer to flows, in the order of their names.
type FlowsPage struct {
	Flows []FlowInfo `json:"flows"`
	Next  string     `json:"next,omitempty"` // cursor of what did not fit
}

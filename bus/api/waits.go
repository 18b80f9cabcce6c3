package api

import (
	"encoding/json"

	"github.com/flowhost/flowhost/run"
)

// SignalRequest ends a wait with a payload.
type SignalRequest struct {
	RunRequest
	Wait    string          `json:"wait"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *SignalRequest) Check() error {
	if b.Wait == "" {
		return run.Requestf(run.RequestParams, "wait: the name of a wait is missing")
	}
	return b.RunRequest.Check()
}

// ApproveRequest decides a wait for an approval.
type ApproveRequest struct {
	RunRequest
	Wait     string          `json:"wait"`
	Payload  json.RawMessage `json:"payload,omitempty"`
	Approved *bool           `json:"approved"` // without it nothing is decided
	By       string          `json:"by,omitempty"`
	Reason   string          `json:"reason,omitempty"`
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *ApproveRequest) Check() error {
	if b.Approved == nil {
		return run.Requestf(run.RequestParams, "approved: true or false is missing")
	}
	return (&SignalRequest{RunRequest: b.RunRequest, Wait: b.Wait}).Check()
}

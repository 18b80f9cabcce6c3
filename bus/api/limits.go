package api

import (
	"github.com/flowhost/flowhost/run"
)

// LimitsRequest asks for the state of limits.
type LimitsRequest struct {
	After string `json:"after"` // cursor: only limits whose names come later
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (*LimitsRequest) Check() error { return nil }

// LimitsPage is the answer to limits.
type LimitsPage struct {
	Limits []run.LimitStatus `json:"limits"`
	Next   string            `json:"next,omitempty"` // cursor of what did not fit
}

package api

import (
	"github.com/flowhost/flowhost/run"
)

type LimitsRequest struct {
	After string `json:"after"` // cursor: only limits whose names come later
}

func (*LimitsRequest) Check() error { return nil }

// LimitsPage is the answer to limits.
type LimitsPage struct {
	Limits []run.LimitStatus `json:"limits"`
	Next   string            `json:"next,omitempty"` // cursor of what did not fit
}

package api

import (
	"time"

	"github.com/flowhost/flowhost/run"
)

// Dead letters of a page.
const (
	defaultDeadLetters = 50
	maxDeadLetters     = 1000
)

// DeadLettersRequest asks for a page of dead letters, or for one of them.
type DeadLettersRequest struct {
	Flow   string `json:"flow"`   // only those of the flow
	Before uint64 `json:"before"` // cursor: only those with lower sequences
	Limit  int    `json:"limit"`
	Get    uint64 `json:"get"` // the sequence of one that is wanted whole, in place of a list
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *DeadLettersRequest) Check() error {
	if b.Limit < 0 || b.Limit > maxDeadLetters {
		return run.Requestf(run.RequestParams, "limit: %d is not between 0 and %d", b.Limit, maxDeadLetters)
	}
	if b.Get > 0 && (b.Flow != "" || b.Before > 0 || b.Limit > 0) {
		return run.Requestf(run.RequestParams, "get: it names one dead letter, so nothing else selects")
	}
	if b.Limit == 0 {
		b.Limit = defaultDeadLetters
	}
	return nil
}

// DeadLetterRequest names the dead letter to be sent again or discarded.
type DeadLetterRequest struct {
	Sequence uint64 `json:"sequence"`
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *DeadLetterRequest) Check() error {
	if b.Sequence == 0 {
		return run.Requestf(run.RequestParams, "sequence: it is required, and names a dead letter")
	}
	return nil
}

// Discarded is the answer to a request to discard a dead letter.
type Discarded struct {
	Sequence uint64 `json:"sequence"`
}

// DeadLetter is a message that could make no run, or end no wait.
type DeadLetter struct {
	Sequence uint64    `json:"sequence"`
	At       time.Time `json:"at"`
	Flow     string    `json:"flow"`
	Trigger  string    `json:"trigger,omitempty"`  // of the flow; empty when the flow was asked for by name
	ForWait  string    `json:"for_wait,omitempty"` // "<run>/<wait>", of a message that could not end a wait
	Subject  string    `json:"subject"`            // where it was published
	Code     string    `json:"code"`
	Reason   string    `json:"reason"`
	Size     int       `json:"size"`              // of the body, in bytes
	NoBody   bool      `json:"no_body,omitempty"` // the body was too large to be kept

	// Whole letters only. Bodies that are UTF-8 are in Body, others in Data.
	Headers map[string][]string `json:"headers,omitempty"`
	Body    *string             `json:"body,omitempty"`
	Data    []byte              `json:"data,omitempty"`
}

// DeadLettersPage is the answer to a request for dead letters.
type DeadLettersPage struct {
	Letters []DeadLetter `json:"deadletters"`
	Next    uint64       `json:"next,omitempty"` // cursor of those that follow
}

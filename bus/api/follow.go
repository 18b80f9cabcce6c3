package api

import (
	"encoding/json"
	"time"

	"github.com/flowhost/flowhost/run"
)

// FollowNow is the cursor behind everything that has happened so far.
const FollowNow = "now"

// FollowQuery selects events.
type FollowQuery struct {
	Flow  string   `json:"flow,omitempty"`  // default: those of all flows
	Run   run.ID   `json:"run,omitempty"`   // default: those of all runs
	Kinds []string `json:"kinds,omitempty"` // run.Kind words; default: all that are published
	After string   `json:"after,omitempty"` // a cursor, or FollowNow; default: from the beginning of what is kept
	Limit int      `json:"limit,omitempty"` // events of an answer; default 256, at most 1000
}

// FollowPage is an answer to a follower.
type FollowPage struct {
	Events []json.RawMessage `json:"events"`
	Next   string            `json:"next"` // cursor of what follows

	// Reset reports that events behind the cursor of the request are missing: the
	// journal holds them no more. The answers are without a gap from Since on.
	Reset bool       `json:"reset,omitempty"`
	Since *time.Time `json:"since,omitempty"`

	End bool `json:"end,omitempty"` // of the run that was asked for: nothing follows
}

// Encode gives the page as JSON. Its events are JSON already.
func (p *FollowPage) Encode() ([]byte, error) {
	rest := *p
	rest.Events = []json.RawMessage{}
	tail, err := run.EncodeJSON(rest)
	if err != nil {
		return nil, err
	}
	const head = `{"events":[`
	body := []byte(head)
	for i, event := range p.Events {
		if i > 0 {
			body = append(body, ',')
		}
		body = append(body, event...)
	}
	return append(body, tail[len(head):]...), nil
}

package run

import "time"

// LimitStatus is the state of a limit block. Its JSON form is stable.
type LimitStatus struct {
	Limit       string    `json:"limit"`                 // with the directory, "billing/api"
	Concurrency int       `json:"concurrency,omitempty"` // attempts that may be under way at once; 0 for no such bound
	InUse       int       `json:"in_use"`                // attempts under way
	Rate        string    `json:"rate,omitempty"`        // as in the flow file, "100/15m"; empty for no such bound
	Next        time.Time `json:"next,omitzero"`         // when the rate lets the next attempt start; the zero time for at once
	Waiting     int       `json:"waiting"`               // tasks that are ready and have the limit
}

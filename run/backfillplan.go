package run

import "time"

// BackfillRequest asks for the runs of the nominal times of a schedule in a range
// of the past.
type BackfillRequest struct {
	ID          ID          `json:"id,omitempty"` // names the backfill: asked for again, it makes no second one. Default: a new one
	Schedule    ScheduleRef `json:"-"`
	From        time.Time   `json:"from,omitzero"`          // part of the range
	To          time.Time   `json:"to,omitzero"`            // the range ends before it
	Reverse     bool        `json:"reverse,omitempty"`      // the latest time first
	OnlyMissing bool        `json:"only_missing,omitempty"` // leave out times with a known run, whatever its state
	MaxActive   int         `json:"max_active,omitempty"`   // runs at once; default DefaultBackfilled
	DryRun      bool        `json:"dry_run,omitempty"`      // start nothing
}

// BackfillPlan is what a request for a backfill comes to.
type BackfillPlan struct {
	ID       ID             `json:"id,omitempty"`       // empty for a dry run, and when nothing is missing
	Repeated bool           `json:"repeated,omitempty"` // it was asked for before: nothing was started now, and the other fields are empty
	Total    int            `json:"total"`              // nominal times
	Times    []BackfillTime `json:"times,omitempty"`    // in the order in which their turn comes
	Edited   time.Time      `json:"edited,omitzero"`    // when the schedule was edited last, if that is after the range has begun: earlier times were others then
	Until    time.Time      `json:"until,omitzero"`     // what the schedule has decided, when the range goes beyond that: it is filled up to there
}

// BackfillTime is a nominal time and what is known of its runs.
type BackfillTime struct {
	Time  time.Time `json:"time"`
	Run   ID        `json:"run,omitempty"`   // the latest one; empty when none is known
	State State     `json:"state,omitempty"` // of that run
}

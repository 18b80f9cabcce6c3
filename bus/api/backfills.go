package api

import (
	"time"

	"github.com/flowhost/flowhost/run"
)

// BackfillRequest is a request with its schedule beside the rest.
type BackfillRequest struct {
	run.ScheduleRef
	run.BackfillRequest
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *BackfillRequest) Check() error {
	if err := (&ScheduleRequest{b.ScheduleRef}).Check(); err != nil {
		return err
	}
	switch {
	case b.From.IsZero() || b.To.IsZero():
		return run.Requestf(run.RequestParams, "from and to are needed: the range of nominal times, in RFC 3339")
	case !b.From.Before(b.To):
		return run.Requestf(run.RequestParams, "from %s is not before to %s", b.From.Format(time.RFC3339Nano), b.To.Format(time.RFC3339Nano))
	case b.MaxActive < 0 || b.MaxActive > run.MaxBackfillTimes:
		return run.Requestf(run.RequestParams, "max_active: %d is not between 1 and %d", b.MaxActive, run.MaxBackfillTimes)
	case b.ID == "":
		return nil
	}
	return checkBackfillID(b.ID)
}

func checkBackfillID(id run.ID) error {
	if _, err := run.ParseID(string(id)); err != nil {
		return run.Requestf(run.RequestParams, "id: %s", err)
	}
	return nil
}

// BackfillPage is the answer to backfill. A dry run may need several.
type BackfillPage struct {
	run.BackfillPlan
	Next time.Time `json:"next,omitzero"` // where the times that did not fit begin: from of the next request, or to in reverse
}

// Backfill is the present state of a backfill.
type Backfill struct {
	ID run.ID `json:"id"`
	run.ScheduleRef
	First     time.Time `json:"first,omitzero"` // nominal time, of all the earliest
	Last      time.Time `json:"last,omitzero"`  // and the latest
	Total     int       `json:"total"`          // nominal times
	Done      int       `json:"done"`           // of these; the sum of the following
	Succeeded int       `json:"succeeded"`      // runs
	Failed    int       `json:"failed"`
	Canceled  int       `json:"canceled"`
	Rejected  int       `json:"rejected"`   // nominal times that the flow could make no run of
	Active    []run.ID  `json:"active"`     // runs that are going
	MaxActive int       `json:"max_active"` // runs at once
	StartedAt time.Time `json:"started_at"`
	EndedAt   time.Time `json:"ended_at,omitzero"` // the zero time while it goes
	Reason    string    `json:"reason,omitempty"`  // why it ended before its time
}

// Over reports whether nothing more comes of it.
func (b *Backfill) Over() bool { return !b.EndedAt.IsZero() && len(b.Active) == 0 }

// BackfillsRequest asks for backfills, newest first.
type BackfillsRequest struct {
	ID     run.ID `json:"id"`     // the only one to list
	Before run.ID `json:"before"` // cursor: only those with smaller ids
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (*BackfillsRequest) Check() error { return nil }

// BackfillsPage is the answer to backfills.
type BackfillsPage struct {
	Backfills []Backfill `json:"backfills"`
	Next      run.ID     `json:"next,omitempty"` // cursor of what did not fit
}

// CancelBackfillRequest ends a backfill early.
type CancelBackfillRequest struct {
	ID     run.ID `json:"id"`
	Reason string `json:"reason"`
}

// Check refuses a request that cannot be right, with a *run.RequestError.
func (b *CancelBackfillRequest) Check() error {
	if err := checkBackfillID(b.ID); err != nil {
		return err
	}
	return checkReason(b.Reason)
}

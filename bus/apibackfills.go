package bus

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
)

// BackfillControl is what an intake needs of an engine to fill in what schedules
// have left out.
type BackfillControl interface {
	Backfill(ctx context.Context, request run.BackfillRequest) (run.BackfillPlan, error)
	// Backfills gives those that go, and the last ones that have ended.
	Backfills(ctx context.Context) ([]run.Backfill, error)
	CancelBackfill(ctx context.Context, id run.ID, reason string) error
}

// backfillBody is a request with its schedule beside the rest.
type backfillBody struct {
	scheduleBody
	run.BackfillRequest
}

func (b *backfillBody) check() error {
	if err := b.scheduleBody.check(); err != nil {
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

// backfillPage is the answer to backfill. A dry run may need several.
type backfillPage struct {
	run.BackfillPlan
	Next time.Time `json:"next,omitzero"` // where the times go on that did not fit: from of the following request, or to in reverse
}

// backfill starts a backfill, or answers a dry run with what it would do.
func (d *desk) backfill(hard context.Context, m inbound) {
	var body backfillBody
	if !d.understood(m, &body) {
		return
	}
	body.Schedule = body.ScheduleRef
	d.read(hard, m, func(ctx context.Context) answer {
		err := d.unready()
		if body.DryRun {
			err = nil
		}
		var plan run.BackfillPlan
		if err == nil {
			plan, err = d.config.Backfills.Backfill(ctx, body.BackfillRequest)
		}
		if err != nil {
			return d.faultOf("", err)
		}
		times := plan.Times
		if !body.DryRun {
			times = nil // they are many, and their runs are not known yet
		}
		return d.shorten(len(times), func(n int) any {
			page := backfillPage{BackfillPlan: plan}
			page.Times = times[:n]
			if n > 0 && n < len(times) {
				page.Next = restFrom(times, n, body.Reverse)
			}
			return page
		})
	})
}

// restFrom is where a plan is to be asked for again, of which n times were told.
func restFrom(times []run.BackfillTime, n int, reverse bool) time.Time {
	if reverse {
		return times[n-1].Time
	}
	return times[n].Time
}

// Backfill is a backfill as it stands.
type Backfill struct {
	ID run.ID `json:"id"`
	run.ScheduleRef
	Total     int       `json:"total"`     // nominal times
	Done      int       `json:"done"`      // of these; the sum of the following
	Succeeded int       `json:"succeeded"` // runs
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

func backfillOf(b *run.Backfill) Backfill {
	active := b.Active
	if active == nil {
		active = []run.ID{}
	}
	return Backfill{
		ID: b.ID, ScheduleRef: b.Schedule, Total: b.Total, Done: b.Done(),
		Succeeded: b.Succeeded, Failed: b.Failed, Canceled: b.Canceled, Rejected: b.Rejected,
		Active: active, MaxActive: b.MaxActive, StartedAt: b.StartedAt, EndedAt: b.EndedAt, Reason: b.Reason,
	}
}

type backfillsBody struct {
	ID     run.ID `json:"id"`     // the only one to tell of
	Before run.ID `json:"before"` // cursor: only those with smaller ids
}

func (*backfillsBody) check() error { return nil }

// backfillsPage is the answer to backfills.
type backfillsPage struct {
	Backfills []Backfill `json:"backfills"`
	Next      run.ID     `json:"next,omitempty"` // cursor of what did not fit
}

// backfills answers with backfills as they stand, newest first.
func (d *desk) backfills(hard context.Context, m inbound) {
	var body backfillsBody
	if !d.understood(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		known, err := d.config.Backfills.Backfills(ctx)
		if err != nil {
			return d.faultOf("", err)
		}
		all := []Backfill{}
		for i := range known {
			if b := &known[i]; (body.ID == "" || b.ID == body.ID) && (body.Before == "" || b.ID < body.Before) {
				all = append(all, backfillOf(b))
			}
		}
		slices.SortFunc(all, func(a, b Backfill) int { return cmp.Compare(b.ID, a.ID) })
		return d.shorten(len(all), func(n int) any {
			page := backfillsPage{Backfills: all[:n]}
			if n > 0 && n < len(all) {
				page.Next = all[n-1].ID
			}
			return page
		})
	})
}

type cancelBackfillBody struct {
	ID     run.ID `json:"id"`
	Reason string `json:"reason"`
}

func (b *cancelBackfillBody) check() error {
	if err := checkBackfillID(b.ID); err != nil {
		return err
	}
	return checkReason(b.Reason)
}

// cancelBackfill ends a backfill before its time.
func (d *desk) cancelBackfill(hard context.Context, m inbound) {
	var body cancelBackfillBody
	if !d.understood(m, &body) {
		return
	}
	if err := d.config.Backfills.CancelBackfill(hard, body.ID, body.Reason); err != nil {
		d.respond(m, d.faultOf("", err))
		return
	}
	d.respond(m, answer{body: struct {
		ID run.ID `json:"id"`
	}{body.ID}})
}

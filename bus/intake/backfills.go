package intake

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/flowhost/flowhost/bus/api"
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

// backfill starts a backfill, or answers a dry run with what it would do.
func (d *requests) backfill(hard context.Context, m inbound) {
	var body api.BackfillRequest
	if !d.decode(m, &body) {
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
			page := api.BackfillPage{BackfillPlan: plan}
			page.Times = times[:n]
			if n > 0 && n < len(times) {
				page.Next = restFrom(times, n, body.Reverse)
			}
			return page
		})
	})
}

// restFrom is where a plan is to be asked for again, of which n times were given.
func restFrom(times []run.BackfillTime, n int, reverse bool) time.Time {
	if reverse {
		return times[n-1].Time
	}
	return times[n].Time
}

func backfillOf(b *run.Backfill) api.Backfill {
	active := b.Active
	if active == nil {
		active = []run.ID{}
	}
	return api.Backfill{
		ID: b.ID, ScheduleRef: b.Schedule, First: b.First, Last: b.Last, Total: b.Total, Done: b.Done(),
		Succeeded: b.Succeeded, Failed: b.Failed, Canceled: b.Canceled, Rejected: b.Rejected,
		Active: active, MaxActive: b.MaxActive, StartedAt: b.StartedAt, EndedAt: b.EndedAt, Reason: b.Reason,
	}
}

// backfills answers with the state of backfills, newest first.
func (d *requests) backfills(hard context.Context, m inbound) {
	var body api.BackfillsRequest
	if !d.decode(m, &body) {
		return
	}
	d.read(hard, m, func(ctx context.Context) answer {
		known, err := d.config.Backfills.Backfills(ctx)
		if err != nil {
			return d.faultOf("", err)
		}
		all := []api.Backfill{}
		for i := range known {
			if b := &known[i]; (body.ID == "" || b.ID == body.ID) && (body.Before == "" || b.ID < body.Before) {
				all = append(all, backfillOf(b))
			}
		}
		slices.SortFunc(all, func(a, b api.Backfill) int { return cmp.Compare(b.ID, a.ID) })
		return d.shorten(len(all), func(n int) any {
			page := api.BackfillsPage{Backfills: all[:n]}
			if n > 0 && n < len(all) {
				page.Next = all[n-1].ID
			}
			return page
		})
	})
}

// cancelBackfill ends a backfill before its time.
func (d *requests) cancelBackfill(hard context.Context, m inbound) {
	var body api.CancelBackfillRequest
	if !d.decode(m, &body) {
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

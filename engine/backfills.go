package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// Errors of backfills.
var (
	ErrNoTimes         = errors.New("the range has no past times of the schedule: future times fire by themselves")
	ErrUnknownBackfill = errors.New("no such backfill, or it ended long ago")
)

// TooManyError is returned for a backfill of more times than one may have.
type TooManyError struct {
	Limit int
	Last  time.Time // the last one of those that fit
	Rest  time.Time // where the range is to be cut
}

func (e *TooManyError) Error() string {
	return fmt.Sprintf("the range has more than %d times, the limit of a backfill, and the last one that fits is %s: split the range at %s",
		e.Limit, e.Last.Format(time.RFC3339Nano), e.Rest.Format(time.RFC3339Nano))
}

// Backfill makes the runs of past nominal times, a few at a time, after everything
// that is due. It continues after a restart until all of them have ended. If only
// missing runs are requested and none is missing, the plan has no times and no id.
func (e *Engine) Backfill(ctx context.Context, request run.BackfillRequest) (run.BackfillPlan, error) {
	if plan, err := e.existingBackfill(ctx, &request); err != nil || plan.Repeated {
		return plan, err
	}
	spec, known, err := e.findSchedule(ctx, request.Schedule)
	if err != nil {
		return run.BackfillPlan{}, err
	}
	plan, err := planBackfill(&request, spec, known)
	if err != nil {
		return run.BackfillPlan{}, err
	}
	if request.DryRun || request.OnlyMissing {
		if err := e.findRuns(ctx, &request, &plan); err != nil {
			return run.BackfillPlan{}, err
		}
	}
	plan.Total = len(plan.Times)
	if request.DryRun || plan.Total == 0 {
		return plan, nil
	}
	return e.startBackfill(ctx, &request, plan)
}

// existingBackfill gives the plan of a backfill that was requested before.
func (e *Engine) existingBackfill(ctx context.Context, request *run.BackfillRequest) (plan run.BackfillPlan, err error) {
	if request.ID == "" || request.DryRun {
		return plan, nil
	}
	err = e.durably(ctx, func() error {
		if b := e.exec.shard.Backfill(request.ID); b != nil {
			plan = repeatedPlan(b)
		}
		return nil
	})
	return plan, err
}

func repeatedPlan(b *run.Backfill) run.BackfillPlan {
	return run.BackfillPlan{ID: b.ID, Repeated: true, Total: b.Total}
}

// findSchedule gives a schedule as deployed and as recorded.
func (e *Engine) findSchedule(ctx context.Context, ref run.ScheduleRef) (spec *flows.Trigger, known run.Schedule, err error) {
	asked := e.command(ctx, func() {
		var s *schedule
		if s, err = e.exec.schedules.deployed(ref); err != nil {
			return
		}
		recorded := e.exec.shard.Schedules[ref]
		if s.spec == nil || recorded == nil {
			err = ErrDisabled
			return
		}
		spec, known = s.spec, *recorded
	})
	return spec, known, cmp.Or(asked, err)
}

func planBackfill(request *run.BackfillRequest, spec *flows.Trigger, known run.Schedule) (run.BackfillPlan, error) {
	var plan run.BackfillPlan
	to := request.To
	if beyond := known.Decided.Add(1); to.After(beyond) {
		to, plan.Until = beyond, known.Decided
	}
	if known.Edited.After(request.From) {
		plan.Edited = known.Edited
	}
	times := scheduler.Between(spec.Schedule, request.From, to)
	if request.Reverse {
		times = scheduler.Backward(spec.Schedule, request.From, to)
	}
	for t := range times {
		if len(plan.Times) == run.MaxBackfillTimes {
			return plan, tooMany(plan.Times[len(plan.Times)-1].Time, t.UTC())
		}
		plan.Times = append(plan.Times, run.BackfillTime{Time: t.UTC()})
	}
	if len(plan.Times) == 0 {
		return plan, ErrNoTimes
	}
	return plan, nil
}

// tooMany gives the place at which to cut a range: a part ends before a time, and the
// next one begins with it.
func tooMany(last, next time.Time) *TooManyError {
	rest := next
	if next.Before(last) {
		rest = last
	}
	return &TooManyError{Limit: run.MaxBackfillTimes, Last: last, Rest: rest}
}

// findRuns finds the runs that the times of a plan have made, and drops these times if
// only missing runs are requested.
func (e *Engine) findRuns(ctx context.Context, request *run.BackfillRequest, plan *run.BackfillPlan) error {
	found := map[int64]run.Summary{}
	q := run.Query{Flow: request.Schedule.Flow, Since: request.From, Limit: run.MaxPage}
	for {
		page, err := e.List(ctx, q)
		if err != nil {
			return err
		}
		for _, s := range page.Runs {
			of := s.Trigger.Name == request.Schedule.Trigger && (s.Trigger.Kind == run.TriggerSchedule || s.Trigger.Kind == run.TriggerBackfill)
			if _, newer := found[s.Trigger.Time.UnixNano()]; of && !newer {
				found[s.Trigger.Time.UnixNano()] = s
			}
		}
		if q.Before = page.Next; q.Before == "" {
			break
		}
	}
	for i := range plan.Times {
		if s, known := found[plan.Times[i].Time.UnixNano()]; known {
			plan.Times[i].Run, plan.Times[i].State = s.Run, s.State
		}
	}
	if request.OnlyMissing {
		plan.Times = slices.DeleteFunc(plan.Times, func(t run.BackfillTime) bool { return t.Run != "" })
	}
	return nil
}

// startBackfill records a backfill and starts its first runs.
func (e *Engine) startBackfill(ctx context.Context, request *run.BackfillRequest, plan run.BackfillPlan) (run.BackfillPlan, error) {
	plan.ID = request.ID
	if plan.ID == "" {
		plan.ID = e.exec.newID(e.exec.clock.now())
	}
	started := &run.BackfillStarted{ID: plan.ID, Schedule: request.Schedule, MaxActive: max(request.MaxActive, run.DefaultBackfilled)}
	for _, t := range plan.Times {
		started.Times = append(started.Times, t.Time)
	}
	err := e.durably(ctx, func() error {
		if b := e.exec.shard.Backfill(plan.ID); b != nil {
			plan = repeatedPlan(b)
			return nil
		}
		if err := e.exec.commits.record(run.Event{At: e.exec.clock.now(), Data: started}); err != nil {
			return tooLarge("the backfill", err)
		}
		e.exec.schedules.advanceBackfill(e.exec.shard.Backfill(plan.ID))
		return nil
	})
	return plan, err
}

// Backfills gives the active backfills and the last ones that have ended, in the order
// in which they began.
func (e *Engine) Backfills(ctx context.Context) ([]run.Backfill, error) {
	var all []run.Backfill
	err := e.durably(ctx, func() error {
		for _, b := range e.exec.shard.Backfills {
			all = append(all, *b)
			all[len(all)-1].Times, all[len(all)-1].Active = slices.Clone(b.Times), slices.Clone(b.Active)
		}
		return nil
	})
	return all, err
}

// CancelBackfill ends a backfill: its remaining times make no run, and its open runs
// are canceled.
func (e *Engine) CancelBackfill(ctx context.Context, id run.ID, reason string) error {
	return e.durably(ctx, func() error {
		b := e.exec.shard.Backfill(id)
		switch {
		case b == nil:
			return ErrUnknownBackfill
		case !b.EndedAt.IsZero():
			return ErrFinished
		}
		reason = cmp.Or(reason, "canceled") // without a reason, all times had their turn
		if err := e.exec.commits.record(run.Event{At: e.exec.clock.now(), Data: &run.BackfillEnded{ID: id, Reason: reason}}); err != nil {
			return err
		}
		for _, active := range slices.Clone(b.Active) {
			if o := e.exec.open[active]; o != nil {
				e.exec.cancel(o, canceled("its backfill was canceled: "+reason))
			}
		}
		return nil
	})
}

// maxBackfilled is how many runs of a backfill start in one turn of the loop.
const maxBackfilled = 64

// advanceBackfills continues all backfills.
func (ss *schedules) advanceBackfills() {
	ss.backfillsDue = false
	for _, b := range slices.Clone(ss.exec.shard.Backfills) {
		ss.advanceBackfill(b)
	}
}

// advanceBackfill starts as many runs of a backfill as may be open at once, and ends
// it after the last one. The end of a run must not call it: that may come before the
// run's start has returned.
func (ss *schedules) advanceBackfill(b *run.Backfill) {
	if !b.EndedAt.IsZero() {
		return
	}
	s := ss.byRef[b.Schedule]
	for n := 1; len(b.Times) > 0 && len(b.Active) < b.MaxActive && s != nil && s.flow != nil && ss.exec.fault == nil; n++ {
		if n > maxBackfilled || ss.exec.commits.congested() {
			ss.backfillsDue = true // the rest with the next turn of the loop
			return
		}
		if ss.exec.refusal() != nil {
			ss.retryBackfills()
			return
		}
		if !ss.startBackfillRun(b, s.flow) {
			return
		}
	}
	if len(b.Times) == 0 && len(b.Active) == 0 {
		ss.exec.commits.record(run.Event{At: ss.exec.clock.now(), Data: &run.BackfillEnded{ID: b.ID}})
		ss.exec.log.Info("a backfill has ended", "backfill", b.ID, "schedule", b.Schedule.String(),
			"succeeded", b.Succeeded, "failed", b.Failed, "canceled", b.Canceled, "rejected", b.Rejected)
	}
}

// startBackfillRun starts the next run of a backfill. It reports false while the flow still
// admits it: then the backfill continues afterwards.
func (ss *schedules) startBackfillRun(b *run.Backfill, f *flows.Flow) bool {
	nominal := b.Times[0]
	advanced := &run.BackfillAdvanced{ID: b.ID}
	request := run.Request{Flow: f.Name, Trigger: run.Trigger{Kind: run.TriggerBackfill, Name: b.Schedule.Trigger, Time: nominal}}
	a, evaluating := ss.backfilled[b.ID]
	switch {
	case evaluating && a == nil:
		return false
	case evaluating && a.flow == f && a.nominal.Equal(nominal):
		delete(ss.backfilled, b.ID)
	default:
		a = &scheduledAdmission{admission: admission{flow: f}, nominal: nominal}
		if ss.exec.evaluations.try(func(units int) bool { return a.try(units, request) }) {
			break
		}
		ss.backfilled[b.ID] = nil
		ss.exec.evaluations.begin(&evaluation{flow: f.Name, work: func() { a.try(0, request) }, then: func() {
			ss.backfilled[b.ID] = a
			ss.advanceBackfill(b)
			if b.EndedAt.IsZero() {
				return
			}
			delete(ss.backfilled, b.ID)
		}})
		return false
	}
	if _, err := ss.exec.accept(request, &a.admission, advanced); err != nil {
		ss.exec.log.Error("a run of a backfill was not started", "backfill", b.ID, "schedule", b.Schedule.String(), "nominal", nominal, "error", err)
		ss.exec.commits.record(run.Event{At: ss.exec.clock.now(), Data: advanced})
	}
	return true
}

// retryBackfills arms a timer that continues the backfills when there may be room
// again.
func (ss *schedules) retryBackfills() {
	if ss.backfillTimer || ss.exec.draining {
		return
	}
	ss.backfillTimer = true
	ss.exec.clock.at(ss.exec.clock.now().Add(postponement), func() {
		ss.backfillTimer = false
		ss.advanceBackfills()
	})
}

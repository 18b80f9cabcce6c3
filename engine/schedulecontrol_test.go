package engine

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
)

var everyHour = run.ScheduleRef{Flow: "f", Trigger: "s"}

// lastHours asks for a backfill of the hours before the epoch.
func lastHours(n int) run.BackfillRequest {
	return run.BackfillRequest{Schedule: everyHour, From: epoch.Add(-time.Duration(n) * time.Hour), To: epoch}
}

// Runs that end as soon as they start, because all their tasks are skipped, end
// their backfill once.
func TestBackfillOfRunsWithoutAttempts(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  trigger "schedule" "s" { cron = "0 * * * *" }
  task "a" {
    plugin = "./m.wasm"
    when   = false
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		request := lastHours(9_000)
		request.MaxActive = 3
		if _, err := r.Backfill(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		all, err := r.Backfills(t.Context())
		if err != nil || all[0].Succeeded != 9_000 || all[0].EndedAt.IsZero() {
			t.Errorf("%d backfills, %v", len(all), err)
		}
		r.stop()
	})
}

// Who asks for what is missing is not refused when nothing is, and not answered
// with something else when the first answer was lost.
func TestBackfillOfWhatIsMissing(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`cron = "0 * * * *"`))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Second)}}, set)
		request := lastHours(2)
		request.OnlyMissing, request.ID = true, run.NewID(time.Now())
		first, err := r.Backfill(t.Context(), request)
		if err != nil || first.ID != request.ID || first.Total != 2 || first.Repeated {
			t.Fatalf("%+v, %v", first, err)
		}
		time.Sleep(time.Minute)
		again, err := r.Backfill(t.Context(), request)
		if err != nil || again.ID != request.ID || again.Total != 2 || !again.Repeated {
			t.Errorf("the same again: %+v, %v", again, err)
		}
		request.ID = ""
		if plan, err := r.Backfill(t.Context(), request); err != nil || plan.ID != "" || plan.Total != 0 {
			t.Errorf("nothing is missing: %+v, %v", plan, err)
		}
		r.stop()
	})
}

// A range with too many times is cut so that no time is in both parts, or in none.
func TestTooManyTimesAreCut(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`cron = "0 * * * *"`))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		for _, reverse := range []bool{false, true} {
			request := lastHours(run.MaxBackfillTimes + 5)
			request.DryRun, request.Reverse = true, reverse
			tooMany := new(TooManyError)
			if _, err := r.Backfill(t.Context(), request); !errors.As(err, &tooMany) {
				t.Fatal(err)
			}
			first, second := request, request
			first.To, second.From = tooMany.Rest, tooMany.Rest
			if reverse {
				first, second = second, first
			}
			plan, err := r.Backfill(t.Context(), first)
			if err != nil || plan.Total != run.MaxBackfillTimes || !plan.Times[plan.Total-1].Time.Equal(tooMany.Last) {
				t.Errorf("reverse %t, the first part: %d times, %v", reverse, plan.Total, err)
			}
			if plan, err = r.Backfill(t.Context(), second); err != nil || plan.Total != 5 {
				t.Errorf("reverse %t, the second part: %d times, %v", reverse, plan.Total, err)
			}
		}
		r.stop()
	})
}

func TestSchedulesThatAreOff(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`
		every   = "1h"
		start   = "2000-01-01T00:00:00Z"
		enabled = false`))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		if _, err := r.Pause(t.Context(), everyHour, "why"); !errors.Is(err, ErrDisabled) {
			t.Errorf("pause: %v", err)
		}
		if _, err := r.Resume(t.Context(), everyHour); !errors.Is(err, ErrNotPaused) {
			t.Errorf("resume: %v", err)
		}
		if _, err := r.Backfill(t.Context(), lastHours(1)); !errors.Is(err, ErrDisabled) {
			t.Errorf("backfill: %v", err)
		}
		if receipt, err := r.Fire(t.Context(), everyHour, run.Request{}); err != nil || !receipt.Accepted {
			t.Errorf("fire: %+v, %v", receipt, err)
		}
		all, err := r.Schedules(t.Context())
		if err != nil || len(all) != 1 || all[0].Enabled || all[0].Expression != "every 1h" {
			t.Errorf("%+v, %v", all, err)
		}
		r.stop()
	})
}

// A message trigger that has got the name of a schedule is none.
func TestSchedulesAreNoMessageTriggers(t *testing.T) {
	t.Parallel()
	before, after := load(t, scheduled(`every = "1h"`)), load(t, `
flow "f" {
  trigger "message" "s" { subject = "hours" }
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, before)
		if err := r.Deploy(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		if all, err := r.Schedules(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		r.stop()
	})
}

// A backfill that is canceled without a reason is told from one that has ended.
func TestCanceledBackfillsHaveAReason(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`cron = "0 * * * *"`))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Hour)}}, set)
		plan, err := r.Backfill(t.Context(), lastHours(3))
		if err != nil {
			t.Fatal(err)
		}
		if err := r.CancelBackfill(t.Context(), plan.ID, ""); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if all, err := r.Backfills(t.Context()); err != nil || all[0].Reason == "" || all[0].Done() != 1 || all[0].Canceled != 1 {
			t.Errorf("%+v, %v", all, err)
		}
		r.stop()
	})
}

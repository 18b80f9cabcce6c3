package engine

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// backfilled gives the nominal times of the runs of backfills, in the order in
// which they started.
func backfilled(t *testing.T, j Journal) []time.Duration {
	t.Helper()
	var runs []*run.Run
	for _, r := range fold(t, j).Runs {
		if r.Trigger.Kind == run.TriggerBackfill {
			runs = append(runs, r)
		}
	}
	slices.SortFunc(runs, func(a, b *run.Run) int { return a.StartedAt.Compare(b.StartedAt) })
	var times []time.Duration
	for _, r := range runs {
		times = append(times, r.Trigger.Time.Sub(epoch))
	}
	return times
}

func wantBackfilled(t *testing.T, j Journal, want ...time.Duration) {
	t.Helper()
	if diff := cmp.Diff(want, backfilled(t, j)); diff != "" {
		t.Errorf("nominal times of the backfill's runs (-want +got):\n%s", diff)
	}
}

func TestBackfill(t *testing.T) {
	t.Parallel()
	const h = time.Hour
	for _, c := range []struct {
		name    string
		request run.BackfillRequest
		want    []time.Duration
	}{
		{"forwards", run.BackfillRequest{}, []time.Duration{-2 * h, -h, 0, h, 2 * h}},
		{"backwards", run.BackfillRequest{Reverse: true}, []time.Duration{2 * h, h, 0, -h, -2 * h}},
		{"what is missing", run.BackfillRequest{OnlyMissing: true}, []time.Duration{-2 * h, -h, 0}},
	} {
		for _, crash := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, crash %t", c.name, crash), func(t *testing.T) {
				t.Parallel()
				set := load(t, scheduled(`cron = "0 * * * *"`))
				synctest.Test(t, func(t *testing.T) {
					journal := memory.NewJournal()
					r := boot(t, Config{Journal: journal, Invoker: guests{"a": takes(time.Minute)}}, set)
					time.Sleep(2*h + 10*time.Minute)
					request := c.request
					request.Schedule, request.From, request.To = hourly, epoch.Add(-2*h), epoch.Add(24*h)
					plan, err := r.Backfill(t.Context(), request)
					if err != nil || len(plan.Times) != len(c.want) || !plan.Until.Equal(epoch.Add(2*h)) {
						t.Fatalf("%+v, %v", plan, err)
					}
					if crash {
						time.Sleep(90 * time.Second)
						r.crash()
						r = boot(t, Config{Journal: journal, Invoker: guests{"a": takes(time.Minute)}}, set)
					}
					time.Sleep(30 * time.Minute)
					all, err := r.Backfills(t.Context())
					if err != nil || len(all) != 1 || all[0].ID != plan.ID || all[0].EndedAt.IsZero() || all[0].Succeeded != len(c.want) {
						t.Errorf("%+v, %v", all, err)
					}
					r.stop()
					wantBackfilled(t, journal, c.want...)
					wantFires(t, journal, h, 2*h) // live fires are not touched
				})
			})
		}
	}
}

// A request that is repeated, because its answer was lost, makes no second
// backfill.
func TestBackfillIsAskedForTwice(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`cron = "0 * * * *"`))
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"a": takes(time.Second)}}, set)
		request := run.BackfillRequest{ID: run.NewID(time.Now()), Schedule: hourly, From: epoch.Add(-2 * time.Hour), To: epoch}
		for range 2 {
			if _, err := r.Backfill(t.Context(), request); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(time.Minute)
		r.stop()
		wantBackfilled(t, journal, -2*time.Hour, -time.Hour)
	})
}

func TestBackfillIsCanceled(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`cron = "0 * * * *"`))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Minute)}}, set)
		plan, err := r.Backfill(t.Context(), run.BackfillRequest{Schedule: hourly, From: epoch.Add(-10 * time.Hour), To: epoch, MaxActive: 2})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(90 * time.Second)
		if err := r.CancelBackfill(t.Context(), plan.ID, "not needed"); err != nil {
			t.Fatal(err)
		}
		if err := r.CancelBackfill(t.Context(), plan.ID, "not needed"); !errors.Is(err, ErrFinished) {
			t.Errorf("canceled twice: %v", err)
		}
		if err := r.CancelBackfill(t.Context(), "x", ""); !errors.Is(err, ErrUnknownBackfill) {
			t.Errorf("unknown: %v", err)
		}
		time.Sleep(time.Hour)
		all, err := r.Backfills(t.Context())
		if err != nil || all[0].Succeeded != 2 || all[0].Canceled != 2 || all[0].Reason != "not needed" || len(all[0].Active) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
		r.stop()
	})
}

func TestBackfillPlans(t *testing.T) {
	t.Parallel()
	set, edited := load(t, scheduled(`cron = "0 * * * *"`)), load(t, scheduled(`cron = "30 * * * *"`))
	synctest.Test(t, func(t *testing.T) {
		const h = time.Hour
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal}, set)
		time.Sleep(h + time.Minute)
		ask := run.BackfillRequest{Schedule: hourly, From: epoch, To: epoch.Add(2 * h), DryRun: true}
		plan, err := r.Backfill(t.Context(), ask)
		if err != nil || plan.ID != "" || len(plan.Times) != 2 || plan.Times[0].Run != "" || plan.Times[1].State != run.Succeeded || !plan.Edited.IsZero() {
			t.Errorf("dry run: %+v, %v", plan, err)
		}
		if err := r.Deploy(t.Context(), edited); err != nil {
			t.Fatal(err)
		}
		if plan, err = r.Backfill(t.Context(), ask); err != nil || !plan.Edited.Equal(epoch.Add(h+time.Minute)) || len(plan.Times) != 1 {
			t.Errorf("after an edit: %+v, %v", plan, err)
		}
		ask.From, ask.To = epoch.Add(2*h), epoch.Add(4*h)
		if _, err := r.Backfill(t.Context(), ask); !errors.Is(err, ErrNoTimes) {
			t.Errorf("the future: %v", err)
		}
		ask.From, ask.To = epoch.Add(-h*(run.MaxBackfillTimes+5)), epoch
		tooMany := new(TooManyError)
		if _, err := r.Backfill(t.Context(), ask); !errors.As(err, &tooMany) || tooMany.Limit != run.MaxBackfillTimes {
			t.Errorf("too many: %v", err)
		}
		ask.Schedule.Trigger = "x"
		if _, err := r.Backfill(t.Context(), ask); !errors.As(err, new(*UnknownScheduleError)) {
			t.Errorf("unknown: %v", err)
		}
		r.stop()
		wantBackfilled(t, journal)
	})
}

// A backfill takes what is left over: a fire that becomes due meanwhile does not
// wait for it, neither for a worker nor for a slot of the flow.
func TestBackfillsStarveNothing(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  concurrency { limit = 2 }
  trigger "schedule" "s" { cron = "0 * * * *" }
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 4, Invoker: guests{"a": takes(7 * time.Minute)}}, set)
		request := run.BackfillRequest{Schedule: hourly, From: epoch.Add(-100 * time.Hour), To: epoch, MaxActive: 50}
		if _, err := r.Backfill(t.Context(), request); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3*time.Hour + 30*time.Minute)
		page, err := r.List(t.Context(), run.Query{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		fires := 0
		for _, s := range page.Runs {
			if s.Trigger.Kind != run.TriggerSchedule {
				continue
			}
			fires++
			record, err := r.Get(t.Context(), s.Run)
			if err != nil {
				t.Fatal(err)
			}
			if record.StartedAt == nil || record.StartedAt.Sub(record.Trigger.Time) > 7*time.Minute {
				t.Errorf("the fire of %s started at %v, after more than the next free slot", record.Trigger.Time, record.StartedAt)
			}
		}
		if fires < 2 {
			t.Errorf("%d fires", fires)
		}
		r.crash()
	})
}

// What the flow cannot make a run of does not stop a backfill.
func TestBackfillGoesOnAfterRejectedTimes(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  param "n" { type = number }
  trigger "schedule" "s" {
    cron   = "0 * * * *"
    params = { n = formatdate("h", trigger.time) == "22" ? "none" : "1" }
  }
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		if _, err := r.Backfill(t.Context(), run.BackfillRequest{Schedule: hourly, From: epoch.Add(-3 * time.Hour), To: epoch}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Minute)
		all, err := r.Backfills(t.Context())
		if err != nil || all[0].Succeeded != 2 || all[0].Rejected != 1 || all[0].EndedAt.IsZero() {
			t.Errorf("%+v, %v", all, err)
		}
		r.stop()
	})
}

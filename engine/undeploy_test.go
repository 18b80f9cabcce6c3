package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

const otherHCL = `
flow "other" {
  task "b" { plugin = "./m.wasm" }
}`

func (r *rig) deploy(set *flows.Set) {
	r.t.Helper()
	if err := r.Deploy(context.Background(), set); err != nil {
		r.t.Fatal(err)
	}
}

// A flow that is gone makes no runs; one that is going ends as it began.
func TestFlowsThatAreGoneMakeNoRuns(t *testing.T) {
	t.Parallel()
	set, without := load(t, scheduleHCL+otherHCL), load(t, otherHCL)
	synctest.Test(t, func(t *testing.T) {
		journal, history := memory.NewJournal(), newPastRuns()
		r := boot(t, Config{
			Journal: journal, History: history, Observers: []Observation{{Observer: history}},
			Invoker: guests{"a": takes(15 * time.Second)},
		}, set)
		time.Sleep(11 * time.Second)
		r.deploy(without)
		going := r.onlyOpen()
		time.Sleep(time.Minute)

		wantStates(t, r.wait(going), map[string]run.State{"": run.Succeeded, "a": run.Succeeded})
		wantFires(t, journal, 10*time.Second)
		var refused *run.RequestError
		if _, err := r.Submit(t.Context(), run.Request{Flow: "f"}); !errors.As(err, &refused) || refused.Code != run.RequestUnknownFlow {
			t.Errorf("a request for the flow that is gone: %v", err)
		}
		if _, err := r.Retry(t.Context(), going, run.RerunOptions{Whole: true}); err == nil {
			t.Error("a run of the flow that is gone is retried")
		}
		if _, err := r.Pause(t.Context(), run.ScheduleRef{Flow: "f"}, "x"); !errors.As(err, new(*UnknownScheduleError)) {
			t.Errorf("its schedule: %v", err)
		}
		if all, err := r.Schedules(t.Context()); err != nil || len(all) != 0 {
			t.Errorf("schedules: %+v, %v", all, err)
		}
		r.onLoop(func() {
			if len(r.exec.schedules.byRef) != 0 {
				t.Errorf("the loop keeps %d schedules of flows that are gone", len(r.exec.schedules.byRef))
			}
		})
		wantStates(t, r.run("other", `null`), map[string]run.State{"": run.Succeeded, "b": run.Succeeded})
		r.stop()
	})
}

// onlyOpen is the one run that is going.
func (r *rig) onlyOpen() (id run.ID) {
	r.t.Helper()
	r.onLoop(func() {
		if len(r.exec.open) != 1 {
			r.t.Fatalf("%d runs are open", len(r.exec.open))
		}
		for id = range r.exec.open {
		}
	})
	return id
}

// A flow that is put back continues where it was: by its policy when nothing else
// was changed, from now on when its schedule was.
func TestFlowsThatAreBackGoOn(t *testing.T) {
	t.Parallel()
	const m = time.Minute
	for name, tt := range map[string]struct {
		before, after string
		want          []time.Duration
	}{
		"latest": {`every = "10m"`, `every = "10m"`, []time.Duration{10 * m, 40 * m, 50 * m}},
		"all": {`
			every    = "10m"
			catch_up = "all"
			overlap  = "allow"`, `
			every    = "10m"
			catch_up = "all"
			overlap  = "allow"`, []time.Duration{10 * m, 20 * m, 30 * m, 40 * m, 50 * m}},
		"none": {`
			every    = "10m"
			catch_up = "none"`, `
			every    = "10m"
			catch_up = "none"`, []time.Duration{10 * m, 50 * m}},
		"edited": {`every = "10m"`, `every = "5m"`, []time.Duration{10 * m, 50 * m}},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, restart %t", name, restart), func(t *testing.T) {
				t.Parallel()
				before, without, after := load(t, scheduled(tt.before)+otherHCL), load(t, otherHCL), load(t, scheduled(tt.after))
				synctest.Test(t, func(t *testing.T) {
					journal := memory.NewJournal()
					r := boot(t, Config{Journal: journal}, before)
					time.Sleep(12 * m)
					r.deploy(without)
					time.Sleep(10 * m)
					if restart {
						r.stop()
						r = boot(t, Config{Journal: journal}, without)
					}
					time.Sleep(25 * m)
					r.deploy(after)
					time.Sleep(4 * m)
					r.stop()
					wantFires(t, journal, tt.want...)
				})
			})
		}
	}
}

// A pause holds while its flow is away, and a backfill waits for it.
func TestPausesAndBackfillsWaitForTheirFlow(t *testing.T) {
	t.Parallel()
	set, without := load(t, scheduled(`cron = "0 * * * *"`)), load(t, otherHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"a": takes(time.Minute)}}, set)
		plan, err := r.Backfill(t.Context(), lastHours(3))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := r.Pause(t.Context(), run.ScheduleRef{Flow: "f"}, "stock-taking"); err != nil {
			t.Fatal(err)
		}
		r.deploy(without)
		time.Sleep(2 * time.Hour)
		if all, err := r.Backfills(t.Context()); err != nil || all[0].Done() != 1 || !all[0].EndedAt.IsZero() {
			t.Errorf("while the flow is away: %+v, %v", all, err)
		}
		r.deploy(set)
		time.Sleep(2 * time.Hour)
		if all, err := r.Backfills(t.Context()); err != nil || all[0].ID != plan.ID || all[0].Done() != 3 || all[0].EndedAt.IsZero() {
			t.Errorf("once it is back: %+v, %v", all, err)
		}
		r.stop()
		wantFires(t, journal)
	})
}

package engine

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

var hourly = run.ScheduleRef{Flow: "f", Trigger: "s"}

// A pause survives a restart, and what it covers fires only where the flow says
// so.
func TestPauses(t *testing.T) {
	t.Parallel()
	const m, h = time.Minute, time.Hour
	for _, c := range []struct {
		name, catchUp string
		want          []time.Duration
	}{
		{"nothing is stated", ``, []time.Duration{h, 5 * h}},
		{"the latest", `catch_up = "latest"`, []time.Duration{h, 4 * h, 5 * h}},
		{"all", `
			catch_up        = "all"
			catch_up_window = "130m"
			overlap         = "allow"`, []time.Duration{h, 3 * h, 4 * h, 5 * h}},
		{"none", `catch_up = "none"`, []time.Duration{h, 5 * h}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := load(t, scheduled("every = \"1h\"\n"+c.catchUp))
			synctest.Test(t, func(t *testing.T) {
				journal := memory.NewJournal()
				r := boot(t, Config{Journal: journal}, set)
				time.Sleep(h + m)
				if done, err := r.Pause(t.Context(), run.ScheduleRef{Flow: "f"}, "upstream is down"); err != nil || len(done) != 1 || done[0] != hourly {
					t.Fatalf("pause: %v, %v", done, err)
				}
				if _, err := r.Pause(t.Context(), hourly, "again"); !errors.Is(err, ErrPaused) {
					t.Errorf("paused twice: %v", err)
				}
				time.Sleep(h)
				r.crash()
				time.Sleep(h)
				r = boot(t, Config{Journal: journal}, set)
				time.Sleep(h + 10*m)
				status, err := r.Schedules(t.Context())
				if err != nil || status[0].Pause == nil || status[0].Pause.Reason != "upstream is down" || !status[0].Next.IsZero() {
					t.Errorf("while it is paused: %+v, %v", status, err)
				}
				if _, err := r.Resume(t.Context(), hourly); err != nil {
					t.Fatal(err)
				}
				if _, err := r.Resume(t.Context(), hourly); !errors.Is(err, ErrNotPaused) {
					t.Errorf("resumed twice: %v", err)
				}
				time.Sleep(h)
				r.stop()
				wantFires(t, journal, c.want...)
			})
		})
	}
}

// A schedule whose runs fail pauses itself, if the flow asks for it, and starts
// to count again when it is resumed.
func TestFailingSchedulesPauseThemselves(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`
		every       = "10s"
		pause_after = 3`))
	synctest.Test(t, func(t *testing.T) {
		const s = time.Second
		outcomes := []bool{false, false, true, false, false, false, false, true}
		var made atomic.Int32
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"a": func(_ context.Context, call run.Call) (run.Result, error) {
			if outcomes[made.Add(1)-1] {
				return gives(call.Input), nil
			}
			return fails(run.OutcomeFailed, false), nil
		}}}, set)
		time.Sleep(195 * s)
		status, err := r.Schedules(t.Context())
		if err != nil || status[0].Pause == nil || status[0].Failures != 3 {
			t.Fatalf("after three failures in a row: %+v, %v", status, err)
		}
		if _, err := r.Resume(t.Context(), hourly); err != nil {
			t.Fatal(err)
		}
		time.Sleep(16 * s)
		r.stop()
		wantFires(t, journal, 10*s, 20*s, 30*s, 40*s, 50*s, 60*s, 200*s, 210*s)
	})
}

func TestPauseOfWhatIsNotThere(t *testing.T) {
	t.Parallel()
	set := load(t, scheduled(`every = "1h"`))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		for _, ref := range []run.ScheduleRef{{Flow: "g"}, {Flow: "f", Trigger: "x"}, {Flow: "g", Trigger: "s"}} {
			unknown := new(UnknownScheduleError)
			if _, err := r.Pause(t.Context(), ref, ""); !errors.As(err, &unknown) || unknown.Schedule != ref {
				t.Errorf("pause of %v: %v", ref, err)
			}
		}
		r.stop()
	})
}

func TestSchedulesShowHowTheyStand(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  trigger "schedule" "b" {
    cron     = "30 2 * * *"
    timezone = "Europe/Berlin"
    jitter   = "10m"
    splay    = "hash"
  }
  trigger "schedule" "a" {
    every   = "1h"
    enabled = false
  }
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		all, err := r.Schedules(t.Context())
		if err != nil || len(all) != 2 {
			t.Fatalf("%+v, %v", all, err)
		}
		if off := all[0]; off.Trigger != "a" || off.Enabled || !off.Next.IsZero() {
			t.Errorf("one that is off: %+v", off)
		}
		on, next := all[1], time.Date(2000, 1, 1, 1, 30, 0, 0, time.UTC)
		if on.Zone != "Europe/Berlin" || on.Expression != "30 2 * * *" || !on.Next.Equal(next) || on.Due.Before(next) || !on.Due.Before(next.Add(10*time.Minute)) {
			t.Errorf("one that is on: %+v", on)
		}
		if diff := cmp.Diff(epoch, on.Decided); diff != "" {
			t.Errorf("decided (-want +got):\n%s", diff)
		}
		r.stop()
	})
}

package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
)

const scheduleHCL = `
flow "f" {
  trigger "schedule" "often" {
    every = "10s"
  }
  trigger "schedule" "never" {
    every   = "1s"
    enabled = false
  }
  task "a" {
    plugin = "./m.wasm"
    input  = { name = trigger.name, time = trigger.time }
  }
}`

// fired gives the nominal times of the recorded runs.
func fired(t *testing.T, j Journal) []time.Time {
	t.Helper()
	var times []time.Time
	j.Replay(t.Context(), 0, func(_ uint64, commit []byte) error {
		stored, err := run.DecodeCommit(commit)
		if err != nil {
			return err
		}
		for _, e := range stored.Events {
			if s, ok := e.Data.(*run.Submitted); ok {
				times = append(times, s.Trigger.Time)
			}
		}
		return nil
	})
	return times
}

func TestSchedulesFireOnceForEachNominalTime(t *testing.T) {
	t.Parallel()
	set := load(t, scheduleHCL)
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		journal := NewMemoryJournal()
		r := boot(t, Config{Journal: journal}, set)
		time.Sleep(35 * time.Second)
		if err := r.Deploy(t.Context(), set); err != nil { // must not fire anything twice
			t.Fatal(err)
		}
		r.stop()
		r = boot(t, Config{Journal: journal}, set) // nor must a restart
		time.Sleep(20 * time.Second)
		r.stop()
		times := fired(t, journal)
		if len(times) != 5 {
			t.Fatalf("%d fires in 55 s, want 5: %v", len(times), times)
		}
		for i, at := range times {
			if want := start.Add(time.Duration(i+1) * 10 * time.Second); !at.Equal(want) {
				t.Errorf("fire %d is nominally at %s, want %s", i, at, want)
			}
		}
	})
}

// Slow runs and a full house do not stall a schedule, and a time that was missed
// by more than a minute is not caught up.
func TestScheduleSurvivesRefusedFires(t *testing.T) {
	t.Parallel()
	set := load(t, scheduleHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := NewMemoryJournal()
		r := boot(t, Config{Journal: journal, OpenRuns: 1, Invoker: guests{"a": takes(25 * time.Second)}}, set)
		time.Sleep(95 * time.Second)
		r.stop()
		if n := len(fired(t, journal)); n != 3 {
			t.Errorf("%d runs were started, want those at 10, 40 and 70 s: %v", n, fired(t, journal))
		}
	})
}

func TestRunSeesItsTrigger(t *testing.T) {
	t.Parallel()
	set := load(t, scheduleHCL)
	synctest.Test(t, func(t *testing.T) {
		calls := make(chan run.Call, 10)
		r := boot(t, Config{Invoker: guests{"a": func(_ context.Context, c run.Call) (run.Result, error) {
			calls <- c
			return gives(c.Input), nil
		}}}, set)
		call := <-calls
		want := `{"name":"often","time":"` + call.Scheduled.Format(time.RFC3339Nano) + `"}`
		if string(call.Input) != want {
			t.Errorf("input %s, want %s", call.Input, want)
		}
		r.stop()
	})
}

package engine

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
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

// epoch is when virtual time begins.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// fired gives the nominal times of the recorded runs of schedules, since the
// epoch.
func fired(t *testing.T, j Journal) []time.Duration {
	t.Helper()
	var times []time.Duration
	err := j.Replay(t.Context(), 0, func(_ uint64, commit []byte) error {
		stored, err := wire.DecodeCommit(commit)
		if err != nil {
			return err
		}
		for _, e := range stored.Events {
			if s, ok := e.Data.(*run.Submitted); ok && s.Trigger.Kind == run.TriggerSchedule {
				times = append(times, s.Trigger.Time.Sub(epoch))
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return times
}

func wantFires(t *testing.T, j Journal, want ...time.Duration) {
	t.Helper()
	if diff := cmp.Diff(want, fired(t, j)); diff != "" {
		t.Errorf("nominal times of the runs (-want +got):\n%s", diff)
	}
}

func TestSchedulesFireOnceForEachNominalTime(t *testing.T) {
	t.Parallel()
	set := load(t, scheduleHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal}, set)
		time.Sleep(35 * time.Second)
		if err := r.Deploy(t.Context(), set); err != nil { // must not fire anything twice
			t.Fatal(err)
		}
		r.stop()
		r = boot(t, Config{Journal: journal}, set) // nor must a restart
		time.Sleep(20 * time.Second)
		r.stop()
		wantFires(t, journal, 10*time.Second, 20*time.Second, 30*time.Second, 40*time.Second, 50*time.Second)
	})
}

// Runs that take longer than the interval do not stall a schedule: the times that
// they cover are skipped, the next one is not.
func TestScheduleSkipsWhileARunIsGoing(t *testing.T) {
	t.Parallel()
	set := load(t, scheduleHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"a": takes(25 * time.Second)}}, set)
		time.Sleep(95 * time.Second)
		r.stop()
		wantFires(t, journal, 10*time.Second, 40*time.Second, 70*time.Second)
	})
}

// A full house is back-pressure: the fire waits, and is not lost.
func TestFiresWaitForAFullHouse(t *testing.T) {
	t.Parallel()
	set := load(t, scheduleHCL+`
flow "long" {
  task "b" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, OpenRuns: 1, Invoker: guests{"b": takes(35 * time.Second)}}, set)
		r.submit("long", `null`)
		time.Sleep(45 * time.Second)
		r.stop()
		wantFires(t, journal, 10*time.Second, 40*time.Second) // those between overlap with the first
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

const oneInstantHCL = `
flow "low" {
  priority = 0
  trigger "schedule" "c" { every = "10s" }
  trigger "schedule" "a" { every = "30s" }
  trigger "schedule" "b" { every = "5s" }
  task "t" { plugin = "./m.wasm" }
}
flow "high" {
  priority = 50
  trigger "schedule" "z" { every = "30s" }
  task "t" { plugin = "./m.wasm" }
}`

// Schedules that are due at one instant fire by priority, and those of one flow in
// the order in which they are declared, however often they have fired since.
func TestSchedulesOfOneInstantFireInOrder(t *testing.T) {
	t.Parallel()
	set, changed := load(t, oneInstantHCL), load(t, strings.Replace(oneInstantHCL, "priority = 0", "priority = 60", 1))
	synctest.Test(t, func(t *testing.T) {
		observer := new(notices)
		r := boot(t, Config{Observers: []Observation{{Observer: observer}}}, set)
		time.Sleep(61 * time.Second)
		if err := r.Deploy(t.Context(), changed); err != nil {
			t.Fatal(err)
		}
		time.Sleep(30 * time.Second)
		r.stop()
		var order []string
		for _, n := range observer.all() {
			if s, ok := n.Event.Data.(*run.Submitted); ok && s.Trigger.Time.Sub(epoch)%(30*time.Second) == 0 {
				order = append(order, s.Trigger.Name)
			}
		}
		if diff := cmp.Diff([]string{"z", "c", "a", "b", "z", "c", "a", "b", "c", "a", "b", "z"}, order); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

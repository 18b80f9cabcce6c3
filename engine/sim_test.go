package engine

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// onStage boots an engine on a stage, with the attempts that have begun.
func onStage(t *testing.T, source string) (*rig, *Sim, *[]*Attempt) {
	t.Helper()
	var begun []*Attempt
	stage := &Sim{
		Clock: scheduler.NewVirtualClock(epoch), Idle: make(chan Idle),
		Begin:     func(a *Attempt) { begun = append(begun, a) },
		Interrupt: func(*Attempt, error) {},
	}
	return boot(t, Config{Sim: stage, Random: rand.New(rand.NewPCG(1, 2))}, load(t, source)), stage, &begun
}

const staged = `
flow "f" {
  task "a" {
    plugin  = "./p.wasm"
    timeout = "1h"
  }
  task "b" {
    plugin = "./p.wasm"
  }
}`

func TestStage(t *testing.T) {
	t.Parallel()
	r, stage, begun := onStage(t, staged)
	id := r.submit("f", `null`)
	rest := <-stage.Idle
	if len(*begun) != 2 || (*begun)[0].Call.Task != "a" || !rest.Next.Equal(epoch.Add(5*time.Minute)) {
		t.Fatalf("%d attempts, the next timer is %s", len(*begun), rest.Next)
	}
	rest.End([]CallResult{{Attempt: (*begun)[1], Result: gives(nil)}})
	rest = <-stage.Idle
	if !rest.Next.Equal(epoch.Add(time.Hour)) {
		t.Errorf("the next timer is %s", rest.Next)
	}
	stage.Clock.Advance(time.Hour)
	rest.Fire() // it interrupts a
	rest = <-stage.Idle
	if cause := context.Cause((*begun)[0].Context); !errors.Is(cause, run.ErrDeadline) {
		t.Errorf("a was interrupted by %v", cause)
	}
	rest.End([]CallResult{{Attempt: (*begun)[0], Result: fails(run.OutcomeTimedOut, false)}})
	(<-stage.Idle).Leave()
	record := r.wait(id)
	if record.State != run.Failed || time.Duration(*record.DurationMS*1e6) != time.Hour {
		t.Errorf("the run %s after %v ms", record.State, *record.DurationMS)
	}
	r.stop()
}

// TestStageThatNobodyDirects ends with the context while a rest has no answer.
func TestStageThatNobodyDirects(t *testing.T) {
	t.Parallel()
	r, stage, _ := onStage(t, staged)
	<-stage.Idle
	r.crash()
}

// TestStageGivesUp ends an attempt that was given up because it did not end when
// it was asked to.
func TestStageGivesUp(t *testing.T) {
	t.Parallel()
	r, stage, begun := onStage(t, staged)
	id := r.submit("f", `null`)
	(<-stage.Idle).Leave()
	for range 2 { // the time of both is up, then the patience
		rest := <-stage.Idle
		stage.Clock.Advance(time.Hour)
		rest.Fire()
	}
	(<-stage.Idle).Leave()
	if a := taskOf(t, r.wait(id), "a"); a.Error == nil || a.Error.Code != run.CodeStuck {
		t.Errorf("a ended with %v", a.Error)
	}
	(<-stage.Idle).End([]CallResult{{Attempt: (*begun)[0], Result: gives(nil)}, {Attempt: (*begun)[1], Result: gives(nil)}})
	(<-stage.Idle).Leave()
	if stuck := r.exec.calls.stuck.Load(); stuck != 0 {
		t.Errorf("%d attempts are left over", stuck)
	}
	r.stop()
}

func TestSeededIDs(t *testing.T) {
	t.Parallel()
	var ids []run.ID
	for range 2 {
		r, _, _ := onStage(t, staged)
		ids = append(ids, r.submit("f", `null`))
		r.crash()
	}
	if len(slices.Compact(ids)) != 1 {
		t.Errorf("the ids differ: %v", ids)
	}
}

const stagedParts = `
flow "f" {
  task "child" {
    flow    = flow.child
    input   = { n = 5 }
    retries = 1
  }
  group "both" {
    wait "paused" {
      duration = "1h"
      after    = [task.child]
    }
  }
}
flow "child" {
  param "n" {
    type = number
  }
  task "inner" {
    plugin = "./p.wasm"
  }
}`

// TestStageStandsIn makes calls in place of a sub-flow. These take as long as they
// do, and are made again as the sub-flow would be.
func TestStageStandsIn(t *testing.T) {
	t.Parallel()
	var told []string
	r, stage, begun := onStage(t, stagedParts)
	stage.StandsIn = func(_ run.ID, task string) bool { return task == "child" }
	stage.Recorded = func(e run.Event) { told = append(told, e.Data.Kind()) }
	stage.GroupEnded = func(_ run.ID, g *run.TaskRun) { told = append(told, g.Task+" "+string(g.State)) }
	id := r.submit("f", `null`)
	rest := <-stage.Idle
	if len(*begun) != 1 || string((*begun)[0].Call.Input) != `{"n":5}` || (*begun)[0].Call.Timeout != 0 || !rest.Next.IsZero() {
		t.Fatalf("%d attempts, the first with %s, the next timer is %s", len(*begun), (*begun)[0].Call.Input, rest.Next)
	}
	stage.Clock.Advance(100 * time.Hour)
	rest.End([]CallResult{{Attempt: (*begun)[0], Result: fails(run.OutcomeFailed, true)}})
	rest = <-stage.Idle
	stage.Clock.Advance(rest.Next.Sub(stage.Clock.Now()))
	rest.Fire()
	(<-stage.Idle).End([]CallResult{{Attempt: (*begun)[1], Result: gives([]byte(`{"given":1}`))}})
	rest = <-stage.Idle
	stage.Clock.Advance(time.Hour)
	rest.Fire()
	(<-stage.Idle).Leave()
	record := r.wait(id)
	if child := taskOf(t, record, "child"); record.State != run.Succeeded || child.Attempts != 2 || child.Child != "" || string(child.Output) != `{"given":1}` {
		t.Errorf("the run %s, its task %+v", record.State, child)
	}
	want := []string{
		"submitted", "started", "attempt_started", "attempt_finished", "attempt_started", "attempt_finished",
		"wait_started", "wait_ended", "group.both succeeded", "finished",
	}
	if told = slices.DeleteFunc(told, func(kind string) bool { return kind == "defined" }); !slices.Equal(told, want) {
		t.Errorf("told of %v", told)
	}
	r.stop()
}

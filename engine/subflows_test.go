package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// Three flows within each other. The innermost one's task "work" is what tests are
// about.
const nestedHCL = `
flow "top" {
  task "first" {
    plugin = "./m.wasm"
    input  = { n = 1 }
  }
  task "call" {
    flow  = flow.middle
    input = { n = task.first.output.n, name = "x" }
  }
  task "last" {
    plugin = "./m.wasm"
    input  = task.call.output.sum
  }
  output "all" {
    value = task.last.output
  }
  finally {
    task "top_cleanup" { plugin = "./m.wasm" }
  }
}
flow "middle" {
  param "n" { type = number }
  param "name" {
    type    = string
    default = "nobody"
  }
  task "call" {
    flow  = flow.inner
    input = { n = param.n + 1, at = trigger.time }
  }
  output "sum" {
    value = { inner = task.call.output, name = param.name, kind = trigger.kind }
  }
}
flow "inner" {
  param "n" { type = number }
  param "at" {}
  task "work" {
    plugin = "./m.wasm"
    input  = { n = param.n, at = param.at }
  }
  on_failure {
    task "alert" { plugin = "./m.wasm" }
  }
  finally {
    task "cleanup" { plugin = "./m.wasm" }
  }
}`

// child is the run that the last attempt of a task was.
func (r *rig) child(parent *run.Record, task string) *run.Record {
	r.t.Helper()
	id := taskOf(r.t, parent, task).Child
	record, err := r.Get(context.Background(), id)
	if err != nil {
		r.t.Fatalf("the run of task %s, %q: %v", task, id, err)
	}
	return record
}

func (r *rig) get(id run.ID) *run.Record {
	r.t.Helper()
	record, err := r.Get(context.Background(), id)
	if err != nil {
		r.t.Fatal(err)
	}
	return record
}

func TestSubflowsAreRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		// One worker and one open run: sub-flows need neither.
		r := boot(t, Config{Workers: 1, OpenRuns: 1, Invoker: guests{"work": takes(time.Minute)}}, load(t, nestedHCL))
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		receipt, err := r.Submit(t.Context(), run.Request{Flow: "top", Trigger: run.Trigger{Kind: run.TriggerManual, Time: at}})
		if err != nil {
			t.Fatal(err)
		}
		top := r.wait(receipt.Run)
		want := `{"all":{"inner":{"work":{"at":"2026-01-02T03:04:05Z","n":2}},"kind":"task","name":"x"}}`
		if top.State != run.Succeeded || string(top.Output) != want {
			t.Errorf("%s %s %v", top.State, top.Output, top.Error)
		}
		middle := r.child(top, "call")
		inner := r.child(middle, "call")
		for depth, c := range []struct{ parent, child *run.Record }{{top, middle}, {middle, inner}} {
			want := &run.Parent{Run: c.parent.Run, TaskRef: run.TaskRef{Task: "call"}, Depth: depth + 1}
			if diff := cmp.Diff(want, c.child.Parent); diff != "" {
				t.Error(diff)
			}
			task := taskOf(t, c.parent, "call")
			if c.child.Trigger.Kind != run.TriggerTask || !c.child.Trigger.Time.Equal(at) || string(task.Output) != string(c.child.Output) || task.Attempts != 1 || task.Module != "" {
				t.Errorf("%+v %+v", c.child.Trigger, task)
			}
		}
		if got := string(taskOf(t, top, "call").Input); got != `{"n":1,"name":"x"}` || string(middle.Params["name"]) != `"x"` {
			t.Errorf("%s %s", got, middle.Params)
		}
		r.stop()
	})
}

// narrow is a journal whose commits hold a few events.
type narrow struct {
	Journal
	limit int
}

func (n narrow) Limit() int { return n.limit }

// The attempt and its run begin in one commit and end in one, wherever commits end.
func TestSubflowsBeginAndEndWithTheirAttempt(t *testing.T) {
	t.Parallel()
	for limit := 2000; limit < 3000; limit += 100 {
		synctest.Test(t, func(t *testing.T) { beginsAndEndsWithItsAttempt(t, limit) })
	}
}

func beginsAndEndsWithItsAttempt(t *testing.T, limit int) {
	long := func(context.Context, run.Call) (run.Result, error) {
		return gives(json.RawMessage(text("x", 600))), nil
	}
	r := boot(t, Config{Journal: narrow{memory.NewJournal(), limit}, Invoker: guests{"work": long}}, load(t, nestedHCL))
	r.run("top", `null`)
	r.stop()
	pairs, parents := 0, map[run.ID]*run.Parent{}
	for _, events := range commitsOf(t, r.journal) {
		for i, e := range events {
			var next run.EventData
			if i+1 < len(events) {
				next = events[i+1].Data
			}
			switch d := e.Data.(type) {
			case *run.ChildStarted:
				if s, ok := next.(*run.Submitted); !ok || s.Parent.Run != e.Run || events[i+1].Run != d.Child || !e.At.Equal(events[i+1].At) {
					t.Errorf("%+v is followed by %+v", d, next)
				}
			case *run.Submitted:
				parents[e.Run] = d.Parent
			case *run.Finished:
				parent := parents[e.Run]
				if parent == nil {
					continue
				}
				if f, ok := next.(*run.AttemptFinished); !ok || f.TaskRef != parent.TaskRef || events[i+1].Run != parent.Run {
					t.Errorf("%+v is followed by %+v", d, next)
				}
				pairs++
			}
		}
	}
	if pairs != 2 {
		t.Errorf("%d ends of sub-flows", pairs)
	}
}

func commitsOf(t *testing.T, j Journal) [][]run.Event {
	t.Helper()
	var all [][]run.Event
	err := j.Replay(context.Background(), 0, func(_ uint64, stored []byte) error {
		commit, err := wire.DecodeCommit(stored)
		if err == nil {
			all = append(all, commit.Events)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

const callerHCL = `
flow "top" {
  timeout = "2h"
  task "call" {
    flow  = flow.inner
    input = trigger.payload
    %s
  }
  task "next" {
    plugin = "./m.wasm"
    after  = [task.call]
  }
}
flow "inner" {
  param "n" {
    type    = number
    default = 0
    validation {
      condition     = param.n < 5
      error_message = "Too many."
    }
  }
  task "work" { plugin = "./m.wasm" }
  finally {
    task "cleanup" { plugin = "./m.wasm" }
  }
  %s
}`

func TestSubflowsAreRetried(t *testing.T) {
	t.Parallel()
	set := load(t, fmt.Sprintf(callerHCL, "retry {\nattempts = 3\ndelay = \"10s\"\n}", ""))
	synctest.Test(t, func(t *testing.T) {
		failures := 2
		r := boot(t, Config{Workers: 1, Invoker: guests{"work": func(context.Context, run.Call) (run.Result, error) {
			if failures > 0 {
				failures--
				return fails(run.OutcomeFailed, true), nil
			}
			return gives(json.RawMessage(`1`)), nil
		}}}, set)
		id := r.submit("top", `{"n":4}`)
		time.Sleep(5 * time.Second)
		first := r.child(r.get(id), "call")
		if task := taskOf(t, r.get(id), "call"); task.State != run.Ready || task.Error.Message != fmt.Sprintf("run %s of inner failed in task work: no luck", first.Run) ||
			task.Error.Code != "test" || !task.Error.Retryable || !strings.HasSuffix(task.Error.At, "test.hcl:4") {
			t.Errorf("%+v %+v", task, task.Error)
		}
		top := r.wait(id)
		wantStates(t, top, map[string]run.State{"": run.Succeeded, "call": run.Succeeded, "next": run.Succeeded})
		last := r.child(top, "call")
		if task := taskOf(t, top, "call"); task.Attempts != 3 || last.Run == first.Run || string(last.Params["n"]) != "4" || string(task.Output) != `{"work":1}` {
			t.Errorf("%+v", task)
		}
		if top.FinishedAt.Sub(top.CreatedAt) != 30*time.Second {
			t.Error("the delays are those of the policy")
		}
		r.stop()
	})
}

const countdownHCL = `
flow "countdown" {
  param "n" { type = number }
  task "next" {
    flow  = flow.step
    when  = param.n > 0
    input = { n = param.n - 1 }
  }
  task "end" {
    plugin = "./m.wasm"
    when   = param.n == 0
    input  = "lift-off"
  }
  output "said" {
    value = try(task.next.output.said, task.end.output)
  }
}
flow "step" {
  param "n" { type = number }
  task "on" {
    flow  = flow.countdown
    input = { n = param.n }
  }
  output "said" {
    value = task.on.output.said
  }
}`

func TestRecursion(t *testing.T) {
	t.Parallel()
	set := load(t, countdownHCL)
	for n, ends := range map[int]bool{0: true, 1: true, 15: true, 16: false, 1000000: false} {
		synctest.Test(t, func(t *testing.T) {
			var told notices
			r := boot(t, Config{Workers: 1, Observers: []Observation{{Observer: &told}}}, set)
			receipt, err := r.Submit(t.Context(), run.Request{Flow: "countdown", Params: map[string]json.RawMessage{"n": json.RawMessage(fmt.Sprint(n))}})
			if err != nil {
				t.Fatal(err)
			}
			top := r.wait(receipt.Run)
			r.stop()
			runs, deepest := 0, 0
			for _, n := range told.all() {
				if s, ok := n.Event.Data.(*run.Submitted); ok {
					runs++
					if s.Parent != nil {
						deepest = max(deepest, s.Parent.Depth)
					}
				}
			}
			if ends && (top.State != run.Succeeded || string(top.Output) != `{"said":"lift-off"}` || runs != 2*n+1 || deepest != 2*n) {
				t.Errorf("%d: %s %s, %d runs: %v", n, top.State, top.Output, runs, top.Error)
			}
			if !ends && (top.State != run.Failed || top.Error.Code != run.CodeNesting || top.Error.Retryable || runs != 32 || deepest != 31 ||
				!strings.Contains(top.Error.Message, " of step failed in task on: 32 runs are nested, which is the limit, and a run of countdown would be one more")) {
				t.Errorf("%d: %s, %d runs: %+v", n, top.State, runs, top.Error)
			}
		})
	}
}

const manyHCL = `
flow "top" {
  task "a" {
    flow    = flow.inner
    retries = 1
  }
  task "b" {
    flow = flow.inner
    retry {
      attempts = 3
      delay    = "50s"
    }
  }
}
flow "inner" {
  concurrency {
    limit    = 1
    on_limit = "%s"
  }
  task "work" { plugin = "./m.wasm" }
}`

func TestSubflowsUnderALimit(t *testing.T) {
	t.Parallel()
	for onLimit, want := range map[string]struct {
		states   map[string]run.State
		attempts int // of b
		took     time.Duration
	}{
		"queue":          {map[string]run.State{"": run.Succeeded, "a": run.Succeeded, "b": run.Succeeded}, 1, 2 * time.Minute},
		"skip":           {map[string]run.State{"": run.Succeeded, "a": run.Succeeded, "b": run.Succeeded}, 3, 210 * time.Second},
		"cancel_running": {map[string]run.State{"": run.Canceled, "a": run.Canceled, "b": run.Succeeded}, 1, time.Minute},
	} {
		t.Run(onLimit, func(t *testing.T) {
			t.Parallel()
			set := load(t, fmt.Sprintf(manyHCL, onLimit))
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Invoker: guests{"work": takes(time.Minute)}}, set)
				id := r.submit("top", `{}`)
				time.Sleep(time.Second)
				if task := taskOf(t, r.get(id), "b"); onLimit == "skip" && (task.Attempts != 1 || task.Error.Code != run.CodeConcurrency || task.State != run.Ready || task.Child != "") {
					t.Errorf("%+v %+v", task, task.Error)
				}
				top := r.wait(id)
				wantStates(t, top, want.states)
				if b := taskOf(t, top, "b"); b.Attempts != want.attempts || top.FinishedAt.Sub(top.CreatedAt) != want.took {
					t.Errorf("after %s: %+v", top.FinishedAt.Sub(top.CreatedAt), b)
				}
				r.stop()
			})
		})
	}
}

// Lists have the runs of sub-flows when these, or their flow, are asked for.
func TestListsOfSubflows(t *testing.T) {
	t.Parallel()
	set := load(t, nestedHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"work": takes(time.Minute)}}, set)
		r.submit("top", `{}`)
		for when := range 2 {
			time.Sleep(time.Duration(when) * time.Hour)
			synctest.Wait()
			for want, q := range map[string]run.Query{
				"top": {}, "middle": {Flow: "middle"}, "inner": {Flow: "inner", Children: true}, "inner middle top": {Children: true},
			} {
				page, err := r.List(t.Context(), q)
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for _, s := range page.Runs {
					got = append(got, s.Flow)
					if (s.Parent == "") != (s.Flow == "top") {
						t.Errorf("%+v", s)
					}
				}
				if slices.Sort(got); strings.Join(got, " ") != want {
					t.Errorf("%+v: %q", q, got)
				}
			}
		}
		r.stop()
	})
}

// A soft stop starts no sub-flow, and loses none.
func TestDrainBeforeSubflows(t *testing.T) {
	t.Parallel()
	set := load(t, nestedHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal, Invoker: guests{"first": takes(time.Minute)}}, set)
		id := r.submit("top", `{}`)
		time.Sleep(time.Second)
		r.stop()
		if shard := fold(t, journal); len(shard.Runs) != 1 || shard.Runs[id].Task(run.TaskRef{Task: "first"}).State != run.Succeeded {
			t.Errorf("%d runs", len(shard.Runs))
		}
		r = boot(t, Config{Journal: journal}, set)
		if top := r.wait(id); top.State != run.Succeeded {
			t.Errorf("%s %v", top.State, top.Error)
		}
		r.stop()
	})
}

// During a soft stop a sub-flow that has not started can be canceled.
func TestCancelDuringDrain(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "top" {
  task "first" { plugin = "./m.wasm" }
  task "long" { plugin = "./m.wasm" }
  task "call" {
    flow  = flow.inner
    after = [task.first]
  }
}
flow "inner" {
  task "work" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"first": takes(time.Minute), "long": takes(time.Hour)}, Timeout: 2 * time.Hour}, set)
		id := r.submit("top", `{}`)
		time.Sleep(time.Second)
		r.Drain()
		time.Sleep(2 * time.Minute)
		if err := r.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		r.stop()
		got := fold(t, r.journal).Runs[id]
		if call := got.Task(run.TaskRef{Task: "call"}); got.State != run.Canceled || call == nil || call.State != run.Canceled || call.Attempts != 0 {
			t.Errorf("%s %+v", got.State, call)
		}
	})
}

// The run of a sub-flow may be run again by itself.
func TestRetryOfASubflowsRun(t *testing.T) {
	t.Parallel()
	set := load(t, fmt.Sprintf(callerHCL, "", ""))
	synctest.Test(t, func(t *testing.T) {
		broken := true
		r := boot(t, Config{Invoker: guests{"work": func(context.Context, run.Call) (run.Result, error) {
			if broken {
				return fails(run.OutcomeFailed, false), nil
			}
			return gives(json.RawMessage(`1`)), nil
		}}}, set)
		top := r.run("top", `{"n":3}`)
		broken = false
		receipt, err := r.Retry(t.Context(), taskOf(t, top, "call").Child, run.RerunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if again := r.wait(receipt.Run); again.State != run.Succeeded || again.Parent != nil || string(again.Params["n"]) != "3" {
			t.Errorf("%+v", again)
		}
		r.stop()
	})
}

// What belongs to a backfill comes after everything that is due.
func TestSubflowsOfBackfills(t *testing.T) {
	t.Parallel()
	set := load(t, nestedHCL+longFlow)
	synctest.Test(t, func(t *testing.T) {
		var order []string
		note := func(_ context.Context, call run.Call) (run.Result, error) {
			time.Sleep(time.Minute)
			order = append(order, call.Flow+" "+call.Scheduled.Format("05"))
			return gives(json.RawMessage(`{"n":1}`)), nil
		}
		r := boot(t, Config{Workers: 1, Invoker: guests{"first": note, "work": note, "long": takes(4 * time.Minute)}}, set)
		long := r.submit("long", `null`)
		ask := func(kind run.TriggerKind, second int) run.ID {
			receipt, err := r.Submit(t.Context(), run.Request{Flow: "top", Trigger: run.Trigger{Kind: kind, Time: time.Date(2026, 1, 1, 0, 0, second, 0, time.UTC)}})
			if err != nil {
				t.Fatal(err)
			}
			return receipt.Run
		}
		backfill := ask(run.TriggerBackfill, 1)
		time.Sleep(30 * time.Second) // its first task is under way
		second, due := ask(run.TriggerBackfill, 2), ask(run.TriggerManual, 3)
		for _, id := range []run.ID{backfill, second, due} {
			r.wait(id)
		}
		if want := []string{"top 01", "top 03", "inner 03", "top 02", "inner 01", "inner 02"}; !slices.Equal(order, want) {
			t.Errorf("%q", order)
		}
		r.wait(long)
		r.stop()
	})
}

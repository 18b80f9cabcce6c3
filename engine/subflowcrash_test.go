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
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Runs that cannot be continued take those within them along; one that cannot be
// within another one fails its task.
func TestSubflowsThatCannotBeContinued(t *testing.T) {
	t.Parallel()
	set := load(t, nestedHCL)
	for _, gone := range []string{"top", "middle", "inner"} {
		t.Run(gone, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				journal := memory.NewJournal()
				r := boot(t, Config{Journal: journal, Invoker: guests{"work": takes(time.Hour), "cleanup": takes(time.Minute)}}, set)
				id := r.submit("top", `{}`)
				time.Sleep(time.Second)
				r.crash()
				events := journalEvents(t, journal)
				for i, e := range events {
					if s, ok := e.Data.(*run.Submitted); ok && s.Flow == gone {
						other := *s
						other.Definition = "sha256:gone"
						events[i].Data = &other
					}
				}
				r = boot(t, Config{Journal: journalOf(t, events...), Invoker: guests{"work": takes(time.Minute)}}, set)
				time.Sleep(3 * time.Hour)
				want := map[string]run.State{"top": run.Failed, "middle": run.Failed, "inner": run.Failed}
				states, runs := map[string]run.State{}, fold(t, r.journal).Runs
				for _, one := range runs {
					states[one.Flow] = one.State
				}
				switch gone {
				case "top":
					want["middle"], want["inner"] = run.Canceled, run.Canceled
				case "middle":
					want["inner"] = run.Canceled
				}
				if diff := cmp.Diff(want, states); diff != "" {
					t.Error(diff)
				}
				if gone != "top" && runs[id].Task(run.TaskRef{Task: "call"}).Failure.Code != run.CodeDefinition {
					t.Errorf("%+v", runs[id].Failure)
				}
				r.Drain()
				<-r.ended
				r.kill()
			})
		})
	}
}

// A timeout counts on from where it was, and is over with its run.
func TestTimeoutsOfSubflowsAfterARestart(t *testing.T) {
	t.Parallel()
	set := load(t, fmt.Sprintf(callerHCL, `timeout = "10m"`, ""))
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		config := Config{Journal: journal, Invoker: guests{"work": takes(time.Hour)}, Timeout: 2 * time.Hour}
		r := boot(t, config, set)
		slow := r.submit("top", `{}`)
		time.Sleep(5 * time.Minute)
		r.crash()
		r = boot(t, config, set)
		if top := r.wait(slow); top.State != run.Failed || top.Error.Outcome != run.OutcomeTimedOut || top.FinishedAt.Sub(top.CreatedAt) != 10*time.Minute {
			t.Errorf("%s after %s: %v", top.State, top.FinishedAt.Sub(top.CreatedAt), top.Error)
		}
		r.exec.config.Invoker.(guests)["work"] = nil
		r.run("top", `{}`)
		if err := r.command(t.Context(), func() {
			if n := r.exec.clock.timers.Len(); n > 0 {
				t.Errorf("%d timers are left", n)
			}
		}); err != nil {
			t.Error(err)
		}
		r.stop()
	})
}

// A crash may come between the cancellation of a run, or a task, and that of the
// run within it.
func TestCancelOfSubflowsAfterARestart(t *testing.T) {
	t.Parallel()
	set := load(t, nestedHCL)
	for name, stop := range map[string]func(r *rig, id run.ID){
		"run":  func(r *rig, id run.ID) { r.Cancel(r.t.Context(), id, "enough") },
		"task": func(r *rig, id run.ID) { r.cancelTask(id, "call", "enough") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := Config{Journal: memory.NewJournal(), Invoker: guests{"work": takes(time.Hour)}, Timeout: 2 * time.Hour}
				r := boot(t, config, set)
				id := r.submit("top", `{}`)
				time.Sleep(time.Second)
				stop(r, id)
				r.crash()
				events := journalEvents(t, config.Journal)
				last := slices.IndexFunc(events, func(e run.Event) bool {
					return e.Data.Kind() == run.KindCancelRequested || e.Data.Kind() == run.KindTaskCancelRequested
				})
				config.Journal = journalOf(t, events[:last+1]...)
				r = boot(t, config, set)
				top := r.wait(id)
				if took := top.FinishedAt.Sub(top.CreatedAt); top.State != run.Canceled || took > time.Minute {
					t.Errorf("%s after %s", top.State, took)
				}
				for _, one := range fold(t, config.Journal).Runs {
					if one.State != run.Canceled {
						t.Errorf("the run of %s is %s", one.Flow, one.State)
					}
				}
				r.stop()
			})
		})
	}
}

// Runs within runs, some of which share a limit.
const limitedChildHCL = `
flow "top" {
  timeout = "3h"
  task "call" {
    flow    = flow.middle
    timeout = "50m"
    input   = { orders = trigger.payload }
    retry {
      attempts = 2
      delay    = "10s"
    }
  }
  task "beside" {
    flow  = flow.inner
    input = { orders = trigger.payload }
    when  = can(trigger.payload.twice)
  }
  finally {
    task "after" {
      flow  = flow.inner
      input = { orders = {} }
    }
  }
}
flow "middle" {
  param "orders" {}
  task "call" {
    flow  = flow.inner
    input = { orders = param.orders }
  }
}
flow "inner" {
  param "orders" {}
  concurrency {
    limit    = 1
    on_limit = "%s"
  }
  task "work" {
    plugin = "./m.wasm"
    input  = param.orders
  }
  finally {
    task "cleanup" {
      plugin = "./m.wasm"
      input  = param.orders
    }
  }
}`

// A crash may leave any beginning of the events behind, but never a part of those
// that are recorded together.
func TestSubflowsContinueFromEveryEvent(t *testing.T) {
	t.Parallel()
	sets := map[string]*flows.Set{}
	for _, onLimit := range []string{"queue", "skip", "cancel_running"} {
		sets[onLimit] = load(t, fmt.Sprintf(limitedChildHCL, onLimit))
	}
	for name, story := range map[string]func(*rig){
		"all goes well":          func(r *rig) { r.run("top", `{"work":"slow"}`) },
		"attempts fail":          func(r *rig) { r.run("top", `{"work":"fails"}`) },
		"one waits for its slot": func(r *rig) { r.run("top", `{"work":"slow","twice":"x"}`) },
		"the time is up":         func(r *rig) { r.run("top", `{"work":"forever","cleanup":"slow","twice":"x"}`) },
		"the run is canceled": func(r *rig) {
			id := r.submit("top", `{"work":"forever","cleanup":"slow","twice":"x"}`)
			time.Sleep(5 * time.Second)
			r.Cancel(r.t.Context(), id, "enough")
			r.wait(id)
		},
		"a run within is canceled": func(r *rig) {
			id := r.submit("top", `{"work":"forever","cleanup":"slow","twice":"x"}`)
			time.Sleep(5 * time.Second)
			r.Cancel(r.t.Context(), taskOf(r.t, r.get(id), "call").Child, "enough")
			time.Sleep(time.Second)
			r.cancelTask(id, "beside", "enough")
			r.wait(id)
		},
	} {
		for onLimit, set := range sets {
			t.Run(name+", "+onLimit, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) { continuesFromEveryEvent(t, set, story) })
			})
		}
	}
}

// continuesFromEveryEvent lets a story happen, and its runs continue after each of its
// events.
func continuesFromEveryEvent(t *testing.T, set *flows.Set, story func(*rig)) {
	t.Helper()
	journal := memory.NewJournal()
	config := Config{Journal: journal, Invoker: obedient{}, Workers: 1, Timeout: 4 * time.Hour}
	r := boot(t, config, set)
	story(r)
	r.stop()
	events := journalEvents(t, journal)
	for n := range len(events) {
		if n > 0 && together(events[n-1], events[n]) {
			continue
		}
		config.Journal = journalOf(t, events[:n]...)
		r := boot(t, config)
		if err := r.Deploy(t.Context(), set); err != nil {
			t.Fatalf("after event %d, %s: %v", n, events[n-1].Data.Kind(), <-r.ended)
		}
		time.Sleep(15 * time.Hour)
		r.settledAfter(t, n, events)
		r.stop()
	}
}

// together reports whether two events are recorded together.
func together(a, b run.Event) bool {
	switch a := a.Data.(type) {
	case *run.ChildStarted:
		return true
	case *run.Finished:
		f, ok := b.Data.(*run.AttemptFinished)
		return ok && strings.Contains("call beside after", f.Task) && a != nil
	}
	return false
}

// settledAfter checks that nothing is left of what the first n events began, and
// that no attempt was made without a run.
func (r *rig) settledAfter(t *testing.T, n int, events []run.Event) {
	t.Helper()
	what := "the beginning"
	if n > 0 {
		what = fmt.Sprintf("event %d, %s", n, events[n-1].Data.Kind())
	}
	runs := fold(t, r.journal).Runs
	for id, got := range runs {
		if !got.State.Done() {
			t.Errorf("after %s: run %s of %s is %s", what, id, got.Flow, got.State)
		}
		for _, task := range got.Tasks {
			if child := runs[task.Child]; task.Child != "" && (child == nil || child.Parent.Run != id || child.FinishedAt.After(task.FinishedAt)) {
				t.Errorf("after %s: task %s has run %+v", what, task.Task, child)
			}
			if task.Lost > 0 && task.Child != "" {
				t.Errorf("after %s: task %s lost its run", what, task.Task)
			}
		}
	}
	if err := r.command(t.Context(), func() {
		if left := r.leftover(); left != "" {
			t.Errorf("after %s: %s", what, left)
		}
	}); err != nil {
		t.Error(err)
	}
}

// The process may end at any deed, with snapshots in between.
func TestSubflowsSurviveEveryDeed(t *testing.T) {
	t.Parallel()
	const source = `
flow "top" {
  task "call" {
    flow  = flow.inner
    input = { payload = trigger.payload }
  }
}
flow "inner" {
  param "payload" {}
  task "first" {
    plugin = "./m.wasm"
    input  = param.payload
  }
  task "second" {
    plugin = "./m.wasm"
    input  = task.first.output
  }
}`
	set := load(t, source)
	payload := text("a", largeSize)
	for deeds := 1; ; deeds++ {
		ended := 0
		for _, done := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				m := newRemains(t)
				config, fuse := m.mortal(deeds, done)
				config.Invoker = slowly(time.Minute + time.Second)
				e, ctx := New(config), t.Context()
				e.exec.config.Restore = restore
				ctx, fuse.kill = context.WithCancel(ctx)
				over := make(chan error, 1)
				go func() { over <- e.Run(ctx) }()
				e.Deploy(ctx, set)
				receipt, accepted := e.Submit(ctx, run.Request{Flow: "top", Trigger: run.Trigger{Payload: json.RawMessage(payload)}})
				time.Sleep(10 * time.Minute)
				if ctx.Err() != nil {
					ended++
				}
				fuse.kill()
				<-over

				told := finished{}
				config = m.config()
				config.Observers = []Observation{{Observer: told, CatchUp: true}}
				r := boot(t, config, set)
				time.Sleep(10 * time.Minute)
				r.Drain()
				if err := <-r.ended; err != nil {
					t.Errorf("deed %d (done: %t): %v", deeds, done, err)
				}
				r.kill()
				if state := m.journal.state(receipt.Run); accepted == nil && state != run.Succeeded || m.journal.open() > 0 {
					t.Errorf("deed %d (done: %t): run %s is %s, %d are open\n%s", deeds, done, receipt.Run, state, m.journal.open(), &m.diary)
				}
			})
		}
		if t.Failed() || ended == 0 {
			if deeds < 12 {
				t.Errorf("there are %d deeds only", deeds)
			}
			return
		}
	}
}

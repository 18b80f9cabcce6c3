package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
)

func TestSubflowsFail(t *testing.T) {
	t.Parallel()
	set := load(t, fmt.Sprintf(callerHCL, "retries = 2", ""))
	for name, c := range map[string]struct {
		payload string
		result  run.Result
		code    string
		message string
		outcome run.Outcome
		tries   int
	}{
		"for good":        {`{}`, fails(run.OutcomeTrapped, false), "test", " of inner failed in task work: no luck", run.OutcomeTrapped, 1},
		"denied":          {`{}`, fails(run.OutcomeDenied, true), "test", " of inner failed in task work: no luck", run.OutcomeDenied, 1},
		"again and again": {`{}`, fails(run.OutcomeFailed, true), "test", " of inner failed in task work: no luck", run.OutcomeFailed, 3},
		"a wrong param":   {`{"n":"x"}`, run.Result{}, run.CodeExpression, "input: param n: a number is required", run.OutcomeRejected, 0},
		"a refused param": {`{"n":5}`, run.Result{}, run.CodeExpression, "Too many.", run.OutcomeRejected, 0},
		"an unknown one":  {`{"m":5}`, run.Result{}, run.CodeExpression, "Did you mean n?", run.OutcomeRejected, 0},
		"no object":       {`[5]`, run.Result{}, run.CodeExpression, "must be an object", run.OutcomeRejected, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Invoker: guests{"work": func(context.Context, run.Call) (run.Result, error) { return c.result, nil }}}, set)
				top := r.run("top", c.payload)
				wantStates(t, top, map[string]run.State{"": run.Failed, "call": run.Failed, "next": run.Skipped})
				task := taskOf(t, top, "call")
				if task.Attempts != c.tries || task.Error.Code != c.code || *task.Outcome != c.outcome || !strings.Contains(task.Error.Message, c.message) {
					t.Errorf("%+v %+v", task, task.Error)
				}
				if top.Error.Task != "call" || (task.Child != "") != (c.tries > 0) {
					t.Errorf("%+v", top.Error)
				}
				r.stop()
			})
		})
	}
}

// A task that is lost over and over is no lost attempt of the task above it.
func TestLostTasksOfSubflows(t *testing.T) {
	t.Parallel()
	set := load(t, fmt.Sprintf(callerHCL, "", ""))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"work": func(context.Context, run.Call) (run.Result, error) { panic("at the host") }}}, set)
		task := taskOf(t, r.run("top", `{}`), "call")
		if task.Attempts != 1 || *task.Outcome != run.OutcomeFailed || task.Error.Code != run.CodeLost {
			t.Errorf("%+v %+v", task, task.Error)
		}
		r.stop()
	})
}

func TestTimeoutsOfSubflows(t *testing.T) {
	t.Parallel()
	slow := guests{"work": takes(time.Hour), "cleanup": takes(time.Minute)}
	for name, c := range map[string]struct {
		task, flow string
		message    string
		attempts   int
		took       time.Duration
		state      run.State
	}{
		"the task's":           {"timeout = \"10s\"\nretries = 1", "", "it took longer than the timeout of its task, 10s", 2, 2*(10+60)*time.Second + time.Second, run.Failed},
		"the flow's":           {"retries = 1", `timeout = "20s"`, "the run took longer than its timeout of 20s", 2, 2*(20+60)*time.Second + time.Second, run.Failed},
		"none":                 {"", "", "", 1, time.Hour + time.Minute, run.Succeeded},
		"while it cleans up":   {`timeout = "60m30s"`, "", "", 1, time.Hour + time.Minute, run.Succeeded},
		"while it is not over": {`timeout = "59m"`, "", "timeout of its task, 59m0s", 1, 60 * time.Minute, run.Failed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, fmt.Sprintf(callerHCL, c.task, c.flow))
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Invoker: slow, Timeout: 3 * time.Hour}, set)
				top := r.run("top", `{}`)
				task := taskOf(t, top, "call")
				if top.State != c.state || task.Attempts != c.attempts || top.FinishedAt.Sub(top.CreatedAt) != c.took {
					t.Errorf("%s after %s: %+v %+v", top.State, top.FinishedAt.Sub(top.CreatedAt), task, task.Error)
				}
				if c.message != "" && (task.Error.Outcome != run.OutcomeTimedOut || !strings.HasSuffix(task.Error.Message, " of inner: "+c.message) && !strings.HasSuffix(task.Error.Message, c.message)) {
					t.Errorf("%+v", task.Error)
				}
				wantStates(t, r.child(top, "call"), map[string]run.State{"": c.state, "work": c.state, "cleanup": run.Succeeded})
				r.stop()
			})
		})
	}
}

// Wherever a stop comes from, it goes all the way down, what finally holds runs,
// and the runs end from the innermost outwards.
func TestCancelOfSubflows(t *testing.T) {
	t.Parallel()
	set := load(t, nestedHCL)
	for name, stop := range map[string]func(r *rig, top, middle, inner run.ID){
		"of the outermost": func(r *rig, top, _, _ run.ID) { r.Cancel(r.t.Context(), top, "enough") },
		"of the task":      func(r *rig, top, _, _ run.ID) { r.cancelTask(top, "call", "enough") },
		"of the middle":    func(r *rig, _, middle, _ run.ID) { r.Cancel(r.t.Context(), middle, "enough") },
		"of the innermost": func(r *rig, _, _, inner run.ID) { r.Cancel(r.t.Context(), inner, "enough") },
		"of its task":      func(r *rig, _, _, inner run.ID) { r.cancelTask(inner, "work", "enough") },
		"twice": func(r *rig, top, middle, _ run.ID) {
			r.Cancel(r.t.Context(), middle, "enough")
			r.Cancel(r.t.Context(), top, "enough of it")
		},
		"while it cleans up": func(r *rig, top, middle, inner run.ID) {
			r.Cancel(r.t.Context(), inner, "enough")
			time.Sleep(time.Second)
			r.Cancel(r.t.Context(), top, "enough of it") // reaches no task of finally
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Invoker: guests{"work": takes(time.Hour), "cleanup": takes(time.Minute)}, Timeout: 2 * time.Hour}, set)
				id := r.submit("top", `{}`)
				time.Sleep(5 * time.Second)
				middle := r.child(r.get(id), "call")
				inner := r.child(middle, "call")
				stop(r, id, middle.Run, inner.Run)
				top := r.wait(id)
				middle, inner = r.get(middle.Run), r.get(inner.Run)
				wantStates(t, top, map[string]run.State{"": run.Canceled, "first": run.Succeeded, "call": run.Canceled, "last": notRun(t, top, "last"), "top_cleanup": run.Succeeded})
				wantStates(t, middle, map[string]run.State{"": run.Canceled, "call": run.Canceled})
				wantStates(t, inner, map[string]run.State{"": run.Canceled, "work": run.Canceled, "cleanup": run.Succeeded})
				if top.FinishedAt.Sub(top.CreatedAt) != 65*time.Second || taskOf(t, top, "call").Attempts != 1 {
					t.Errorf("it took %s", top.FinishedAt.Sub(top.CreatedAt))
				}
				if !strings.Contains(top.Error.Message, "enough") || top.Error.Code != run.CodeCanceled && top.Error.Code != "test" {
					t.Errorf("%+v", top.Error)
				}
				r.stop()
			})
		})
	}
}

// notRun is one of the states in which a task that does not run any more can be.
func notRun(t *testing.T, r *run.Record, task string) run.State {
	t.Helper()
	state := taskOf(t, r, task).State
	if state != run.Canceled && state != run.Skipped {
		t.Errorf("task %s is %s", task, state)
	}
	return state
}

// The time of a run is that of the runs within it, too.
func TestTimeoutOfTheRunAboveSubflows(t *testing.T) {
	t.Parallel()
	set := load(t, fmt.Sprintf(callerHCL, "retries = 5", ""))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"work": takes(3 * time.Hour), "cleanup": takes(time.Minute)}, Timeout: 4 * time.Hour}, set)
		top := r.run("top", `{}`)
		wantStates(t, top, map[string]run.State{"": run.Failed, "call": run.Failed, "next": run.Canceled})
		wantStates(t, r.child(top, "call"), map[string]run.State{"": run.Failed, "work": run.Failed, "cleanup": run.Succeeded})
		if top.Error.Outcome != run.OutcomeTimedOut || top.FinishedAt.Sub(top.CreatedAt) != 2*time.Hour+time.Minute {
			t.Errorf("%+v after %s", top.Error, top.FinishedAt.Sub(top.CreatedAt))
		}
		r.stop()
	})
}

// The hooks of a run within another one are no part of its time, and none of that of
// the run above it.
func TestHooksOfSubflowsWhoseTimeIsUp(t *testing.T) {
	t.Parallel()
	hook := "on_failure {\n task \"mend\" {\n plugin = \"./m.wasm\"\n retries = 1\n }\n task \"tell\" {\n plugin = \"./m.wasm\"\n after = [task.mend]\n }\n }"
	set := load(t, fmt.Sprintf(callerHCL, "", hook))
	synctest.Test(t, func(t *testing.T) {
		fails := func(context.Context, run.Call) (run.Result, error) { return fails(run.OutcomeFailed, false), nil }
		r := boot(t, Config{Invoker: guests{"work": fails, "mend": takes(3 * time.Hour)}, Timeout: 4 * time.Hour}, set)
		top := r.run("top", `{}`)
		wantStates(t, top, map[string]run.State{"": run.Failed, "call": run.Failed, "next": run.Canceled})
		wantStates(t, r.child(top, "call"), map[string]run.State{"": run.Failed, "work": run.Failed, "mend": run.Succeeded, "tell": run.Succeeded, "cleanup": run.Succeeded})
		if top.Error.Outcome != run.OutcomeTimedOut || top.FinishedAt.Sub(top.CreatedAt) != 3*time.Hour {
			t.Errorf("%+v after %s", top.Error, top.FinishedAt.Sub(top.CreatedAt))
		}
		r.stop()
	})
}

// An item whose run would end that of another item does not begin once it has: one
// that does not go well lets no further one begin.
func TestItemsThatCancelEachOther(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "top" {
  task "call" {
    for_each = range(4)
    flow     = flow.inner
    input    = {}
  }
}
flow "inner" {
  concurrency {
    limit    = 1
    on_limit = "cancel_running"
  }
  wait "long" { duration = "1m" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		top := r.run("top", `{}`)
		if len(top.Tasks) != 2 || top.State != run.Canceled || top.Error.Key != "0" || !top.FinishedAt.Equal(top.CreatedAt) {
			t.Errorf("%s (%v) after %s: %+v", top.State, top.Error, top.FinishedAt.Sub(top.CreatedAt), top.Tasks)
		}
		r.stop()
	})
}

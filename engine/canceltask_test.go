package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// Everything that may depend on a task that is canceled.
const cancelTaskHCL = `
flow "f" {
  task "before" { plugin = "./m.wasm" }
  task "a" {
    plugin = "./m.wasm"
    after  = [task.before]
    retry {
      attempts = 3
      delay    = "30s"
      jitter   = 0
    }
  }
  task "next" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
  task "rescue" {
    plugin = "./m.wasm"
    input  = task.a.state
    after  = [task.a]
    run_on = "failure"
  }
  task "always" {
    plugin = "./m.wasm"
    after  = [task.a]
    run_on = "always"
  }
  task "apart" { plugin = "./m.wasm" }
  on_failure {
    task "alert" { plugin = "./m.wasm" }
  }
}`

// failing fails in a way that asks for another attempt.
func failing(context.Context, run.Call) (run.Result, error) {
	return fails(run.OutcomeFailed, true), nil
}

func (r *rig) cancelTask(id run.ID, task, reason string) {
	r.t.Helper()
	if err := r.CancelTask(context.Background(), id, run.TaskRef{Task: task}, reason); err != nil {
		r.t.Errorf("cancel of task %s: %v", task, err)
	}
}

func TestCancelOfATaskWhereverItStands(t *testing.T) {
	t.Parallel()
	set := load(t, cancelTaskHCL)
	for name, c := range map[string]struct {
		workers  int
		invoker  guests
		attempts int
	}{
		"while it waits for another":   {8, guests{"before": takes(20 * time.Second)}, 0},
		"before a worker is free":      {1, guests{"before": nil, "apart": takes(20 * time.Second)}, 0},
		"during an attempt":            {8, guests{"a": takes(time.Hour)}, 1},
		"while its next one is due":    {8, guests{"a": failing}, 1},
		"during an attempt that fails": {8, guests{"a": stubborn(failing)}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Workers: c.workers, Invoker: c.invoker}, set)
				id := r.submit("f", `null`)
				time.Sleep(5 * time.Second)
				r.cancelTask(id, "a", "not needed")
				if err := r.CancelTask(t.Context(), id, run.TaskRef{Task: "a"}, "again"); err != nil && !errors.Is(err, ErrFinished) {
					t.Errorf("the second cancel is answered with %v", err)
				}
				canceled := time.Now()
				record := r.wait(id)
				a := taskOf(t, record, "a")
				want := map[string]run.State{
					"": run.Canceled, "before": run.Succeeded, "a": run.Canceled, "apart": run.Succeeded,
					"next": run.Skipped, "rescue": run.Succeeded, "always": run.Succeeded,
				}
				if name == "during an attempt that fails" {
					want["a"], want[""], want["alert"] = run.Failed, run.Failed, run.Succeeded
				}
				wantStates(t, record, want)
				if a.Attempts != c.attempts {
					t.Errorf("task a was attempted %d times, want %d", a.Attempts, c.attempts)
				}
				if want[""] == run.Canceled && (record.Error == nil || record.Error.Task != "a" || record.Error.Code == "") {
					t.Errorf("the run's error is %+v", record.Error)
				}
				if c.attempts == 0 && (a.Error.Message != "not needed" || a.Error.Code != run.CodeCanceled || a.Error.At == "") {
					t.Errorf("the task's error is %+v", a.Error)
				}
				if e := taskOf(t, record, "next").Error; e == nil || e.Code != run.CodeUpstream {
					t.Errorf("the task downstream has the error %+v", e)
				}
				if got := string(taskOf(t, record, "rescue").Input); got != `"`+string(want["a"])+`"` {
					t.Errorf("the task downstream sees the state %s", got)
				}
				if took := record.FinishedAt.Sub(canceled); took > 15*time.Second {
					t.Errorf("the run ended %s after the task was canceled", took)
				}
				r.stop()
				if n := r.Timers(); n != 0 {
					t.Errorf("%d timers are left armed", n)
				}
			})
		})
	}
}

// stubborn ends as f does, 5 s after it was asked to stop.
func stubborn(f func(context.Context, run.Call) (run.Result, error)) func(context.Context, run.Call) (run.Result, error) {
	return func(ctx context.Context, c run.Call) (run.Result, error) {
		<-ctx.Done()
		time.Sleep(5 * time.Second)
		return f(ctx, c)
	}
}

// An attempt that succeeds although it was asked to stop has succeeded.
func TestCancelThatComesTooLateForItsAttempt(t *testing.T) {
	t.Parallel()
	set := load(t, cancelTaskHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": stubborn(func(_ context.Context, c run.Call) (run.Result, error) { return gives(c.Input), nil })}}, set)
		id := r.submit("f", `null`)
		time.Sleep(time.Second)
		r.cancelTask(id, "a", "not needed")
		wantStates(t, r.wait(id), map[string]run.State{
			"": run.Succeeded, "before": run.Succeeded, "a": run.Succeeded, "apart": run.Succeeded,
			"next": run.Succeeded, "rescue": run.Skipped, "always": run.Succeeded,
		})
		r.stop()
	})
}

func TestCancelOfTasksThatCannotBe(t *testing.T) {
	t.Parallel()
	set := load(t, cancelTaskHCL)
	synctest.Test(t, func(t *testing.T) {
		older := &run.Record{Run: run.NewID(time.Now()), Flow: "f", State: run.Failed}
		r := boot(t, Config{Invoker: guests{"a": takes(time.Minute)}, History: newPastRuns(older)}, set)
		id := r.submit("f", `null`)
		time.Sleep(time.Second)
		for _, c := range []struct {
			id   run.ID
			ref  run.TaskRef
			want error
		}{
			{id, run.TaskRef{Task: "before"}, ErrFinished},
			{id, run.TaskRef{Task: "z"}, ErrUnknownTask},
			{id, run.TaskRef{Task: "a", Key: "k"}, ErrUnknownTask},
			{id, run.TaskRef{}, ErrUnknownTask},
			{older.Run, run.TaskRef{Task: "a"}, ErrFinished},
			{run.NewID(time.Now()), run.TaskRef{Task: "a"}, run.ErrUnknown},
		} {
			before := eventsOf(t, r.journal, id)
			if err := r.CancelTask(t.Context(), c.id, c.ref, ""); !errors.Is(err, c.want) {
				t.Errorf("cancel of %+v is answered with %v, want %v", c.ref, err, c.want)
			}
			if after := eventsOf(t, r.journal, id); after != before {
				t.Errorf("cancel of %+v left %d events", c.ref, after-before)
			}
		}
		r.wait(id)
		if err := r.CancelTask(t.Context(), id, run.TaskRef{Task: "a"}, ""); !errors.Is(err, ErrFinished) {
			t.Errorf("a task of a finished run is answered with %v", err)
		}
		r.stop()
	})
}

const hookHCL = `
flow "f" {
  task "a" { plugin = "./m.wasm" }
  on_failure {
    task "alert" { plugin = "./m.wasm" }
    task "page" {
      plugin = "./m.wasm"
      after  = [task.alert]
      run_on = "always"
    }
  }
}`

func TestCancelOfATaskInAHook(t *testing.T) {
	t.Parallel()
	set := load(t, hookHCL)
	synctest.Test(t, func(t *testing.T) {
		bad := func(context.Context, run.Call) (run.Result, error) { return fails(run.OutcomeFailed, false), nil }
		r := boot(t, Config{Invoker: guests{"a": bad, "alert": takes(time.Hour)}}, set)
		id := r.submit("f", `null`)
		time.Sleep(time.Second)
		if err := r.CancelTask(t.Context(), id, run.TaskRef{Task: "a"}, ""); !errors.Is(err, ErrFinished) {
			t.Errorf("a main task is answered with %v", err)
		}
		r.cancelTask(id, "alert", "nobody is there")
		record := r.wait(id)
		wantStates(t, record, map[string]run.State{"": run.Failed, "a": run.Failed, "alert": run.Canceled, "page": run.Succeeded})
		if record.Error.Task != "a" || record.FinishedAt.Sub(record.CreatedAt) != time.Second {
			t.Errorf("the run ends after %s with %+v", record.FinishedAt.Sub(record.CreatedAt), record.Error)
		}
		r.stop()
	})
}

// A hook's task may be canceled before there is a reason to run the hook.
func TestCancelOfATaskOfAHookToCome(t *testing.T) {
	t.Parallel()
	set := load(t, hookHCL)
	for name, c := range map[string]struct {
		a    func(context.Context, run.Call) (run.Result, error)
		want map[string]run.State
	}{
		"that is not needed": {takes(time.Minute), map[string]run.State{"": run.Succeeded, "a": run.Succeeded, "alert": run.Canceled}},
		"that is run": {
			func(ctx context.Context, c run.Call) (run.Result, error) {
				time.Sleep(time.Minute)
				return fails(run.OutcomeFailed, false), nil
			},
			map[string]run.State{"": run.Failed, "a": run.Failed, "alert": run.Canceled, "page": run.Succeeded},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Invoker: guests{"a": c.a}}, set)
				id := r.submit("f", `null`)
				time.Sleep(time.Second)
				r.cancelTask(id, "alert", "nobody is there")
				record := r.wait(id)
				wantStates(t, record, c.want)
				if alert := taskOf(t, record, "alert"); alert.Attempts != 0 || alert.Error.Message != "nobody is there" {
					t.Errorf("the hook's task is %+v", alert)
				}
				r.stop()
			})
		})
	}
}

// A task may be canceled before its run has its slot.
func TestCancelOfATaskOfAPendingRun(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  concurrency {
    limit = 1
  }
  task "a" { plugin = "./m.wasm" }
  task "b" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Minute)}}, set)
		first, second := r.submit("f", `null`), r.submit("f", `null`)
		time.Sleep(time.Second)
		r.cancelTask(second, "a", "not needed")
		if record, err := r.Get(t.Context(), second); err != nil || record.State != run.Pending {
			t.Errorf("the run is %+v, %v", record, err)
		}
		wantStates(t, r.wait(first), map[string]run.State{"": run.Succeeded, "a": run.Succeeded, "b": run.Succeeded})
		record := r.wait(second)
		wantStates(t, record, map[string]run.State{"": run.Canceled, "a": run.Canceled, "b": run.Succeeded})
		if taskOf(t, record, "a").Attempts != 0 {
			t.Error("the canceled task was attempted")
		}
		r.stop()
	})
}

// A run that is canceled after one of its tasks was ends as any other.
func TestCancelOfARunAfterOneOfItsTasks(t *testing.T) {
	t.Parallel()
	set := load(t, cancelTaskHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"before": takes(time.Minute)}}, set)
		id := r.submit("f", `null`)
		time.Sleep(time.Second)
		r.cancelTask(id, "next", "not needed")
		if err := r.Cancel(t.Context(), id, "none of it"); err != nil {
			t.Fatal(err)
		}
		record := r.wait(id)
		wantStates(t, record, map[string]run.State{
			"": run.Canceled, "before": run.Canceled, "a": run.Canceled, "apart": run.Succeeded,
			"next": run.Canceled, "rescue": run.Canceled, "always": run.Canceled,
		})
		if record.Error.Message != "none of it" {
			t.Errorf("the run's error is %+v", record.Error)
		}
		r.stop()
	})
}

// Whoever asked for a cancel has the answer that it is durable. Wherever the process
// ends after that, the task gets no attempt more.
func TestCanceledTaskStaysCanceledFromEveryEvent(t *testing.T) {
	t.Parallel()
	set := load(t, cancelTaskHCL)
	for name, invoker := range map[string]guests{
		"while it waits for another": {"before": takes(20 * time.Second)},
		"during an attempt":          {"a": takes(time.Hour)},
		"while its next one is due":  {"a": failing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Invoker: invoker}, set)
				id := r.submit("f", `null`)
				time.Sleep(5 * time.Second)
				r.cancelTask(id, "a", "not needed")
				r.wait(id)
				r.stop()
				fromEveryEvent(t, r.journal, id, func(j Journal) *rig {
					return boot(t, Config{Journal: j, Invoker: guests{}}, set)
				}, func(n uint64, r *rig, got *run.Record) {
					canceled, made := false, 0
					for _, e := range eventsIn(t, r.journal) {
						switch d := e.Data.(type) {
						case *run.TaskCancelRequested:
							canceled = true
						case *run.AttemptStarted:
							if d.Task == "a" && canceled {
								made++
							}
						}
					}
					if made > 0 || canceled && got.State == run.Succeeded {
						t.Errorf("after event %d: %d attempts of the canceled task, the run is %s", n, made, got.State)
					}
					if next := taskOf(t, got, "next").State; canceled && next != run.Skipped {
						t.Errorf("after event %d: the task downstream is %s", n, next)
					}
				})
			})
		})
	}
}

// The same holds for runs.
func TestCanceledRunStaysCanceledFromEveryEvent(t *testing.T) {
	t.Parallel()
	set := load(t, cancelTaskHCL)
	for name, invoker := range map[string]guests{
		"during an attempt":         {"a": takes(time.Hour)},
		"while its next one is due": {"a": failing},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Invoker: invoker}, set)
				id := r.submit("f", `null`)
				time.Sleep(5 * time.Second)
				if err := r.Cancel(t.Context(), id, "not needed"); err != nil {
					t.Fatal(err)
				}
				r.wait(id)
				r.stop()
				fromEveryEvent(t, r.journal, id, func(j Journal) *rig {
					return boot(t, Config{Journal: j, Invoker: guests{}}, set)
				}, func(n uint64, r *rig, got *run.Record) {
					canceled := false
					for _, e := range eventsIn(t, r.journal) {
						switch e.Data.(type) {
						case *run.CancelRequested:
							canceled = true
						case *run.AttemptStarted:
							if canceled {
								t.Errorf("after event %d: an attempt starts in the canceled run", n)
							}
						}
					}
					if canceled && got.State != run.Canceled {
						t.Errorf("after event %d: the run is %s", n, got.State)
					}
				})
			})
		})
	}
}

// eventsIn gives all events of a journal.
func eventsIn(t *testing.T, j Journal) []run.Event {
	t.Helper()
	var all []run.Event
	err := j.Replay(t.Context(), 0, func(_ uint64, stored []byte) error {
		commit, err := wire.DecodeCommit(stored)
		if err == nil {
			all = append(all, commit.Events...)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// A cancel that is not durable has not been promised.
func TestCancelOfATaskIsAnsweredWhenItIsDurable(t *testing.T) {
	t.Parallel()
	set := load(t, cancelTaskHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := newGated()
		r := boot(t, Config{Journal: journal, Invoker: guests{"a": takes(time.Hour)}}, set)
		id := r.submit("f", `null`)
		time.Sleep(time.Second)
		journal.shut()
		for range 2 { // nor has the second one, which records nothing
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			if err := r.CancelTask(ctx, id, run.TaskRef{Task: "a"}, ""); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the answer is %v", err)
			}
			stop()
		}
		journal.open()
		record := r.wait(id)
		if diff := cmp.Diff(run.Canceled, record.State); diff != "" {
			t.Errorf("the run's state differs:\n%s", diff)
		}
		r.stop()
	})
}

// An attempt that is asked to end because another member of its race was first, and is
// lost with the host before it has, was canceled all the same: what comes after its
// group sees a race that was lost and no failure.
func TestALostAttemptThatWasBeingCanceled(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  group "first" {
    mode = "race"
    group "slow" {
      task "stubborn" { plugin = "./m.wasm" }
    }
    task "fast" { plugin = "./m.wasm" }
  }
  task "next" {
    plugin = "./m.wasm"
    after  = [group.first, group.slow]
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		host := guests{"fast": takes(time.Second), "stubborn": func(context.Context, run.Call) (run.Result, error) {
			time.Sleep(time.Minute)
			return fails(run.OutcomeCanceled, false), nil
		}}
		r := boot(t, Config{Invoker: host}, set)
		id := r.submit("f", `null`)
		time.Sleep(2 * time.Second)
		synctest.Wait()
		r.crash()
		r = boot(t, Config{Invoker: host, Journal: r.journal}, set)
		record := r.wait(id)
		wantStates(t, record, map[string]run.State{"": run.Succeeded, "stubborn": run.Canceled, "fast": run.Succeeded, "next": run.Succeeded})
		if f := taskOf(t, record, "stubborn").Error; f == nil || f.Code != run.CodeRace {
			t.Errorf("it ended for %v", f)
		}
		r.stop()
	})
}

// A call makes its failure of the cause that its context ends with.
func TestWhyAnAttemptIsCanceled(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  group "first" {
    mode = "race"
    task "a" { plugin = "./m.wasm" }
    task "b" { plugin = "./m.wasm" }
  }
}
`)
	heeds := func(ctx context.Context, _ run.Call) (run.Result, error) {
		<-ctx.Done()
		if cause := context.Cause(ctx); errors.Is(cause, run.ErrCanceled) {
			return run.Result{Outcome: run.OutcomeCanceled, Failure: &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: cause.Error()}}, nil
		}
		return run.Result{}, ctx.Err()
	}
	for name, c := range map[string]struct {
		b    func(context.Context, run.Call) (run.Result, error)
		stop func(r *rig, id run.ID) error
		want string
	}{
		"with the task": {heeds, func(r *rig, id run.ID) error {
			return r.CancelTask(r.t.Context(), id, run.TaskRef{Task: "a"}, "not needed")
		}, "not needed"},
		"with the run":   {heeds, func(r *rig, id run.ID) error { return r.Cancel(r.t.Context(), id, "wrong order") }, "wrong order"},
		"for no reason":  {heeds, func(r *rig, id run.ID) error { return r.Cancel(r.t.Context(), id, "") }, "canceled"},
		"by a lost race": {takes(2 * time.Second), func(*rig, run.ID) error { return nil }, "b was first in the race of group first"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Invoker: guests{"a": heeds, "b": c.b}}, set)
				id := r.submit("f", `null`)
				time.Sleep(time.Second)
				if err := c.stop(r, id); err != nil {
					t.Error(err)
				}
				time.Sleep(2 * time.Second)
				if got := taskOf(t, r.get(id), "a").Error; got == nil || got.Message != c.want {
					t.Errorf("the attempt was canceled with %+v, want %q", got, c.want)
				}
				r.stop()
			})
		})
	}
}

// The task that was a canceled run says that it was canceled, not that it failed.
func TestWhyASubflowWasCanceled(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "outer" {
  task "call" { flow = flow.inner }
}
flow "inner" {
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Hour)}}, set)
		id := r.submit("outer", `null`)
		time.Sleep(time.Second)
		child := taskOf(t, r.get(id), "call").Child
		r.cancelTask(child, "a", "not needed")
		want := fmt.Sprintf("run %s of inner was canceled in task a: not needed", child)
		if got := taskOf(t, r.wait(id), "call").Error; got == nil || got.Message != want {
			t.Errorf("the task of the canceled run has %+v, want %q", got, want)
		}
		r.stop()
	})
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// waitFlow has one wait between two tasks.
func waitFlow(arguments string) string {
	return `
flow "f" {
  task "before" { plugin = "./m.wasm" }
  wait "w" {
    after = [task.before]
    ` + arguments + `
  }
  task "after" {
    plugin = "./m.wasm"
    input  = { payload = wait.w.payload, seconds = wait.w.duration }
  }
  task "always" {
    plugin = "./m.wasm"
    run_on = "always"
    input  = { state = wait.w.state, code = try(wait.w.error.code, null) }
  }
}`
}

func (r *rig) signal(id run.ID, wait, payload string) {
	r.t.Helper()
	if err := r.Signal(context.Background(), id, wait, json.RawMessage(payload)); err != nil {
		r.t.Fatalf("signal %s: %v", wait, err)
	}
}

func (r *rig) approve(id run.ID, wait string, a run.Approval) {
	r.t.Helper()
	if err := r.Approve(context.Background(), id, wait, a); err != nil {
		r.t.Fatalf("approve %s: %v", wait, err)
	}
}

func TestWaits(t *testing.T) {
	t.Parallel()
	signal := func(r *rig, id run.ID) { r.signal(id, "w", `{"n":1}`) }
	for name, c := range map[string]struct {
		arguments string
		answer    func(*rig, run.ID) // ten seconds after the start
		state     run.State
		took      time.Duration
		payload   string
		code      string
	}{
		"some time":         {`duration = "${trigger.payload.hours}h"`, nil, run.Succeeded, 3 * time.Hour, `null`, ""},
		"no time":           {`duration = "0s"`, nil, run.Succeeded, 0, `null`, ""},
		"an instant":        {`until = "2000-01-01T02:00:00+01:00"`, nil, run.Succeeded, time.Hour, `null`, ""},
		"an instant gone":   {`until = "1970-01-01T00:00:00Z"`, nil, run.Succeeded, 0, `null`, ""},
		"a signal":          {`signal = true`, signal, run.Succeeded, 10 * time.Second, `{"n":1}`, ""},
		"an empty signal":   {`signal = true`, func(r *rig, id run.ID) { r.signal(id, "w", "") }, run.Succeeded, 10 * time.Second, `null`, ""},
		"a message":         {`subject = "a.${run.id}"`, signal, run.Succeeded, 10 * time.Second, `{"n":1}`, ""},
		"a signal in time":  {"signal = true\ntimeout = \"11s\"", signal, run.Succeeded, 10 * time.Second, `{"n":1}`, ""},
		"a signal too late": {"signal = true\ntimeout = \"9s\"", nil, run.Failed, 9 * time.Second, ``, run.CodeTimeout},
		"time, too late":    {"duration = \"1h\"\ntimeout = \"30m\"", nil, run.Failed, 30 * time.Minute, ``, run.CodeTimeout},
		"time, in time":     {"duration = \"30m\"\ntimeout = \"30m\"", nil, run.Succeeded, 30 * time.Minute, `null`, ""},
		"skipped":           {"signal = true\nwhen = false", nil, run.Skipped, 0, ``, ""},
		"approved": {`approval = "Ship ${trigger.payload.hours}?"`, func(r *rig, id run.ID) {
			r.approve(id, "w", run.Approval{Approved: true, By: "anna", Payload: json.RawMessage(`[1]`)})
		}, run.Succeeded, 10 * time.Second, `{"approved":true,"by":"anna","payload":[1],"reason":null}`, ""},
		"refused": {`approval = "Ship?"`, func(r *rig, id run.ID) { r.approve(id, "w", run.Approval{Reason: "too early"}) },
			run.Failed, 10 * time.Second, ``, run.CodeRefused},
		"not a duration": {`duration = "${trigger.payload.hours}"`, nil, run.Failed, 0, ``, run.CodeExpression},
		"a wildcard":     {`subject = "a.${trigger.payload.star}"`, nil, run.Failed, 0, ``, run.CodeExpression},
		"reserved":       {`subject = "${trigger.payload.own}.v1.api.run.f"`, nil, run.Failed, 0, ``, run.CodeExpression},
		"an inbox":       {`subject = "${trigger.payload.inbox}.x"`, nil, run.Failed, 0, ``, run.CodeExpression},
		"no value":       {`until = trigger.payload.none`, nil, run.Failed, 0, ``, run.CodeExpression},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, waitFlow(c.arguments))
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{}, set)
				id := r.submit("f", `{"hours":3,"star":"*","none":null,"own":"fh","inbox":"_INBOX"}`)
				time.Sleep(10 * time.Second)
				if c.answer != nil {
					c.answer(r, id)
				}
				record := r.wait(id)
				next := map[run.State]run.State{run.Failed: run.Skipped, run.Succeeded: run.Succeeded, run.Skipped: run.Skipped}[c.state]
				ends := map[run.State]run.State{run.Failed: run.Failed, run.Succeeded: run.Succeeded, run.Skipped: run.Succeeded}[c.state]
				wantStates(t, record, map[string]run.State{"": ends, "before": run.Succeeded, "wait.w": c.state, "after": next, "always": run.Succeeded})
				w := taskOf(t, record, "wait.w")
				if took := w.FinishedAt.Sub(*taskOf(t, record, "before").FinishedAt); took != c.took {
					t.Errorf("it took %s, not %s", took, c.took)
				}
				if w.Attempts != 0 || w.Due != nil {
					t.Errorf("the record is %+v", w)
				}
				if want := fmt.Sprintf(`{"payload":%s,"seconds":%v}`, c.payload, c.took.Seconds()); next == run.Succeeded && string(taskOf(t, record, "after").Input) != want {
					t.Errorf("the task after it sees %s, not %s", taskOf(t, record, "after").Input, want)
				}
				code, _ := json.Marshal(c.code)
				if c.code == "" {
					code = []byte("null")
				}
				if want := fmt.Sprintf(`{"code":%s,"state":%q}`, code, c.state); string(taskOf(t, record, "always").Input) != want {
					t.Errorf("a task sees %s, not %s", taskOf(t, record, "always").Input, want)
				}
				if c.code != "" && (record.Error.Task != "wait.w" || record.Error.Code != c.code || !strings.HasPrefix(record.Error.At, "test.hcl:")) {
					t.Errorf("the run's error is %+v", record.Error)
				}
				r.stop()
				if n := r.Timers(); n != 0 {
					t.Errorf("%d timers are left armed", n)
				}
			})
		})
	}
}

// What is waited for can be seen while it is.
func TestWaitsAreShown(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  wait "message" {
    subject = "a.${run.flow}"
    timeout = "1h"
  }
  wait "approval" { approval = "Ship to ${trigger.payload}?" }
  wait "time"     { duration = "2h" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 1}, set)
		id := r.submit("f", `"Rome"`)
		synctest.Wait()
		record, err := r.Get(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		now := *record.StartedAt
		message, approval, timed := taskOf(t, record, "wait.message"), taskOf(t, record, "wait.approval"), taskOf(t, record, "wait.time")
		if message.State != run.Running || message.Subject != "a.f" || !message.Deadline.Equal(now.Add(time.Hour)) || message.Due != nil {
			t.Errorf("the message is %+v", message)
		}
		if approval.Approval != "Ship to Rome?" || approval.Deadline != nil {
			t.Errorf("the approval is %+v", approval)
		}
		if !timed.Due.Equal(now.Add(2 * time.Hour)) {
			t.Errorf("the time is %+v", timed)
		}
		if s := r.Stats(); s.Running != 0 {
			t.Errorf("waits hold %d workers", s.Running)
		}
		r.Cancel(t.Context(), id, "enough")
		wantStates(t, r.wait(id), map[string]run.State{"": run.Canceled, "wait.message": run.Canceled, "wait.approval": run.Canceled, "wait.time": run.Canceled})
		r.stop()
		if n := r.Timers(); n != 0 {
			t.Errorf("%d timers are left armed", n)
		}
	})
}

func TestSignalsThatCannotBe(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  wait "done"  { duration = "0s" }
  wait "timed" { duration = "1h" }
  wait "signal" { signal = true }
  wait "approval" { approval = "Go on?" }
  task "slow" { plugin = "./m.wasm" }
  wait "later" {
    signal = true
    after  = [task.slow]
  }
  on_failure {
    wait "hook" { signal = true }
  }
}
flow "queued" {
  concurrency {
    limit = 1
  }
  wait "signal" { signal = true }
}`)
	synctest.Test(t, func(t *testing.T) {
		older := &run.Record{Run: run.NewID(time.Now()), Flow: "f", State: run.Failed}
		r := boot(t, Config{Invoker: guests{"slow": takes(time.Minute)}, History: newPastRuns(older)}, set)
		id := r.submit("f", `null`)
		r.submit("queued", `null`)
		pending := r.submit("queued", `null`)
		time.Sleep(time.Second)
		for _, c := range []struct {
			id   run.ID
			wait string
			ok   error
		}{
			{id, "done", ErrWaitKind}, {id, "timed", ErrWaitKind}, {id, "approval", ErrWaitKind}, {id, "later", ErrNotWaiting},
			{id, "hook", ErrNotWaiting}, {id, "none", ErrUnknownWait}, {id, "slow", ErrUnknownWait}, {id, "", ErrUnknownWait},
			{pending, "signal", ErrNotWaiting}, {older.Run, "signal", ErrFinished}, {run.NewID(time.Now()), "signal", run.ErrUnknown},
		} {
			before := eventsOf(t, r.journal, c.id)
			if err := r.Signal(t.Context(), c.id, c.wait, nil); !errors.Is(err, c.ok) {
				t.Errorf("a signal for %q is answered with %v, want %v", c.wait, err, c.ok)
			}
			if after := eventsOf(t, r.journal, c.id); after != before {
				t.Errorf("a signal for %q left %d events", c.wait, after-before)
			}
		}
		if err := r.Approve(t.Context(), id, "signal", run.Approval{Approved: true}); !errors.Is(err, ErrWaitKind) {
			t.Errorf("an approval of a signal is answered with %v", err)
		}
		if err := (*run.RequestError)(nil); !errors.As(r.Signal(t.Context(), id, "signal", json.RawMessage(`{`)), &err) || err.Code != run.RequestPayload {
			t.Errorf("a payload that is not JSON is answered with %v", err)
		}
		if err := (*run.RequestError)(nil); !errors.As(r.Approve(t.Context(), id, "approval", run.Approval{Payload: json.RawMessage(`{`)}), &err) {
			t.Errorf("a payload that is not JSON is answered with %v", err)
		}
		if err := (*run.RequestError)(nil); !errors.As(r.Signal(t.Context(), id, "signal", json.RawMessage(text("x", maxPayload))), &err) || err.Code != run.RequestSize {
			t.Errorf("a payload that is too large is answered with %v", err)
		}
		r.signal(id, "signal", `1`)
		if err := r.Signal(t.Context(), id, "signal", json.RawMessage(`2`)); !errors.Is(err, ErrWaitEnded) {
			t.Errorf("a second signal is answered with %v", err)
		}
		r.approve(id, "approval", run.Approval{Approved: true})
		if err := r.Approve(t.Context(), id, "approval", run.Approval{}); !errors.Is(err, ErrWaitEnded) {
			t.Errorf("a second answer is answered with %v", err)
		}
		time.Sleep(2 * time.Hour)
		r.signal(id, "later", ``)
		record := r.wait(id)
		if got := string(taskOf(t, record, "wait.signal").Output); got != "1" || record.State != run.Succeeded {
			t.Errorf("the run is %s, and the first signal gave %s", record.State, got)
		}
		if err := r.Signal(t.Context(), id, "signal", nil); !errors.Is(err, ErrFinished) {
			t.Errorf("a signal for a finished run is answered with %v", err)
		}
		r.stop()
	})
}

// Of many signals at the instant of the timeout, one wins at most, and whoever was
// told so has won.
func TestSignalsAndTimeoutAtOnce(t *testing.T) {
	t.Parallel()
	set := load(t, waitFlow("signal = true\ntimeout = \"10s\""))
	for round := range 50 {
		synctest.Test(t, func(t *testing.T) {
			r := boot(t, Config{}, set)
			id := r.submit("f", `null`)
			var mu sync.Mutex
			var won []string
			var all sync.WaitGroup
			for i := range 4 {
				all.Go(func() {
					time.Sleep(10*time.Second - time.Duration((round+i)%2))
					payload := fmt.Sprint(i)
					if err := r.Signal(context.Background(), id, "w", json.RawMessage(payload)); err == nil {
						mu.Lock()
						defer mu.Unlock()
						won = append(won, payload)
					} else if !errors.Is(err, ErrWaitEnded) && !errors.Is(err, ErrFinished) {
						t.Errorf("a signal is answered with %v", err)
					}
				})
			}
			all.Wait()
			record := r.wait(id)
			w := taskOf(t, record, "wait.w")
			switch {
			case len(won) > 1:
				t.Errorf("%d signals have ended the wait", len(won))
			case len(won) == 1 && (w.State != run.Succeeded || string(w.Output) != won[0]):
				t.Errorf("signal %s was taken, and the wait is %s with %s", won[0], w.State, w.Output)
			case len(won) == 0 && (w.State != run.Failed || w.Error.Code != run.CodeTimeout):
				t.Errorf("no signal was taken, and the wait is %s", w.State)
			}
			r.stop()
		})
	}
}

// A signal that is not durable has not been promised.
func TestSignalIsAnsweredWhenItIsDurable(t *testing.T) {
	t.Parallel()
	set := load(t, waitFlow("signal = true"))
	synctest.Test(t, func(t *testing.T) {
		journal := newGated()
		r := boot(t, Config{Journal: journal}, set)
		id := r.submit("f", `null`)
		time.Sleep(time.Second)
		journal.shut()
		for range 2 { // nor has the second one, which records nothing
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			if err := r.Signal(ctx, id, "w", nil); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("the answer is %v", err)
			}
			stop()
		}
		journal.open()
		if record := r.wait(id); record.State != run.Succeeded {
			t.Errorf("the run is %s", record.State)
		}
		r.stop()
	})
}

func TestCancelEndsWaits(t *testing.T) {
	t.Parallel()
	source := `
flow "f" {
  timeout = "1h"
  wait "w" { signal = true }
  task "after" {
    plugin = "./m.wasm"
    after  = [wait.w]
  }
  on_failure {
    wait "hook" {
      duration = "1m"
    }
    task "alert" {
      plugin = "./m.wasm"
      after  = [wait.hook]
      input  = error.task
    }
  }
  finally {
    timeout = "10m"
    wait "last" { signal = true }
  }
}`
	for name, c := range map[string]struct {
		cancel func(*rig, run.ID) error
		want   map[string]run.State
		took   time.Duration
	}{
		"of the run": {func(r *rig, id run.ID) error { return r.Cancel(context.Background(), id, "enough") },
			map[string]run.State{"": run.Canceled, "wait.w": run.Canceled, "after": run.Canceled, "wait.last": run.Canceled}, time.Second + 10*time.Minute},
		"of the wait": {func(r *rig, id run.ID) error {
			return r.CancelTask(context.Background(), id, run.TaskRef{Task: "wait.w"}, "enough")
		}, map[string]run.State{"": run.Canceled, "wait.w": run.Canceled, "after": run.Skipped, "wait.last": run.Canceled}, time.Second + 10*time.Minute},
		"by the run's timeout": {func(*rig, run.ID) error { return nil },
			map[string]run.State{"": run.Failed, "wait.w": run.Canceled, "after": run.Canceled, "wait.hook": run.Succeeded, "alert": run.Succeeded, "wait.last": run.Canceled},
			time.Hour + time.Minute + 10*time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, source)
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{}, set)
				id := r.submit("f", `null`)
				time.Sleep(time.Second)
				if err := c.cancel(r, id); err != nil {
					t.Fatal(err)
				}
				record := r.wait(id)
				wantStates(t, record, c.want)
				if took := record.FinishedAt.Sub(record.CreatedAt); took != c.took {
					t.Errorf("the run took %s, not %s", took, c.took)
				}
				r.stop()
				if n := r.Timers(); n != 0 {
					t.Errorf("%d timers are left armed", n)
				}
				fromEveryEvent(t, r.journal, id, func(j Journal) *rig { return boot(t, Config{Journal: j}, set) },
					func(n uint64, r *rig, got *run.Record) {
						if asked := fold(t, r.journal).Runs[id].Cancel; asked != nil && got.State == run.Succeeded {
							t.Errorf("after event %d: the run is %s", n, got.State)
						}
					})
			})
		})
	}
}

// The process may end at any moment: what was answered stays, what counts continues,
// and what became due meanwhile ends at once.
func TestWaitsGoOnFromEveryEvent(t *testing.T) {
	t.Parallel()
	source := `
flow "f" {
  wait "hour" { duration = "1h" }
  wait "noon" { until = "2000-01-01T12:00:00Z" }
  wait "limited" {
    signal  = true
    timeout = "2h"
  }
  wait "signal" { signal = true }
  wait "approval" { approval = "Go on?" }
  task "after" {
    plugin = "./m.wasm"
    input  = [wait.signal.payload, wait.approval.payload.approved, wait.hour.state]
  }
}`
	set := load(t, source)
	answer := func(r *rig, id run.ID) {
		for _, err := range []error{
			r.Signal(context.Background(), id, "signal", json.RawMessage(`7`)),
			r.Approve(context.Background(), id, "approval", run.Approval{Approved: true}),
		} {
			if err != nil && !errors.Is(err, ErrWaitEnded) && !errors.Is(err, ErrFinished) {
				t.Errorf("an answer: %v", err)
			}
		}
	}
	for _, down := range []time.Duration{0, 90 * time.Minute, 24 * time.Hour} {
		t.Run(down.String(), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{}, set)
				id := r.submit("f", `null`)
				time.Sleep(time.Minute)
				answer(r, id)
				started := *r.wait(id).StartedAt
				r.stop()
				checked := 0
				fine := finest(t, r.journal)
				for n := range fine.Last() {
					journal := prefix(t, fine, n)
					if accepted := fold(t, journal).Runs[id]; accepted == nil || accepted.State.Done() {
						continue
					}
					clock := scheduler.NewVirtualClock(started.Add(down + time.Minute))
					r := boot(t, Config{Journal: journal, Clock: clock}, set)
					synctest.Wait()
					answer(r, id)
					pass(clock, 24*time.Hour, time.Minute)
					record := r.wait(id)
					if got := string(taskOf(t, record, "after").Input); got != `[7,true,"succeeded"]` {
						t.Errorf("after event %d: the task after them sees %s", n, got)
					}
					limited := taskOf(t, record, "wait.limited")
					if limited.Error == nil || limited.Error.Code != run.CodeTimeout {
						t.Errorf("after event %d: the wait with a timeout is %+v", n, limited)
					}
					for _, name := range []string{"wait.hour", "wait.limited"} {
						w := taskOf(t, record, name)
						want := max(map[string]time.Duration{"wait.hour": time.Hour, "wait.limited": 2 * time.Hour}[name], clock.Now().Sub(*w.StartedAt)-24*time.Hour)
						if took := w.FinishedAt.Sub(*w.StartedAt); took != want && w.FinishedAt.After(started.Add(down)) {
							t.Errorf("after event %d: %s took %s, not %s", n, name, took, want)
						}
					}
					r.stop()
					checked++
				}
				if checked < 10 {
					t.Errorf("the run was continued from %d places only", checked)
				}
			})
		})
	}
}

// A duration counts elapsed time. An instant is one of the clock.
func TestWaitsAndTheClock(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  wait "hour" { duration = "1h" }
  wait "two"  { until = "2000-01-01T02:00:00Z" }
  wait "limited" {
    signal  = true
    timeout = "30m"
  }
}`)
	for _, by := range []time.Duration{-time.Hour, time.Hour + 45*time.Minute} {
		synctest.Test(t, func(t *testing.T) {
			clock := scheduler.NewVirtualClock(epoch)
			r := boot(t, Config{Clock: clock}, set)
			id := r.submit("f", `null`)
			synctest.Wait()
			pass(clock, 20*time.Minute, time.Minute)
			clock.Set(clock.Now().Add(by))
			synctest.Wait()
			elapsed, over := 20*time.Minute, map[string]time.Duration{}
			for range 240 {
				record, err := r.Get(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				for _, w := range record.Tasks {
					if _, known := over[w.Task]; w.State.Done() && !known {
						over[w.Task] = elapsed
					}
				}
				pass(clock, time.Minute, time.Minute)
				elapsed += time.Minute
			}
			want := map[string]time.Duration{"wait.hour": time.Hour, "wait.two": 2*time.Hour - by, "wait.limited": 30 * time.Minute}
			if by > 0 {
				want["wait.two"] = 20 * time.Minute
			}
			if diff := cmp.Diff(want, over); diff != "" {
				t.Errorf("by %s (-want +got):\n%s", by, diff)
			}
			r.stop()
		})
	}
}

// A run that continues another one does not wait again for what has come.
func TestRetryTakesOverWaits(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  wait "approval" { approval = "Go on?" }
  wait "signal"   { signal = true }
  task "a" {
    plugin = "./m.wasm"
    input  = wait.approval.payload.by
    after  = [wait.signal]
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		host := guests{"a": func(context.Context, run.Call) (run.Result, error) { return fails(run.OutcomeFailed, false), nil }}
		r := boot(t, Config{Invoker: host}, set)
		id := r.submit("f", `null`)
		synctest.Wait()
		r.approve(id, "approval", run.Approval{Approved: true, By: "anna"})
		r.signal(id, "signal", "")
		r.wait(id)
		record := r.wait(r.retried(id, false))
		if !taskOf(t, record, "wait.approval").Reused || string(taskOf(t, record, "a").Input) != `"anna"` {
			t.Errorf("the run that continues is %+v", record)
		}
		whole := r.retried(id, true)
		synctest.Wait()
		if state := r.exec.shard.Runs[whole].Task(run.TaskRef{Task: "wait.approval"}); !state.Waits() {
			t.Errorf("the wait of the run as a whole is %+v", state)
		}
		r.Cancel(t.Context(), whole, "")
		r.wait(whole)
		r.stop()
	})
}

// What was said to a wait that failed is still known when a task is run again.
func TestRefusedWaitsAreTakenOver(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  wait "approval" { approval = "Go on?" }
  task "a" {
    plugin = "./m.wasm"
    run_on = "failure"
    input  = wait.approval.payload.by
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		id := r.submit("f", `null`)
		synctest.Wait()
		r.approve(id, "approval", run.Approval{By: "anna"})
		r.wait(id)
		receipt, err := r.Retry(t.Context(), id, run.RerunOptions{Task: run.TaskRef{Task: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		record := r.wait(receipt.Run)
		if wait := taskOf(t, record, "wait.approval"); !wait.Reused || wait.State != run.Failed || string(taskOf(t, record, "a").Input) != `"anna"` {
			t.Errorf("%+v, and the task is given %s", wait, taskOf(t, record, "a").Input)
		}
		r.stop()
	})
}

// A follower receives each wait for a message once, and no other.
func TestMessageWaitsAreTold(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  wait "m" { subject = "a.b" }
  wait "s" { signal = true }
}`)
	names := func(all []run.OpenWait) (names []string) {
		for _, w := range all {
			names = append(names, string(w.Run)+" "+w.Wait+" "+w.Subject)
		}
		return names
	}
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal}, set)
		id := r.submit("f", `null`)
		synctest.Wait()
		<-r.MessageWaitsChanged()
		begun, ended := r.MessageWaits()
		if diff := cmp.Diff([]string{string(id) + " m a.b"}, names(begun)); diff != "" || len(ended) > 0 || begun[0].Since.IsZero() {
			t.Errorf("%s, %v", diff, ended)
		}
		short := r.submit("f", `null`)
		synctest.Wait()
		r.Cancel(t.Context(), short, "")
		if begun, ended := r.MessageWaits(); len(begun)+len(ended) > 0 {
			t.Errorf("a wait that came and went is told of: %v, %v", begun, ended)
		}
		r.crash()
		r = boot(t, Config{Journal: journal}, set)
		synctest.Wait()
		<-r.MessageWaitsChanged()
		if begun, _ := r.MessageWaits(); len(begun) != 1 || begun[0].Run != id {
			t.Errorf("after a restart: %v", begun)
		}
		r.signal(id, "m", "1")
		<-r.MessageWaitsChanged()
		if _, ended := r.MessageWaits(); len(ended) != 1 || ended[0].Run != id {
			t.Errorf("after the end: %v", ended)
		}
		r.signal(id, "s", "")
		r.wait(id)
		r.stop()
	})
}

// A run that cannot be continued does not leave its waits open.
func TestAbandonedRunEndsItsWaits(t *testing.T) {
	t.Parallel()
	set := load(t, `flow "f" { 
  wait "s" { signal = true }
}`)
	synctest.Test(t, func(t *testing.T) {
		journal := memory.NewJournal()
		r := boot(t, Config{Journal: journal}, set)
		id := r.submit("f", `null`)
		synctest.Wait()
		r.crash()
		ctx, kill := context.WithCancel(t.Context())
		e := New(Config{Journal: journal, Invoker: guests{}, Restore: func(context.Context, *run.Definition) (*flows.Set, error) {
			return nil, errors.New("it is gone")
		}})
		over := make(chan error, 1)
		go func() { over <- e.Run(ctx) }()
		synctest.Wait()
		e.Drain()
		if err := <-over; err != nil {
			t.Fatal(err)
		}
		kill()
		record := fold(t, journal).Runs[id].Record(nil)
		wantStates(t, record, map[string]run.State{"": run.Failed, "wait.s": run.Canceled})
	})
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

const stopHCL = `
flow "f" {
  timeout = "1m"
  task "a" {
    plugin = "./m.wasm"
    retry {
      attempts = 2
      delay    = "30s"
      jitter   = 0
    }
  }
  task "b" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
  on_failure {
    task "alert" {
      plugin = "./m.wasm"
      input  = error.outcome
    }
  }
}`

func TestCancelEndsARunWhereverItStands(t *testing.T) {
	t.Parallel()
	set := load(t, stopHCL)
	failing := func(context.Context, run.Call) (run.Result, error) { return fails(run.OutcomeFailed, true), nil }
	for name, a := range map[string]func(context.Context, run.Call) (run.Result, error){
		"during an attempt":       takes(50 * time.Second),
		"while a retry is due":    failing,
		"before a worker is free": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Workers: 1, Invoker: guests{"a": a}}, set)
				if a == nil {
					r.Invoker().(guests)["a"] = takes(10 * time.Second)
					r.submit("f", `null`) // holds the only worker
				}
				id := r.submit("f", `null`)
				time.Sleep(5 * time.Second)
				if err := r.Cancel(t.Context(), id, "no longer needed"); err != nil {
					t.Fatal(err)
				}
				record := r.wait(id)
				wantStates(t, record, map[string]run.State{"": run.Canceled, "a": run.Canceled, "b": run.Canceled})
				if record.Error == nil || record.Error.Message != "no longer needed" || record.Error.At != "" {
					t.Errorf("error %+v", record.Error)
				}
				if took := record.FinishedAt.Sub(record.CreatedAt); took != 5*time.Second {
					t.Errorf("the run ended %s after its start, it was canceled after 5s", took)
				}
				if n := r.Timers(); n != 0 && a != nil {
					t.Errorf("%d timers are left armed", n)
				}
				r.stop()
			})
		})
	}
}

// Invoker and Timers let tests look inside.
func (r *rig) Invoker() Invoker { return r.exec.config.Invoker }
func (r *rig) Timers() int      { return r.exec.clock.timers.Len() }

func TestCancelOfAnUnknownRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{})
		if err := r.Cancel(t.Context(), run.NewID(time.Now()), ""); !errors.Is(err, run.ErrUnknown) {
			t.Errorf("error %v", err)
		}
		if _, err := r.Get(t.Context(), "x"); !errors.Is(err, run.ErrUnknown) {
			t.Errorf("error %v", err)
		}
		if _, err := r.Wait(t.Context(), "x"); !errors.Is(err, run.ErrUnknown) {
			t.Errorf("error %v", err)
		}
		r.stop()
	})
}

func TestCancelOfAFinishedRun(t *testing.T) {
	t.Parallel()
	set := load(t, stopHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		id := r.run("f", `null`).Run
		if err := r.Cancel(t.Context(), id, "too late"); !errors.Is(err, ErrFinished) {
			t.Errorf("error %v", err)
		}
		if record, err := r.Get(t.Context(), id); err != nil || record.State != run.Succeeded {
			t.Errorf("the run is %+v, %v", record, err)
		}
		r.stop()
	})
}

func TestRunTimesOut(t *testing.T) {
	t.Parallel()
	set := load(t, stopHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Hour)}}, set)
		record := r.run("f", `null`)
		wantStates(t, record, map[string]run.State{"": run.Failed, "a": run.Failed, "b": run.Canceled, "alert": run.Succeeded})
		if took := record.FinishedAt.Sub(*record.StartedAt); took != time.Minute {
			t.Errorf("the run took %s", took)
		}
		if got := string(taskOf(t, record, "alert").Input); got != `"timed_out"` {
			t.Errorf("the hook sees the outcome %s", got)
		}
		r.stop()
	})
}

func TestDrainLetsAttemptsEndAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	set := load(t, stopHCL)
	synctest.Test(t, func(t *testing.T) {
		told := &notices{}
		config := Config{Invoker: guests{"a": takes(10 * time.Second)}, Observers: []Observation{{Observer: told}}, Journal: memory.NewJournal()}
		r := boot(t, config, set)
		id := r.submit("f", `null`)
		time.Sleep(time.Second)
		start := time.Now()
		r.Drain()
		synctest.Wait()
		if _, err := r.Submit(t.Context(), run.Request{Flow: "f"}); !errors.Is(err, ErrDraining) {
			t.Errorf("a draining engine answers %v", err)
		}
		r.stop()
		if took := time.Since(start); took != 9*time.Second {
			t.Errorf("the soft stop took %s, the attempt had 9s to go", took)
		}
		if _, err := r.Submit(t.Context(), run.Request{Flow: "f"}); !errors.Is(err, ErrStopped) {
			t.Errorf("a stopped engine answers %v", err)
		}
		last := told.all()[len(told.all())-1]
		if end, ok := last.Event.Data.(*run.AttemptFinished); !ok || end.Outcome != run.OutcomeSucceeded {
			t.Errorf("the last thing observers were told is %+v", last.Event.Data)
		}
		r = boot(t, config, set)
		wantStates(t, r.wait(id), map[string]run.State{"": run.Succeeded, "a": run.Succeeded, "b": run.Succeeded})
		r.stop()
	})
}

func TestConcurrencyLimitQueuesPerKey(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  concurrency {
    key   = trigger.payload.customer
    limit = 2
  }
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 100, Invoker: guests{"a": takes(10 * time.Second)}}, set)
		var ids []run.ID
		for range 5 {
			ids = append(ids, r.submit("f", `{"customer":"ann"}`))
		}
		bob := r.submit("f", `{"customer":"bob"}`)
		start := time.Now()
		time.Sleep(time.Second)
		if err := r.Cancel(t.Context(), ids[2], "changed my mind"); err != nil { // waits for a slot
			t.Fatal(err)
		}
		if err := r.Cancel(t.Context(), ids[0], "changed my mind"); err != nil { // holds one
			t.Fatal(err)
		}
		for i, want := range []time.Duration{time.Second, 10 * time.Second, time.Second, 11 * time.Second, 20 * time.Second} {
			if got := r.wait(ids[i]).FinishedAt.Sub(start); got != want {
				t.Errorf("run %d of ann ended after %s, want %s", i, got, want)
			}
		}
		if got := r.wait(bob).FinishedAt.Sub(start); got != 10*time.Second {
			t.Errorf("bob waited for ann: %s", got)
		}
		synctest.Wait()
		r.stop()
		if len(r.exec.runLimits.byKey) != 0 {
			t.Errorf("%d gates are left", len(r.exec.runLimits.byKey))
		}
	})
}

func TestOpenRunsAreBounded(t *testing.T) {
	t.Parallel()
	set := load(t, `flow "f" {
  task "a" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{OpenRuns: 2, Invoker: guests{"a": takes(time.Second)}}, set)
		first := r.submit("f", `null`)
		r.submit("f", `null`)
		request := run.Request{Flow: "f", Position: run.Position{Source: "s", Seq: 1}}
		_, err := r.Submit(t.Context(), request)
		if busy := (*BusyError)(nil); !errors.As(err, &busy) || busy.Limit != 2 {
			t.Errorf("the third run is answered with %v", err)
		}
		r.wait(first)
		synctest.Wait()
		if receipt, err := r.Submit(t.Context(), request); err != nil || !receipt.Accepted {
			t.Errorf("a request that was not decided is answered with %+v, %v", receipt, err)
		}
		r.stop()
	})
}

func TestRequestsThatMakeNoRun(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  param "n" {
    type = number
  }
  trigger "message" "m" {
    subject = "x"
    filter  = trigger.payload.n > 0
  }
  task "a" { plugin = "./m.wasm" }
}`)
	message := func(flow, payload string, seq uint64) run.Request {
		return run.Request{
			Flow:     flow,
			Trigger:  run.Trigger{Kind: run.TriggerMessage, Name: "m", Payload: json.RawMessage(payload)},
			Position: run.Position{Source: "s", Seq: seq},
		}
	}
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		for i, c := range []struct{ flow, payload, code string }{
			{"g", `{}`, run.RequestUnknownFlow},
			{"f", `{"n":`, run.RequestPayload},
			{"f", `{"n":"x"}`, ""},
			{"f", `{"n":-1}`, ""},
		} {
			seq := uint64(i + 1)
			receipt, err := r.Submit(t.Context(), message(c.flow, c.payload, seq))
			refused := (*run.RequestError)(nil)
			if receipt.Accepted || c.code != "" && (!errors.As(err, &refused) || refused.Code != c.code) {
				t.Errorf("%s is answered with %+v, %v", c.payload, receipt, err)
			}
			decided := seq
			if err != nil { // it is the asker's to decide, once the message is kept elsewhere
				decided--
			}
			if mark, err := r.Watermark(t.Context(), "s"); err != nil || mark.Seq != decided {
				t.Errorf("after %s the watermark is %+v, %v", c.payload, mark, err)
			}
			for range 2 {
				if err := r.Decide(t.Context(), run.Position{Source: "s", Seq: seq}); err != nil {
					t.Error(err)
				}
			}
			if mark, err := r.Watermark(t.Context(), "s"); err != nil || mark.Seq != seq {
				t.Errorf("after the decision on %s the watermark is %+v, %v", c.payload, mark, err)
			}
		}
		if receipt, err := r.Submit(t.Context(), message("f", `{"n":1}`, 9)); err != nil || !receipt.Accepted {
			t.Errorf("a good message is answered with %+v, %v", receipt, err)
		}
		if receipt, err := r.Submit(t.Context(), message("f", `{"n":1}`, 9)); err != nil || receipt.Accepted {
			t.Errorf("the same position again is answered with %+v, %v", receipt, err)
		}
		r.stop()
	})
}

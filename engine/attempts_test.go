package engine

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
)

const retryHCL = `
flow "f" {
  task "a" {
    plugin  = "./m.wasm"
    input   = trigger.payload
    timeout = "10s"
    retry {
      attempts = 3
      delay    = "2s"
      jitter   = 0
    }
  }
  task "b" {
    plugin = "./m.wasm"
    input  = task.a.attempts
  }
}`

// tries answers each attempt with the next result and keeps the calls.
type tries struct {
	results []run.Result
	calls   []run.Call
	at      []time.Time
}

func (s *tries) invoke(_ context.Context, call run.Call) (run.Result, error) {
	s.calls, s.at = append(s.calls, call), append(s.at, time.Now())
	return s.results[min(len(s.calls), len(s.results))-1], nil
}

func TestRetriesUntilSuccess(t *testing.T) {
	t.Parallel()
	set := load(t, retryHCL)
	synctest.Test(t, func(t *testing.T) {
		s := &tries{results: []run.Result{fails(run.OutcomeFailed, true), fails(run.OutcomeTrapped, true), gives(json.RawMessage(`{ "x": 1 }`))}}
		r := boot(t, Config{Invoker: guests{"a": s.invoke}}, set)
		start := time.Now()
		record := r.run("f", `{"k": "<v>"}`)
		if record.State != run.Succeeded {
			t.Fatalf("run is %s: %v", record.State, record.Error)
		}
		for i, want := range []time.Duration{0, 2 * time.Second, 6 * time.Second} {
			if got := s.at[i].Sub(start); got != want {
				t.Errorf("attempt %d started after %s, want %s", i+1, got, want)
			}
			if c := s.calls[i]; c.Attempt != i+1 || string(c.Input) != `{"k":"<v>"}` {
				t.Errorf("call %d: attempt %d with input %s", i, c.Attempt, c.Input)
			}
			if s.calls[i].IdempotencyKey() != s.calls[0].IdempotencyKey() {
				t.Error("the idempotency key changes between attempts")
			}
		}
		if got := string(taskOf(t, record, "a").Output); got != `{ "x": 1 }` {
			t.Errorf("output %s", got)
		}
		if got := string(taskOf(t, record, "b").Input); got != `3` {
			t.Errorf("task.a.attempts is %s", got)
		}
		r.stop()
	})
}

func TestRetriesEnd(t *testing.T) {
	t.Parallel()
	set := load(t, retryHCL)
	for name, c := range map[string]struct {
		result run.Result
		want   int
	}{
		"when the attempts are spent":       {fails(run.OutcomeFailed, true), 3},
		"when the failure is permanent":     {fails(run.OutcomeFailed, false), 1},
		"when the call is rejected":         {fails(run.OutcomeRejected, false), 1},
		"when something was denied":         {fails(run.OutcomeDenied, true), 1},
		"when the outcome is a time-out":    {fails(run.OutcomeTimedOut, true), 3},
		"late, when all attempts are lost":  {fails(run.OutcomeLost, true), run.MaxLost},
		"when a plain success has followed": {gives(json.RawMessage(`1`)), 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := &tries{results: []run.Result{c.result}}
				r := boot(t, Config{Invoker: guests{"a": s.invoke}}, set)
				record := r.run("f", `null`)
				if len(s.calls) != c.want {
					t.Errorf("%d attempts, want %d", len(s.calls), c.want)
				}
				task := taskOf(t, record, "a")
				if *task.Outcome != c.result.Outcome {
					t.Errorf("outcome %s, want %s", *task.Outcome, c.result.Outcome)
				}
				if task.Error != nil && task.Error.At != "test.hcl:3" {
					t.Errorf("the failure is located at %q", task.Error.At)
				}
				r.stop()
			})
		})
	}
}

func TestGuestAsksForALaterRetry(t *testing.T) {
	t.Parallel()
	set := load(t, retryHCL)
	synctest.Test(t, func(t *testing.T) {
		later := fails(run.OutcomeFailed, true)
		later.Failure.RetryAfter = time.Minute
		s := &tries{results: []run.Result{later, gives(json.RawMessage(`1`))}}
		r := boot(t, Config{Invoker: guests{"a": s.invoke}}, set)
		r.run("f", `null`)
		if got := s.at[1].Sub(s.at[0]); got != time.Minute {
			t.Errorf("the second attempt came after %s", got)
		}
		r.stop()
	})
}

func TestAttemptTimesOut(t *testing.T) {
	t.Parallel()
	set := load(t, retryHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Hour)}}, set)
		record := r.run("f", `null`)
		task := taskOf(t, record, "a")
		if *task.Outcome != run.OutcomeTimedOut || task.Attempts != 3 {
			t.Errorf("%d attempts, the last one %s", task.Attempts, *task.Outcome)
		}
		if got, want := record.FinishedAt.Sub(*record.StartedAt), (3*10+2+4)*time.Second; got != want {
			t.Errorf("the run took %s, want %s", got, want)
		}
		r.stop()
	})
}

func TestPanicInTheHostLosesTheAttemptOnly(t *testing.T) {
	t.Parallel()
	set := load(t, retryHCL)
	synctest.Test(t, func(t *testing.T) {
		panics := 2
		r := boot(t, Config{Workers: 1, Invoker: guests{"a": func(_ context.Context, c run.Call) (run.Result, error) {
			if panics--; panics >= 0 {
				panic("a mistake of the host")
			}
			return gives(c.Input), nil
		}}}, set)
		record := r.run("f", `7`)
		if task := taskOf(t, record, "a"); record.State != run.Succeeded || task.Attempts != 3 {
			t.Errorf("run is %s after %d attempts: %v", record.State, task.Attempts, record.Error)
		}
		r.stop()
	})
}

func TestValuesTooLargeForTheJournal(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  param "twice" {
    type    = bool
    default = false
  }
  task "a" {
    plugin = "./m.wasm"
  }
  task "b" {
    plugin = "./m.wasm"
    when   = param.twice
    input  = [task.a.output, task.a.output]
  }
}`)
	large := func(n int) func(context.Context, run.Call) (run.Result, error) {
		text, _ := json.Marshal(strings.Repeat("x", n))
		return func(context.Context, run.Call) (run.Result, error) { return gives(text), nil }
	}
	synctest.Test(t, func(t *testing.T) {
		output := guests{"a": large(maxPayload)}
		r := boot(t, Config{Invoker: output}, set)
		record := r.run("f", `null`)
		if task := taskOf(t, record, "a"); task.Error == nil || task.Error.Code != run.CodeOutputSize {
			t.Errorf("an output over the limit ends with %+v", task.Error)
		}
		output["a"] = large(maxPayload * 2 / 3)
		record = r.run("f", `{"twice":true}`)
		if task := taskOf(t, record, "b"); task.Error == nil || task.Error.Code != run.CodeInputSize {
			t.Errorf("an input over the limit ends with %+v", task.Error)
		}
		_, err := r.Submit(t.Context(), run.Request{Flow: "f", Trigger: run.Trigger{
			Kind: run.TriggerManual, Payload: json.RawMessage(`"` + strings.Repeat("x", maxPayload) + `"`),
		}})
		if refused, ok := err.(*run.RequestError); !ok || refused.Code != run.RequestSize {
			t.Errorf("a payload over the limit is answered with %v", err)
		}
		r.stop()
	})
}

func TestCallsCarryTheGrantsOfTheirTask(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "a" {
    plugin = "./m.wasm"
    grant {
      files = { "./out" = "rw" }
    }
  }
  task "b" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		s := &tries{results: []run.Result{gives(nil)}}
		r := boot(t, Config{Invoker: guests{"a": s.invoke, "b": s.invoke}}, set)
		r.run("f", "null")
		want := []run.FileGrant{{Folder: set.Flow("f").Definition.Folder, Path: "out", Guest: "/out", Write: true}}
		if len(s.calls) != 2 || !slices.Equal(s.calls[0].Grants.Files, want) || s.calls[1].Grants.Files != nil {
			t.Errorf("calls: %+v", s.calls)
		}
		r.stop()
	})
}

package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// whenHCL has a task that may be attempted five times on a condition.
func whenHCL(condition string) string {
	return `
flow "f" {
  task "first" {
    plugin = "./m.wasm"
    input  = trigger.payload
  }
  task "a" {
    plugin = "./m.wasm"
    input  = task.first.output
    retry {
      attempts = 5
      delay    = "1s"
      backoff  = "constant"
      jitter   = 0
      when     = ` + condition + `
    }
  }
}`
}

// ends gives a failure of the guest.
func ends(code string, retryable bool) run.Result {
	r := fails(run.OutcomeFailed, retryable)
	r.Failure.Code = code
	return r
}

func TestConditionDecidesAboutTheNextAttempt(t *testing.T) {
	t.Parallel()
	lost := run.Result{Outcome: run.OutcomeLost}
	for name, c := range map[string]struct {
		condition string
		results   []run.Result
		attempts  int
		outcome   run.Outcome
	}{
		"a code that may be retried, whatever it says of itself": {
			`error.code == "busy"`, []run.Result{ends("busy", false), ends("busy", false), gives(json.RawMessage(`1`))}, 3, run.OutcomeSucceeded,
		},
		"a code that may not, whatever it says of itself": {
			`error.code == "busy"`, []run.Result{ends("busy", false), ends("broken", true)}, 2, run.OutcomeFailed,
		},
		"the number of the attempt":         {`error.attempt < 3`, []run.Result{ends("x", true)}, 3, run.OutcomeFailed},
		"the policy's end":                  {`true`, []run.Result{ends("x", false)}, 5, run.OutcomeFailed},
		"the outcome":                       {`error.outcome == "trapped"`, []run.Result{fails(run.OutcomeTrapped, false), fails(run.OutcomeTimedOut, true)}, 2, run.OutcomeTimedOut},
		"values of the run":                 {`task.first.output.again`, []run.Result{ends("x", true)}, 5, run.OutcomeFailed},
		"what was denied is not asked for":  {`true`, []run.Result{fails(run.OutcomeDenied, true)}, 1, run.OutcomeDenied},
		"lost attempts do not ask":          {`false`, []run.Result{lost, lost, gives(json.RawMessage(`1`))}, 3, run.OutcomeSucceeded},
		"lost attempts count as attempts":   {`error.attempt < 4`, []run.Result{lost, lost, ends("x", true), ends("x", true)}, 4, run.OutcomeFailed},
		"lost attempts do not use up any":   {`true`, []run.Result{lost, lost, ends("x", false)}, 7, run.OutcomeFailed},
		"a broken one is not asked of them": {`error.details.no.such > 1`, []run.Result{lost, lost, gives(json.RawMessage(`1`))}, 3, run.OutcomeSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, whenHCL(c.condition))
			synctest.Test(t, func(t *testing.T) {
				s := &tries{results: c.results}
				r := boot(t, Config{Invoker: guests{"a": func(ctx context.Context, call run.Call) (run.Result, error) {
					result, _ := s.invoke(ctx, call)
					if result.Outcome == run.OutcomeLost {
						return run.Result{}, errors.New("the machine is gone")
					}
					if result.Failure != nil {
						own := *result.Failure // the engine locates it
						result.Failure = &own
					}
					return result, nil
				}}}, set)
				record := r.run("f", `{"again":true}`)
				task := taskOf(t, record, "a")
				if len(s.calls) != c.attempts || task.Attempts != c.attempts || *task.Outcome != c.outcome {
					t.Errorf("%d attempts, the last one %s (%+v), want %d and %s", len(s.calls), *task.Outcome, task.Error, c.attempts, c.outcome)
				}
				for i := 1; i < len(s.at); i++ {
					want := time.Second
					if c.results[min(i, len(c.results))-1].Outcome == run.OutcomeLost {
						want = 0
					}
					if got := s.at[i].Sub(s.at[i-1]); got != want {
						t.Errorf("attempt %d came %s after the one before, want %s", i+1, got, want)
					}
				}
				r.stop()
			})
		})
	}
}

// A condition that cannot be evaluated must not be taken for yes or no.
func TestBrokenConditionFailsTheTask(t *testing.T) {
	t.Parallel()
	set := load(t, whenHCL(`error.details.wait > 1`))
	synctest.Test(t, func(t *testing.T) {
		s := &tries{results: []run.Result{ends("busy", true)}}
		r := boot(t, Config{Invoker: guests{"a": s.invoke}}, set)
		record := r.run("f", `null`)
		task := taskOf(t, record, "a")
		if len(s.calls) != 1 || task.State != run.Failed || *task.Outcome != run.OutcomeRejected || record.State != run.Failed {
			t.Errorf("after %d attempts the task is %s, %s", len(s.calls), task.State, *task.Outcome)
		}
		e := task.Error
		if e.Code != run.CodeExpression || !strings.HasPrefix(e.At, "test.hcl:") || !strings.Contains(e.Message, "busy") {
			t.Errorf("the error is %+v: it tells neither the place nor what the attempt ended with", e)
		}
		r.stop()
	})
}

// The condition is asked when the attempt ends. What it said is recorded: a
// restart does not ask again.
func TestConditionIsNotAskedAgainAfterARestart(t *testing.T) {
	t.Parallel()
	set := load(t, whenHCL(`error.code == "busy"`))
	synctest.Test(t, func(t *testing.T) {
		s := &tries{results: []run.Result{ends("busy", false), ends("broken", true)}}
		config := Config{Journal: memory.NewJournal(), Invoker: guests{"a": s.invoke}}
		r := boot(t, config, set)
		id := r.submit("f", `null`)
		time.Sleep(500 * time.Millisecond)
		r.crash()
		r = boot(t, config, set)
		record := r.wait(id)
		if task := taskOf(t, record, "a"); len(s.calls) != 2 || task.Attempts != 2 || task.Error.Code != "broken" {
			t.Errorf("%d attempts, the last one %+v", len(s.calls), task.Error)
		}
		if got := s.at[1].Sub(s.at[0]); got != time.Second {
			t.Errorf("the second attempt came after %s", got)
		}
		r.stop()
	})
}

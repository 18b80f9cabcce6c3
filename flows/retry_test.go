package flows

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// TestAgain asks policies with three attempts about failures.
func TestAgain(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		variable "codes" {
		  default = ["busy", "slow"]
		}
		defaults {
		  retry {
		    attempts = 3
		    when     = contains(var.codes, error.code) && trigger.kind == "message"
		  }
		}
		flow "f" {
		  param "patient" {
		    default = true
		  }
		  locals {
		    again = task.first.output.again
		  }
		  task "first" {
		    plugin = "./greet.wasm"
		  }
		  task "inherits" {
		    plugin = "./greet.wasm"
		  }
		  task "default" {
		    plugin = "./greet.wasm"
		    retry {
		      when = error.retryable
		    }
		  }
		  task "all" {
		    plugin = "./greet.wasm"
		    retry {
		      when = error.outcome == "failed" && error.details.n > 1 && error.attempt < 3 && strcontains(error.message, "later") && param.patient && run.id != ""
		    }
		  }
		  task "upstream" {
		    plugin = "./greet.wasm"
		    retry {
		      when = local.again
		    }
		  }
		  task "never" {
		    plugin = "./greet.wasm"
		    retry {
		      when = false
		    }
		  }
		  task "once" {
		    plugin  = "./greet.wasm"
		    retries = 0
		  }
		  on_failure {
		    task "hook" {
		      plugin = "./greet.wasm"
		      input  = error.code
		      retry {
		        when = error.code == "own"
		      }
		    }
		  }
		}`)
	s := f.Scope(aRun(f, "", map[string]json.RawMessage{"patient": json.RawMessage("true")}))
	s.Settle(done("first", `{"again":true}`))
	s.Failed(&run.Failure{Task: "first", Code: "of_the_run"})
	failed := func(code string, retryable bool) *run.Failure {
		return &run.Failure{Outcome: run.OutcomeFailed, Code: code, Message: "try later", Retryable: retryable, Details: json.RawMessage(`{"n":2}`)}
	}
	ended := func(o run.Outcome) *run.Failure { return &run.Failure{Outcome: o, Code: "busy", Retryable: true} }
	for _, c := range []struct {
		task        string
		failure     *run.Failure
		spent, lost int
		want        bool
	}{
		{"inherits", failed("busy", false), 1, 0, true},
		{"inherits", failed("slow", false), 2, 0, true},
		{"inherits", failed("slow", false), 3, 0, false},
		{"inherits", failed("slow", false), 3, 1, true},
		{"inherits", failed("other", true), 1, 0, false},
		{"inherits", ended(run.OutcomeRejected), 1, 0, true},
		{"inherits", ended(run.OutcomeTimedOut), 1, 0, true},
		{"inherits", ended(run.OutcomeDenied), 1, 0, false},
		{"inherits", ended(run.OutcomeCanceled), 1, 0, false},
		{"inherits", ended(run.OutcomeLost), 1, 1, true},
		{"default", failed("x", true), 1, 0, true},
		{"default", failed("x", false), 1, 0, false},
		{"all", failed("x", false), 2, 0, true},
		{"all", failed("x", false), 3, 1, false},
		{"all", ended(run.OutcomeTrapped), 1, 0, false},
		{"upstream", failed("x", false), 1, 0, true},
		{"never", failed("x", true), 1, 0, false},
		{"never", ended(run.OutcomeLost), 9, 4, true},
		{"never", ended(run.OutcomeLost), 9, run.MaxLost, false},
		{"once", failed("busy", true), 1, 0, false},
		{"hook", failed("own", false), 1, 0, true},
		{"hook", failed("of_the_run", true), 1, 0, false},
	} {
		if got, failure := f.task(t, c.task).Again(s, c.failure, c.spent, c.lost); got != c.want || failure != nil {
			t.Errorf("%s after %+v, %d made and %d lost: %v %v", c.task, c.failure, c.spent, c.lost, got, failure)
		}
	}
	if got := input(t, f.task(t, "hook"), s); got != `"of_the_run"` {
		t.Errorf("the error of the run is %s in a hook", got)
	}
	if edges := f.Edges(); len(edges) != 1 || edges[0].From != "first" || edges[0].To != "upstream" {
		t.Errorf("edges %+v", edges)
	}
}

func TestAgainThatFails(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `defaults {
  retries = 9
}
flow "f" {
  task "attribute" {
    plugin = "./greet.wasm"
    retry {
      attempts = 2
      when     = error.details.n > 1
    }
  }
  task "type" {
    plugin = "./greet.wasm"
    retry {
      when = error.message
    }
  }
  task "json" {
    plugin = "./greet.wasm"
    retry {
      when = error.details == null
    }
  }
}`)
	s := f.Scope(aRun(f, "", nil))
	failure := &run.Failure{Outcome: run.OutcomeFailed, Code: "busy", Message: "no time", Retryable: true, Details: json.RawMessage(`{"m":1`)}
	for task, want := range map[string]struct{ at, message string }{
		"type": {"flow.hcl:15", "retry.when must be true or false (attempt 1 ended with busy: no time)"},
		"json": {"flow.hcl:21", "error.details is not valid JSON"},
	} {
		again, got := f.task(t, task).Again(s, failure, 1, 0)
		if again || got == nil || got.Outcome != run.OutcomeRejected || got.Code != run.CodeExpression || got.At != want.at || !strings.Contains(got.Message, want.message) {
			t.Errorf("%s: %v %+v", task, again, got)
		}
	}
	failure.Details = json.RawMessage(`{"m":1}`)
	task := f.task(t, "attribute")
	if again, got := task.Again(s, failure, 1, 0); again || got == nil || got.At != "flow.hcl:9" || !strings.Contains(got.Message, `named "n"`) {
		t.Errorf("%v %+v", again, got)
	}
	if again, got := task.Again(s, failure, 2, 0); again || got != nil {
		t.Errorf("it is asked when no attempt is left: %v %+v", again, got)
	}
}

func TestPriority(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		variable "low" {
		  default = -100
		}
		flow "f" {
		  priority = 7
		  task "flow" {
		    plugin = "./greet.wasm"
		  }
		  task "own" {
		    plugin   = "./greet.wasm"
		    priority = var.low
		  }
		  task "zero" {
		    plugin   = "./greet.wasm"
		    priority = 0
		  }
		  on_failure {
		    task "hook" {
		      plugin = "./greet.wasm"
		    }
		  }
		}`)
	for task, want := range map[string]int{"flow": 7, "own": -100, "zero": 0, "hook": 7} {
		if got := f.task(t, task).Priority; got != want {
			t.Errorf("%s: %d", task, got)
		}
	}
	if got := oneFlow(t, smallFlow("g")).Tasks[0].Priority; got != 0 {
		t.Errorf("the default is %d", got)
	}
}

package flows

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

func TestRunValues(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		variable "region" {
		  default = "eu"
		}
		locals {
		  host = "${var.region}.example.com"
		}
		flow "a" {
		  labels = { team = "x" }
		  param "n" {
		    type = number
		  }
		  param "tags" {
		    type    = set(string)
		    default = ["b", "a"]
		  }
		  locals {
		    doubled = param.n * 2
		    all     = { d = local.doubled, f = task.first.output.x, h = local.host }
		    plain   = upper(local.host)
		  }
		  task "first" {
		    plugin = "./greet.wasm"
		    input  = { n = param.n, tags = param.tags, host = local.host, flow = flow.name, plain = local.plain }
		  }
		  task "second" {
		    plugin = "./greet.wasm"
		    input  = local.all
		  }
		  task "third" {
		    plugin = "./greet.wasm"
		    input  = { trigger = trigger.kind, name = trigger.name, s = trigger.subject, t = trigger.time, h = trigger.headers.X, p = trigger.payload.items[*].price }
		  }
		  task "fourth" {
		    plugin = "./greet.wasm"
		    input  = { id = run.id, flow = run.flow, at = run.scheduled_at, started = run.started_at, labels = run.labels }
		  }
		  task "fifth" {
		    plugin = "./greet.wasm"
		    input  = { s = task.second.state, e = task.second.error, a = task.second.attempts, d = task.second.duration, o = task.second.output }
		    run_on = "always"
		  }
		}`)
	s := f.Scope(aRun(f, `{"items":[{"price":1.10},{"price":"2"}]}`, map[string]json.RawMessage{"n": json.RawMessage("21"), "tags": json.RawMessage(`["b","a"]`)}))
	check := func(task, want string) {
		t.Helper()
		if got := input(t, f.task(t, task), s); got != want {
			t.Errorf("%s: got %s, want %s", task, got, want)
		}
	}
	check("first", `{"flow":"a","host":"eu.example.com","n":21,"plain":"EU.EXAMPLE.COM","tags":["a","b"]}`)
	s.Settle(done("first", `{"x":[1,{"y":null}]}`))
	check("second", `{"d":42,"f":[1,{"y":null}],"h":"eu.example.com"}`)
	check("third", `{"h":["1","2"],"name":"m","p":[1.1,"2"],"s":"a.b","t":"2026-03-08T02:30:00.0000005Z","trigger":"message"}`)
	check("fourth", `{"at":"2026-03-08T02:30:00.0000005Z","flow":"a","id":"01JABCDEFGHJKMNPQRSTVWXYZ0","labels":{"team":"x"},"started":"2026-03-08T02:30:01.0000005Z"}`)

	failed := done("second", ``)
	failed.State = run.Failed
	failed.Failure = &run.Failure{Outcome: run.OutcomeFailed, Code: "busy", Message: "try later", Retryable: true, Details: json.RawMessage(`{"n":1}`)}
	s.Settle(failed)
	check("fifth", `{"a":2,"d":1.5,"e":{"code":"busy","details":{"n":1},"message":"try later","outcome":"failed","retryable":true},"o":null,"s":"failed"}`)
}

func TestWholeReferencesPassBytesOn(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "a" {
		  task "t" {
		    plugin = "./greet.wasm"
		    input  = "${trigger.payload}"
		  }
		  task "u" {
		    plugin = "./greet.wasm"
		    input  = (task.t.output)
		  }
		  task "v" {
		    plugin = "./greet.wasm"
		    input  = task["u"].output
		    when   = task.t.state != ""
		  }
		}`)
	const odd = `{"z":1.50,"a":"e\u0301","z":1e2}`
	s := f.Scope(aRun(f, odd, nil))
	if got := input(t, f.task(t, "t"), s); got != odd {
		t.Error(got)
	}
	s.Settle(done("t", odd))
	if got := input(t, f.task(t, "u"), s); got != odd {
		t.Error(got)
	}
	s.Settle(skipped("u"))
	if got := input(t, f.task(t, "v"), s); got != "null" {
		t.Error(got)
	}
	if got := input(t, f.task(t, "t"), f.Scope(aRun(f, "", nil))); got != "null" {
		t.Error(got)
	}
	s.Settle(done("v", odd))
	if out, failure := f.Output(s); failure != nil || string(out) != `{"v":`+odd+`}` {
		t.Errorf("without output blocks the sinks count: %s %v", out, failure)
	}
}

func TestJoins(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "a" {
		  task "x" {
		    plugin = "./greet.wasm"
		  }
		  task "y" {
		    plugin = "./greet.wasm"
		  }
		  output "joined" {
		    value = coalesce(task.x.output, task.y.output)
		  }
		  output "field" {
		    value = coalesce(try(task.x.output.id, null), try(task.y.output.key, null), "none")
		  }
		}`)
	for _, c := range []struct{ x, y, want string }{
		{`{"id":1}`, ``, `{"joined":{"id":1},"field":1}`},
		{``, `{"key":"k","more":[1]}`, `{"joined":{"key":"k","more":[1]},"field":"k"}`},
		{`{"id":1}`, `{"key":"k"}`, `{"joined":{"id":1},"field":1}`},
		{`[1]`, `"text"`, `{"joined":[1],"field":"none"}`},
		{``, ``, `{"joined":null,"field":"none"}`},
	} {
		s := f.Scope(aRun(f, "", nil))
		s.Settle(done("x", c.x))
		s.Settle(done("y", c.y))
		if out, failure := f.Output(s); failure != nil || string(out) != c.want {
			t.Errorf("%s and %s: %s %v", c.x, c.y, out, failure)
		}
	}
}

func TestRunTimeFailures(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `variable "token" {
  default   = "hunter2"
  sensitive = true
}
flow "a" {
  locals {
    deep = task.t.output.a.b
  }
  task "t" {
    plugin = "./greet.wasm"
  }
  task "attribute" {
    plugin = "./greet.wasm"
    input = {
      x = task.t.output.total
    }
    when = task.t.output.ok
  }
  task "local" {
    plugin = "./greet.wasm"
    input  = local.deep
    when   = task.t.output.n
  }
  task "secret" {
    plugin = "./greet.wasm"
    input  = parseint(var.token, task.t.output.base)
    config = task.t.output.ok
  }
  locals {
    hidden = parseint(var.token, task.t.output.base)
  }
  task "through" {
    plugin = "./greet.wasm"
    input  = [local.hidden]
  }
  task "null" {
    plugin = "./greet.wasm"
    input  = [task.t.output.ok, task.t.output.n.x.y]
  }
  task "index" {
    plugin = "./greet.wasm"
    input  = task.t.output.list[2]
  }
  task "template" {
    plugin = "./greet.wasm"
    input  = "${task.t.output.ok}, ${task.t.output.n}"
  }
  task "call" {
    plugin = "./greet.wasm"
    input  = parseint(task.t.output.ok, 10)
  }
}`)
	s := f.Scope(aRun(f, "", nil))
	s.Settle(done("t", `{"ok":"perhaps","n":null,"a":{},"base":10,"list":[1]}`))
	for _, c := range []struct {
		task, part, at, message string
	}{
		{"attribute", "input", "flow.hcl:15", `input: task.t.output.total: Unsupported attribute: This object does not have an attribute named "total".`},
		{"null", "input", "flow.hcl:38", "input: task.t.output.n.x: Attempt to get attribute from null value"},
		{"index", "input", "flow.hcl:42", "input: task.t.output.list[2]: Invalid index"},
		{"template", "input", "flow.hcl:46", "input: task.t.output.n: Invalid template interpolation value"},
		{"call", "input", "flow.hcl:50", "input: task.t.output.ok: Invalid function argument"},
		{"attribute", "when", "flow.hcl:17", "when must be true or false"},
		{"local", "input", "flow.hcl:7", `does not have an attribute named "b"`},
		{"local", "when", "flow.hcl:22", "when must be true or false"},
		{"secret", "input", "flow.hcl:26", "sensitive value"},
		{"through", "input", "flow.hcl:30", "sensitive value"},
	} {
		task := f.task(t, c.task)
		var failure *run.Failure
		if c.part == "when" {
			_, failure = task.When(s)
		} else {
			_, failure = task.Input(s)
		}
		if failure == nil {
			t.Errorf("%+v: no failure", c)
			continue
		}
		if failure.Outcome != run.OutcomeRejected || failure.Code != run.CodeExpression || failure.At != c.at || !strings.Contains(failure.Message, c.message) {
			t.Errorf("%+v: %+v", c, failure)
		}
		if strings.Contains(failure.Message, "hunter2") {
			t.Errorf("a secret is shown: %s", failure.Message)
		}
	}
}

func TestDamagedOutputIsAFailure(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "a" {
		  task "t" {
		    plugin = "./greet.wasm"
		  }
		  output "o" {
		    value = task.t.output.x
		  }
		}`)
	s := f.Scope(aRun(f, "", nil))
	s.Settle(done("t", `{"x":`))
	if _, failure := f.Output(s); failure == nil || failure.At != "flow.hcl:7" || !strings.Contains(failure.Message, "output of task t") {
		t.Errorf("%+v", failure)
	}
}

func TestConfigOverPlugin(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		plugin "p" {
		  source = "./greet.wasm"
		  config = { url = "a", deep = { x = 1 }, keep = true }
		}
		flow "a" {
		  task "none" {
		    plugin = "./greet.wasm"
		  }
		  task "plain" {
		    plugin = plugin.p
		  }
		  task "static" {
		    plugin = plugin.p
		    config = { url = "b" }
		  }
		  task "late" {
		    plugin = plugin.p
		    config = { deep = trigger.payload }
		  }
		}`)
	s := f.Scope(aRun(f, "[1]", nil))
	for task, want := range map[string]string{
		"none":   "",
		"plain":  `{"deep":{"x":1},"keep":true,"url":"a"}`,
		"static": `{"deep":{"x":1},"keep":true,"url":"b"}`,
		"late":   `{"deep":[1],"keep":true,"url":"a"}`,
	} {
		if got, failure := f.task(t, task).Config(s); failure != nil || string(got) != want {
			t.Errorf("%s: %s %v", task, got, failure)
		}
	}
	if got := input(t, f.task(t, "none"), s); got != "null" {
		t.Error(got)
	}
}

func TestSettleDropsWhatRestedOnTheTask(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "a" {
		  locals {
		    state = task.t.state
		  }
		  task "t" {
		    plugin = "./greet.wasm"
		  }
		  on_failure {
		    task "h" {
		      plugin = "./greet.wasm"
		      input  = { state = local.state, error = error.task, code = error.code, n = error.attempt }
		    }
		    task "computed" {
		      plugin = "./greet.wasm"
		      input  = "${upper(local.state)} ${jsonencode(task.t.output)}"
		    }
		  }
		}`)
	s := f.Scope(aRun(f, "", nil))
	h := f.task(t, "h")
	computed := f.task(t, "computed")
	if got := input(t, h, s); got != `{"code":"","error":"","n":0,"state":"waiting"}` {
		t.Error(got)
	}
	if got := input(t, computed, s); got != `"WAITING null"` {
		t.Error(got)
	}
	s.Settle(done("t", "1"))
	s.Failed(&run.Failure{Task: "t", Code: "c"})
	if got := input(t, h, s); got != `{"code":"c","error":"t","n":2,"state":"succeeded"}` {
		t.Error(got)
	}
	s.Failed(&run.Failure{Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout})
	if got := input(t, h, s); got != `{"code":"timeout","error":"run","n":0,"state":"succeeded"}` {
		t.Error(got)
	}
	if got := input(t, computed, s); got != `"SUCCEEDED 1"` {
		t.Error(got)
	}
	s.Settle(done("of another flow", "1"))
}

func TestSettleDropsErrors(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
		flow "a" {
		  task "t" {
		    for_each = ["x"]
		    plugin   = "./greet.wasm"
		  }
		  on_failure {
		    task "h" {
		      plugin = "./greet.wasm"
		      input  = "${join(",", task.t.errors[*].code)}"
		    }
		  }
		}`)
	item := &run.TaskRun{TaskRef: run.TaskRef{Task: "t", Key: "0"}, State: run.Failed, Failure: &run.Failure{Code: "c"}}
	r := aRun(f, "", nil)
	r.Tasks = []*run.TaskRun{item}
	s := f.Scope(r)
	for _, want := range []string{`""`, `"c"`} {
		if got := input(t, f.task(t, "h"), s); got != want {
			t.Errorf("%s, and not %s", got, want)
		}
		s.Settle(&run.TaskRun{TaskRef: run.TaskRef{Task: "t"}, State: run.Failed, Items: json.RawMessage(`["x"]`)})
	}
}

package flows

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

const waitsFlow = `
locals {
  prefix = "shop.eu"
}
flow "f" {
  param "days" {
    type    = number
    default = 2
  }
  param "token" {
    type      = string
    default   = "hunter2"
    sensitive = true
  }
  locals {
    paid = wait.paid.payload
  }
  wait "pause"    { duration = "${param.days * 24}h" }
  wait "until"    { until = timeadd(run.scheduled_at, "1h") }
  wait "paid" {
    subject = "${local.prefix}.${trigger.payload.id}.paid"
    timeout = "1h30m"
  }
  wait "approval" { approval = "Ship to ${trigger.payload.name}?" }
  wait "secret"   { approval = "Use ${param.token}?" }
  wait "signal" {
    signal = true
    run_on = "always"
    after  = [task.last, wait.pause]
  }
  task "last" {
    plugin = "./tool.wasm"
    input  = wait.paid.payload
    config = { amount = local.paid.amount, took = wait.paid.duration, state = wait.signal2.state, code = wait.approval.error.code }
  }
  wait "signal2" { signal = true }
  on_failure {
    wait "hook" { subject = "hooks.always" }
  }
}
flow "g" {
  task "only" {
    plugin = "./tool.wasm"
  }
  wait "one" {
    subject = trigger.payload.subject
    after   = [task.only]
  }
  wait "two" {
    subject = "${trigger.payload.subject}.x"
    after   = [wait.one]
  }
}`

func waitOf(t *testing.T, f *Flow, name string) *Task {
	t.Helper()
	for _, task := range f.AllTasks() {
		if task.Name == WaitPrefix+name {
			return task
		}
	}
	t.Fatalf("no wait %q", name)
	return nil
}

func TestAwait(t *testing.T) {
	t.Parallel()
	f := load(t, map[string]string{"f.hcl": waitsFlow}, Options{}).Flow("f")
	now := time.Date(2026, 3, 8, 2, 30, 1, 0, time.UTC)
	for _, c := range []struct {
		wait, payload, days string
		want                Awaited
		failure             string
	}{
		{"pause", `null`, `2`, Awaited{Due: now.Add(48 * time.Hour)}, ""},
		{"pause", `null`, `0`, Awaited{Due: now}, ""},
		{"pause", `null`, `-1`, Awaited{}, "duration"},
		{"pause", `null`, `1e9`, Awaited{}, "100 years"},
		{"until", `null`, `2`, Awaited{Due: time.Date(2026, 3, 8, 3, 30, 0, 0, time.UTC)}, ""},
		{"paid", `{"id":"A7"}`, `2`, Awaited{Subject: "shop.eu.A7.paid"}, ""},
		{"paid", `{"id":7}`, `2`, Awaited{Subject: "shop.eu.7.paid"}, ""},
		{"paid", `{"id":">"}`, `2`, Awaited{}, "no * or >"},
		{"paid", `{"id":"a b"}`, `2`, Awaited{}, "no spaces"},
		{"paid", `{"id":"a\u0001"}`, `2`, Awaited{}, "subject"},
		{"paid", `{"id":""}`, `2`, Awaited{}, "subject"},
		{"paid", `{"id":"` + strings.Repeat("x", 300) + `"}`, `2`, Awaited{}, "255 bytes"},
		{"paid", `{}`, `2`, Awaited{}, "subject"},
		{"approval", `{"name":"Ann"}`, `2`, Awaited{Approval: "Ship to Ann?"}, ""},
		{"approval", `{"name":"` + strings.Repeat("x", 5000) + `"}`, `2`, Awaited{}, "4096 bytes"},
		{"secret", `null`, `2`, Awaited{}, "sensitive"},
		{"signal", `null`, `2`, Awaited{}, ""},
	} {
		s := f.Scope(aRun(f, c.payload, map[string]json.RawMessage{"days": json.RawMessage(c.days), "token": json.RawMessage(`"hunter2"`)}))
		got, failure := waitOf(t, f, c.wait).Await(s, now)
		if diff := cmp.Diff(c.want, got); diff != "" || (failure != nil) != (c.failure != "") {
			t.Errorf("%s of %.40s: %v %s", c.wait, c.payload, failure, diff)
		}
		if failure != nil && (failure.Code != run.CodeExpression || !strings.Contains(failure.Message, c.failure) || !strings.HasPrefix(failure.At, "f.hcl:") ||
			len(failure.Message) > 400 || strings.Contains(failure.Message, "hunter2")) {
			t.Errorf("%s of %.40s: %+v", c.wait, c.payload, failure)
		}
	}
}

func TestWaitsOfAFlow(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"f.hcl": waitsFlow}, Options{})
	f := set.Flow("f")
	var names []string
	for _, task := range f.AllTasks() {
		names = append(names, task.Name)
	}
	want := []string{"wait.pause", "wait.until", "wait.paid", "wait.approval", "wait.secret", "wait.signal", "last", "wait.signal2", "wait.hook"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("tasks differ: %s", diff)
	}
	var edges []string
	for _, e := range f.Edges() {
		edges = append(edges, e.From+" > "+e.To+" "+string(e.Via))
	}
	want = []string{
		"last > wait.signal after", "wait.pause > wait.signal after", "wait.paid > last reference",
		"wait.signal2 > last reference", "wait.approval > last reference",
	}
	if diff := cmp.Diff(want, edges); diff != "" {
		t.Errorf("edges differ: %s", diff)
	}
	if w := waitOf(t, f, "paid").Wait; w.For != WaitSubject || w.Timeout != 90*time.Minute {
		t.Errorf("the wait is %+v", w)
	}
	if task := waitOf(t, f, "signal"); task.Wait.For != WaitSignal || task.RunOn != RunAlways || task.At() != "f.hcl:26" {
		t.Errorf("the wait is %+v", task)
	}
	if diff := cmp.Diff([]string{"hooks.always", "shop.eu.*.paid"}, f.WaitSubjects()); diff != "" {
		t.Errorf("subjects differ: %s", diff)
	}
	if subjects := set.Flow("g").WaitSubjects(); len(subjects) > 0 {
		t.Errorf("subjects of which nothing is known are %q", subjects)
	}
}

func TestValuesOfWaits(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"f.hcl": waitsFlow}, Options{})
	f := set.Flow("f")
	s := f.Scope(aRun(f, `null`, nil))
	paid := done("wait.paid", `{"amount":12.50}`)
	paid.Attempts = 0
	refused := done("wait.approval", `{"approved":false}`)
	refused.State, refused.Failure = run.Failed, &run.Failure{Code: run.CodeRefused}
	for _, w := range []*run.TaskRun{paid, refused, done("wait.signal2", "")} {
		s.Settle(w)
	}
	last := f.tasks["last"]
	if got := input(t, last, s); got != `{"amount":12.50}` { // as it came
		t.Errorf("input: %s", got)
	}
	config, failure := last.Config(s)
	if want := `{"amount":12.5,"code":"refused","state":"succeeded","took":1.5}`; string(config) != want {
		t.Errorf("config: %s, %v", config, failure)
	}

	g := set.Flow("g")
	s = g.Scope(aRun(g, `null`, nil))
	for _, name := range []string{"only", "wait.one", "wait.two"} {
		s.Settle(done(name, `"`+name+`"`))
	}
	if out, failure := g.Output(s); string(out) != `{"only":"only"}` {
		t.Errorf("output: %s, %v", out, failure)
	}
}

// The JSON syntax has waits, too, in the order of the file.
func TestWaitsInJSON(t *testing.T) {
	t.Parallel()
	f := load(t, map[string]string{"f.hcl.json": `{"flow": {"f": {
  "wait": {"b": {"signal": true}, "a": {"subject": "x.${run.id}"}},
  "task": {"t": {"plugin": "./tool.wasm", "after": ["wait.b", "wait.a"], "input": "${wait.a.payload}"}}
}}}`}, Options{}).Flow("f")
	if diff := cmp.Diff([]string{"x.*"}, f.WaitSubjects()); diff != "" {
		t.Error(diff)
	}
	if got := f.Tasks[0].Name + " " + f.Tasks[1].Name + " " + f.Tasks[2].Name; got != "wait.b wait.a t" {
		t.Errorf("the order is %s", got)
	}
	s := f.Scope(aRun(f, `null`, nil))
	s.Settle(done("wait.a", `[1]`))
	if got := input(t, f.tasks["t"], s); got != `[1]` {
		t.Errorf("input: %s", got)
	}
}

// A ladder of waits is as long as it is, not as many as it has ways through it.
func TestManyWaysThroughWaits(t *testing.T) {
	t.Parallel()
	var file strings.Builder
	file.WriteString("flow \"f\" {\n  task \"t\" {\n    plugin = \"./tool.wasm\"\n  }\n")
	for i := range 60 {
		for _, side := range []string{"a", "b"} {
			after := "task.t"
			if i > 0 {
				n := string(rune('0'+(i-1)/10)) + string(rune('0'+(i-1)%10))
				after = "wait.a" + n + ", wait.b" + n
			}
			file.WriteString("  wait \"" + side + string(rune('0'+i/10)) + string(rune('0'+i%10)) + "\" {\n    signal = true\n    after = [" + after + "]\n  }\n")
		}
	}
	file.WriteString("}\n")
	f := load(t, map[string]string{"f.hcl": file.String()}, Options{}).Flow("f")
	if len(f.sinks) != 1 || f.sinks[0].name != "t" {
		t.Errorf("the last tasks are %v", f.sinks)
	}
}

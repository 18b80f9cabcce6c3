package flows

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/run"
)

const subflows = `
defaults {
  timeout = "1m"
  retries = 4
}
variable "kind" {
  default = "small"
}
flow "parent" {
  task "reference" {
    flow  = flow.child
    input = { count = param.count, name = task.text.output.t.text }
  }
  task "text" {
    flow    = "${var.kind}_one"
    timeout = "5s"
    retries = 1
  }
  task "call" {
    plugin = "./greet.wasm"
  }
  param "count" {
    default = 1
  }
}
flow "child" {
  concurrency {
    key   = param.name
    limit = 2
  }
  param "count" {
    type = number
    validation {
      condition     = param.count < 10
      error_message = "Too many."
    }
  }
  param "name" {
    type    = string
    default = "nobody"
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}
flow "small_one" {
  task "t" {
    plugin = "./greet.wasm"
  }
}
flow "name" {
  task "other" {
    flow = "small_one"
    when = flow.name == "x"
  }
}
`

func TestSubflows(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"billing/f.hcl": subflows}, Options{})
	check := func(set *Set) {
		t.Helper()
		f := set.Flow("billing/parent")
		reference, text, call := f.task(t, "reference"), f.task(t, "text"), f.task(t, "call")
		if reference.Flow != "billing/child" || reference.Child != set.Flow("billing/child") || text.Child != set.Flow("billing/small_one") || call.Child != nil || call.Flow != "" {
			t.Errorf("%q %q %q", reference.Flow, text.Flow, call.Flow)
		}
		if reference.Timeout != 0 || reference.Retry.Attempts != 0 || call.Timeout != time.Minute || call.Retry.Attempts != 5 {
			t.Error("defaults are for calls of functions")
		}
		if text.Timeout != 5*time.Second || text.Retry.Attempts != 2 {
			t.Error("a task with a flow has what it states itself")
		}
	}
	check(set)
	restored, diags := Restore(t.Context(), set.Flow("billing/parent").Definition, Options{Catalog: modules})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	check(restored)
}

func TestAdmitSubflow(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"f.hcl": subflows}, Options{})
	parent := aRun(set.Flow("parent"), `{"count":9}`, nil)
	task := set.Flow("parent").task(t, "reference")
	for input, want := range map[string]string{
		`{"count":"3","name":"x"}`: `x {"count":3,"name":"x"}`,
		`{"count":3}`:              `nobody {"count":3,"name":"nobody"}`,
		`{"count":3,"name":null}`:  `nobody {"count":3,"name":"nobody"}`,
		`{}`:                       "param count is required",
		`null`:                     "param count is required",
		`{"count":3,"nmae":"x"}`:   "Did you mean name?",
		`{"count":"many"}`:         "param count: a number is required",
		`{"count":10}`:             "Too many.",
		`[1]`:                      "the input must be an object with the params of flow child",
	} {
		a, err := task.Admit(parent, json.RawMessage(input))
		got := ""
		switch {
		case errors.As(err, new(*run.RequestError)):
			got = err.Error()
		case err != nil || !a.Accepted:
			t.Fatalf("%s: %v", input, err)
		default:
			params, _ := json.Marshal(a.Params)
			got = a.Concurrency + " " + string(params)
			if diff := cmp.Diff(run.Trigger{Kind: run.TriggerTask, Time: parent.Trigger.Time}, a.Trigger); diff != "" {
				t.Error(diff)
			}
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s", input, got)
		}
	}
}

// TestWhatParamsTakeIsNotRefused holds that a value which a param takes is not
// refused by its shape, and so not by what is known of an expression.
func TestWhatParamsTakeIsNotRefused(t *testing.T) {
	t.Parallel()
	var src strings.Builder
	src.WriteString("flow \"f\" {\ntask \"t\" {\nplugin = \"./greet.wasm\"\n}\n")
	for i, typ := range []string{
		"any", "string", "number", "bool", "list(string)", "list(any)", "set(number)", "map(bool)", "tuple([string, number])", "object({})",
		"object({ a = string, b = optional(number), c = optional(list(bool), []) })", "map(object({ a = optional(string) }))", "list(list(number))",
	} {
		fmt.Fprintf(&src, "param \"p%d\" {\ntype = %s\n}\n", i, typ)
	}
	src.WriteString("}\n")
	taken, refused := 0, 0
	for _, p := range oneFlow(t, src.String()).Params {
		for _, value := range []string{
			`null`, `"x"`, `"5"`, `"true"`, `""`, `5`, `1.5`, `true`, `[]`, `["x"]`, `["1", 2]`, `[true, "false"]`, `["a", 1]`, `[[1], ["2"]]`, `[null]`, `[{}]`, `{}`,
			`{"a":1}`, `{"a":"x","z":[]}`, `{"a":true,"b":"7","c":["true"]}`, `{"a":null}`, `{"b":1}`, `{"k":{"a":1}}`, `{"k":{}}`, `{"k":"true"}`,
		} {
			v, err := decodeJSON([]byte(value))
			if err != nil {
				t.Fatal(err)
			}
			misfit := jsonschema.FindMismatch(jsonschema.ConvertibleTo(p.Type), jsonschema.FromValue(v)) != nil
			if _, err = p.fill(budget.New(), v, true); err == nil {
				taken++
			} else if misfit {
				refused++
			}
			if err == nil && misfit {
				t.Errorf("%s %#v takes %s", p.Name, p.Type, value)
			}
		}
	}
	if taken < 80 || refused < 100 {
		t.Errorf("%d values are taken, %d refused before", taken, refused)
	}
}

// TestCallsThatEnd are flows that run each other, and may.
func TestCallsThatEnd(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"condition":         `task "t" { %s when = param.n > 0 }`,
		"behind condition":  `task "t" { %s after = [task.maybe] }`,
		"on failure":        `task "t" { %s after = [task.call]` + "\n" + `run_on = "failure" }`,
		"part for failures": `on_failure { task "t" { %s } }`,
	} {
		src = strings.NewReplacer(" { ", " {\n", " }", "\n}", "%s", "flow = flow.f\ninput = { n = param.n - 1 }\n").Replace(src)
		load(t, map[string]string{"f.hcl": "flow \"f\" {\n" + `
  param "n" {
    type = number
  }
  task "maybe" {
    plugin = "./greet.wasm"
    when   = param.n > 0
  }
  task "call" {
    plugin = "./greet.wasm"
  }
` + src + "\n}\n"}, Options{})
		if t.Failed() {
			t.Error(name)
		}
	}
}

// TestCallsWithoutEnd are flows that run each other in vain.
func TestCallsWithoutEnd(t *testing.T) {
	t.Parallel()
	for name, src := range map[string]string{
		"always":         "task \"t\" {\nflow = flow.f\nafter = [task.maybe]\nrun_on = \"always\"\n}",
		"one is certain": "task \"t\" {\nflow = flow.f\nafter = [task.maybe, task.call]\n}",
		"on success":     "on_success {\ntask \"t\" {\nflow = flow.f\n}\n}",
		"finally":        "finally {\ntask \"t\" {\nflow = flow.f\n}\n}",
	} {
		_, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": "flow \"f\" {\n" + `
  task "maybe" {
    plugin = "./greet.wasm"
    when   = trigger.kind == "manual"
  }
  task "call" {
    plugin = "./greet.wasm"
  }
` + src + "\n}\n"})}, Options{Catalog: modules})
		if len(diags) != 1 || RuleOf(diags[0]) != RuleCycle {
			t.Errorf("%s: %v", name, diags)
		}
	}
}

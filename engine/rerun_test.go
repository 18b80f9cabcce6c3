package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// A chain with a fan-out and a branch.
const againHCL = `
flow "f" {
  param "x" {
    type    = number
    default = 5
  }
  task "a" {
    plugin = "./m.wasm"
    input  = { x = param.x }
  }
  task "many" {
    plugin   = "./m.wasm"
    for_each = range(3)
    on_error = "continue"
    input    = { a = task.a.output, i = each.value }
  }
  task "b" {
    plugin = "./m.wasm"
    input  = task.many.output
  }
  task "side" { plugin = "./m.wasm" }
  output "all" {
    value = [task.b.output, task.side.state]
  }
}`

// callCounter counts the calls of each task or item.
type callCounter struct {
	mu    sync.Mutex
	calls map[string]int
	fails map[string]bool
}

func (c *callCounter) Invoke(_ context.Context, call run.Call) (run.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := run.TaskRef{Task: call.Task, Key: call.Key}.Label()
	c.calls[name]++
	if c.fails[name] {
		return fails(run.OutcomeFailed, false), nil
	}
	return gives(call.Input), nil
}

func TestATaskIsRunAgain(t *testing.T) {
	t.Parallel()
	set := load(t, againHCL)
	for name, c := range map[string]struct {
		fails  []string // at first
		how    run.RerunOptions
		calls  map[string]int
		state  run.State
		output string
	}{
		"one task of a run that succeeded": {
			how: run.RerunOptions{Task: run.TaskRef{Task: "a"}}, calls: map[string]int{"a": 1}, state: run.Succeeded,
			output: `{"all":[[{"a":{"x":5},"i":0},{"a":{"x":5},"i":1},{"a":{"x":5},"i":2}],"succeeded"]}`,
		},
		"a task and what comes after it": {
			how:   run.RerunOptions{Task: run.TaskRef{Task: "a"}, Downstream: true, Params: map[string]json.RawMessage{"x": json.RawMessage("7")}},
			calls: map[string]int{"a": 1, "many[0]": 1, "many[1]": 1, "many[2]": 1, "b": 1}, state: run.Succeeded,
			output: `{"all":[[{"a":{"x":7},"i":0},{"a":{"x":7},"i":1},{"a":{"x":7},"i":2}],"succeeded"]}`,
		},
		"one item": {
			fails: []string{"many[1]"}, how: run.RerunOptions{Task: run.TaskRef{Task: "many", Key: "1"}, Downstream: true},
			calls: map[string]int{"many[1]": 1, "b": 1}, state: run.Succeeded,
			output: `{"all":[[{"a":{"x":5},"i":0},{"a":{"x":5},"i":1},{"a":{"x":5},"i":2}],"succeeded"]}`,
		},
		"a failure elsewhere stays one": {
			fails: []string{"side"}, how: run.RerunOptions{Task: run.TaskRef{Task: "b"}}, calls: map[string]int{"b": 1}, state: run.Failed,
		},
		"what failed, of a fan-out and beside it": {
			fails: []string{"side", "many[2]"}, how: run.RerunOptions{}, calls: map[string]int{"side": 1}, state: run.Succeeded,
			output: `{"all":[[{"a":{"x":5},"i":0},{"a":{"x":5},"i":1},null],"succeeded"]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				host := &callCounter{calls: map[string]int{}, fails: map[string]bool{}}
				for _, name := range c.fails {
					host.fails[name] = true
				}
				r := boot(t, Config{Invoker: host}, set)
				old := r.run("f", `null`)
				host.calls, host.fails = map[string]int{}, nil
				receipt, err := r.Retry(t.Context(), old.Run, c.how)
				if err != nil {
					t.Fatal(err)
				}
				record := r.wait(receipt.Run)
				if diff := cmp.Diff(c.calls, host.calls); diff != "" {
					t.Errorf("calls differ (-want +got):\n%s", diff)
				}
				if record.State != c.state || string(record.Output) != c.output {
					t.Errorf("the run is %s and gives %s, want %s and %s", record.State, record.Output, c.state, c.output)
				}
				r.stop()
			})
		})
	}
}

// A fan-out that is taken over stays as it was, whatever comes of the task before it
// that is run again.
func TestAFanOutIsTakenOver(t *testing.T) {
	t.Parallel()
	set := load(t, againHCL)
	synctest.Test(t, func(t *testing.T) {
		host := &callCounter{calls: map[string]int{}}
		r := boot(t, Config{Invoker: host}, set)
		old := r.run("f", `null`)
		host.calls, host.fails = map[string]int{}, map[string]bool{"a": true}
		receipt, err := r.Retry(t.Context(), old.Run, run.RerunOptions{Task: run.TaskRef{Task: "a"}})
		if err != nil {
			t.Fatal(err)
		}
		record := r.wait(receipt.Run)
		if diff := cmp.Diff(map[string]int{"a": 1}, host.calls); diff != "" || record.State != run.Failed {
			t.Errorf("the run is %s; calls differ (-want +got):\n%s", record.State, diff)
		}
		if many, was := taskOf(t, record, "many"), taskOf(t, old, "many"); many.State != run.Succeeded || string(many.Output) != string(was.Output) {
			t.Errorf("the fan-out is %s and gives %s, and gave %s", many.State, many.Output, was.Output)
		}
		r.stop()
	})
}

func TestAFanOutThatFailedGoesOnWithItsItems(t *testing.T) {
	t.Parallel()
	set := load(t, strings.ReplaceAll(againHCL, `on_error = "continue"`, "max_parallel = 1"))
	synctest.Test(t, func(t *testing.T) {
		host := &callCounter{calls: map[string]int{}, fails: map[string]bool{"many[1]": true}}
		r := boot(t, Config{Invoker: host}, set)
		old := r.run("f", `null`)
		if old.State != run.Failed || old.Error.Task != "many" || old.Error.Key != "1" {
			t.Fatalf("%s: %+v", old.State, old.Error)
		}
		host.calls, host.fails = map[string]int{}, nil
		record := r.wait(r.retried(old.Run, false))
		if diff := cmp.Diff(map[string]int{"many[1]": 1, "many[2]": 1, "b": 1}, host.calls); diff != "" {
			t.Errorf("calls differ (-want +got):\n%s", diff)
		}
		if record.State != run.Succeeded {
			t.Errorf("the run is %s: %v", record.State, record.Error)
		}
		r.stop()
	})
}

// What succeeded is taken over with its output when its task is written in another
// way now.
func TestATaskThatHasChangedIsTakenOver(t *testing.T) {
	t.Parallel()
	const plain, each, forgiving = "", "for_each = range(2)", "for_each = range(2)\n on_error = \"continue\""
	last := run.RerunOptions{Task: run.TaskRef{Task: "last"}}
	for name, c := range map[string]struct {
		was, is string
		fails   string
		hows    []run.RerunOptions // each but the last one fails
		given   string
	}{
		"into a fan-out":                           {was: plain, is: each, hows: []run.RerunOptions{{}}, given: `"x"`},
		"into a fan-out, as it was, and again":     {was: plain, is: each, hows: []run.RerunOptions{last, {}}, given: `"x"`},
		"out of a fan-out":                         {was: each, is: plain, hows: []run.RerunOptions{{}}, given: `["x","x"]`},
		"out of a fan-out, as it was, and again":   {was: each, is: plain, hows: []run.RerunOptions{last, {}}, given: `["x","x"]`},
		"which forgives no item any more":          {was: forgiving, is: each, fails: "a[1]", hows: []run.RerunOptions{{}}, given: `["x",null]`},
		"which forgives no item, as it was, again": {was: forgiving, is: each, fails: "a[1]", hows: []run.RerunOptions{last, {}}, given: `["x",null]`},
		"which forgives items now":                 {was: each, is: forgiving, hows: []run.RerunOptions{last, {}}, given: `["x","x"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			flow := func(a string) *flows.Set {
				return load(t, "flow \"f\" {\n task \"a\" {\n plugin = \"./m.wasm\"\n input = \"x\"\n"+a+"\n}\n task \"last\" {\n plugin = \"./m.wasm\"\n input = task.a.output\n}\n}")
			}
			was, is := flow(c.was), flow(c.is)
			synctest.Test(t, func(t *testing.T) {
				host := &callCounter{fails: map[string]bool{c.fails: true, "last": true}, calls: map[string]int{}}
				r := boot(t, Config{Invoker: host}, was)
				record := r.run("f", `null`)
				if err := r.Deploy(t.Context(), is); err != nil {
					t.Fatal(err)
				}
				for i, how := range c.hows {
					host.calls, host.fails["last"] = map[string]int{}, i < len(c.hows)-1
					receipt, err := r.Retry(t.Context(), record.Run, how)
					if err != nil {
						t.Fatal(err)
					}
					record = r.wait(receipt.Run)
					if diff := cmp.Diff(map[string]int{"last": 1}, host.calls); diff != "" {
						t.Errorf("with %+v calls differ (-want +got):\n%s", how, diff)
					}
				}
				if got := string(taskOf(t, record, "last").Input); record.State != run.Succeeded || got != c.given {
					t.Errorf("the run is %s (%v), and last was given %s, want %s", record.State, record.Error, got, c.given)
				}
				r.stop()
			})
		})
	}
}

// What ran because of a failure, or in spite of one, depends on what is run again.
func TestWhatComesAfterAFailureDoesNotCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		more  string
		fails string
		calls map[string]int
	}{
		"of a task":    {fails: "a", calls: map[string]int{"a": 1, "always": 1}},
		"of a fan-out": {more: "for_each = range(2)", fails: "a[1]", calls: map[string]int{"a[1]": 1, "always": 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, `
flow "f" {
  task "a" {
    plugin = "./m.wasm"
    `+c.more+`
  }
  task "rescue" {
    plugin = "./m.wasm"
    after  = [task.a]
    run_on = "failure"
  }
  task "always" {
    plugin = "./m.wasm"
    after  = [task.a]
    run_on = "always"
  }
}`)
			synctest.Test(t, func(t *testing.T) {
				host := &callCounter{calls: map[string]int{}, fails: map[string]bool{c.fails: true}}
				r := boot(t, Config{Invoker: host}, set)
				old := r.run("f", `null`)
				host.calls, host.fails = map[string]int{}, nil
				record := r.wait(r.retried(old.Run, false))
				if diff := cmp.Diff(c.calls, host.calls); diff != "" {
					t.Errorf("calls differ (-want +got):\n%s", diff)
				}
				wantStates(t, record, map[string]run.State{"": run.Succeeded, "a": run.Succeeded, "rescue": run.Skipped, "always": run.Succeeded})
				r.stop()
			})
		})
	}
}

func TestARecordedFlowIsRunAgain(t *testing.T) {
	t.Parallel()
	first := load(t, againHCL)
	second := load(t, `
flow "f" {
  task "new" { plugin = "./m.wasm" }
}`)
	synctest.Test(t, func(t *testing.T) {
		host := &callCounter{calls: map[string]int{}}
		r := boot(t, Config{Invoker: host}, first)
		old := r.run("f", `null`)
		if err := r.Deploy(t.Context(), second); err != nil {
			t.Fatal(err)
		}
		for recorded, want := range map[bool]map[string]int{true: {"b": 1}, false: {"new": 1}} {
			host.calls = map[string]int{}
			how := run.RerunOptions{Whole: !recorded, FreshParams: !recorded, Recorded: recorded}
			if recorded {
				how.Task = run.TaskRef{Task: "b"}
			}
			receipt, err := r.Retry(t.Context(), old.Run, how)
			if err != nil {
				t.Fatal(err)
			}
			r.wait(receipt.Run)
			if diff := cmp.Diff(want, host.calls); diff != "" {
				t.Errorf("recorded %t: calls differ (-want +got):\n%s", recorded, diff)
			}
		}
		r.stop()
	})
}

func TestWhatCannotBeRunAgain(t *testing.T) {
	t.Parallel()
	set := load(t, againHCL)
	synctest.Test(t, func(t *testing.T) {
		host := &callCounter{calls: map[string]int{}, fails: map[string]bool{"a": true}}
		r := boot(t, Config{Invoker: host}, set)
		old := r.run("f", `null`)
		for text, want := range map[string]string{
			"nothing": "no task", "many": "task a, which did not succeed", "a[1]": "not fanned out",
		} {
			ref, err := run.ParseTaskRef(text)
			if err != nil {
				t.Fatal(err)
			}
			refused := (*run.RequestError)(nil)
			if _, err := r.Retry(t.Context(), old.Run, run.RerunOptions{Task: ref}); !errors.As(err, &refused) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want an error with %q", text, err, want)
			}
		}
		r.stop()
	})
}

// The items of a fan-out are those of the earlier run if one of them is named: params
// that decide them are refused, others apply.
func TestParamsOfAnItemThatIsRunAgain(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  locals {
    names = param.names
  }
  param "names" { default = ["ann", "bob"] }
  param "region" { default = "eu" }
  task "bill" {
    for_each = { for n in local.names : n => n }
    flow     = flow.one
    input    = { name = each.value, region = param.region }
  }
}
flow "one" {
  param "name" {}
  param "region" {}
  task "send" {
    plugin = "./m.wasm"
    input  = "${param.name} in ${param.region}"
  }
  task "each" {
    for_each = [param.name]
    plugin   = "./m.wasm"
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		old := r.run("f", `null`)
		for text, c := range map[string]struct {
			name, value string
			fresh       bool
			want        string // error
		}{
			"bill[ann]":         {"names", `["ann","eve"]`, false, `the items of task bill depend on param "names" of flow f`},
			"bill[ann]/send":    {"names", `["ann"]`, false, `the items of task bill depend on param "names" of flow f`},
			"bill[bob]/each[0]": {"region", `"us"`, false, `the items of task each depend on param "name" of flow one`},
			"bill[bob]":         {"names", `["ann","bob"]`, true, ""},
			"bill[bob]/send":    {"region", `"us"`, true, ""},
			"bill":              {"names", `["eve"]`, false, ""},
		} {
			how := path(t, text)
			how.Params, how.FreshParams = map[string]json.RawMessage{c.name: json.RawMessage(c.value)}, c.fresh
			receipt, err := r.Retry(t.Context(), old.Run, how)
			if refused := (*run.RequestError)(nil); c.want != "" {
				if !errors.As(err, &refused) || refused.Code != run.RequestParams || !strings.Contains(err.Error(), c.want) {
					t.Errorf("%s with %s: %v, want an error with %q", text, c.name, err, c.want)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s with %s: %v", text, c.name, err)
				continue
			}
			if record := r.wait(receipt.Run); text == "bill[bob]/send" && string(taskOf(t, record, "bill").Output) == string(taskOf(t, old, "bill").Output) {
				t.Errorf("%s has no effect: %s", c.name, record.Output)
			}
		}
		r.stop()
	})
}

// An item that is asked for runs, also where others have failed that end the fan-out.
func TestAnItemIsRunAgainBesideOthersThatFailed(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "many" {
    plugin   = "./m.wasm"
    for_each = range(3)
    input    = each.value
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		host := &callCounter{calls: map[string]int{}, fails: map[string]bool{"many[1]": true, "many[2]": true}}
		r := boot(t, Config{Workers: 4, Invoker: host}, set)
		old := r.run("f", `null`)
		for _, c := range []struct {
			item  string
			calls map[string]int
			state run.State
		}{
			{"1", map[string]int{"many[1]": 1}, run.Failed},
			{"2", map[string]int{"many[2]": 1}, run.Succeeded},
		} {
			host.calls, host.fails = map[string]int{}, nil
			receipt, err := r.Retry(t.Context(), old.Run, run.RerunOptions{Task: run.TaskRef{Task: "many", Key: c.item}})
			if err != nil {
				t.Fatal(err)
			}
			if old = r.wait(receipt.Run); old.State != c.state || !cmp.Equal(c.calls, host.calls) {
				t.Errorf("item %s: %s with calls %v", c.item, old.State, host.calls)
			}
		}
		r.stop()
	})
}

// A run knows the how-manieth it is of those that make the first one again; those
// within it count for themselves.
func TestRunsThatAreMadeAgainAreCounted(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "own" {
    plugin = "./m.wasm"
    input  = run.attempt
  }
  task "call" { flow = flow.inner }
  output "all" { value = [task.own.output, task.call.output.attempt] }
}
flow "inner" {
  task "first" { plugin = "./m.wasm" }
  task "work" {
    plugin = "./m.wasm"
    input  = run.attempt
    after  = [task.first]
  }
  output "attempt" { value = task.work.output }
}`)
	synctest.Test(t, func(t *testing.T) {
		host := &callCounter{calls: map[string]int{}, fails: map[string]bool{"work": true}}
		r := boot(t, Config{Invoker: host}, set)
		last := r.run("f", `null`)
		for _, c := range []struct {
			how  run.RerunOptions
			want string
		}{
			{run.RerunOptions{}, `{"all":[1,2]}`}, // what own gave is taken over
			{run.RerunOptions{Whole: true}, `{"all":[3,1]}`},
			{run.RerunOptions{Task: run.TaskRef{Task: "own"}}, `{"all":[4,1]}`},
		} {
			host.fails = nil
			receipt, err := r.Retry(t.Context(), last.Run, c.how)
			if err != nil {
				t.Fatal(err)
			}
			if last = r.wait(receipt.Run); string(last.Output) != c.want {
				t.Errorf("%+v: %s, want %s", c.how, last.Output, c.want)
			}
		}
		r.stop()
	})
}

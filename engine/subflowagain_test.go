package engine

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

// Sub-flows two deep, once by themselves and once for each item.
const nestedAgainHCL = `
flow "top" {
  param "x" { default = 1 }
  task "first" {
    plugin = "./m.wasm"
    input  = param.x
  }
  task "load" {
    flow  = flow.load
    input = { x = task.first.output }
  }
  task "last" {
    plugin = "./m.wasm"
    input  = task.load.output
  }
}
flow "many" {
  task "load" {
    for_each = ["eu", "us"]
    flow     = flow.load
    input    = { x = each.value }
    on_error = "continue"
  }
  task "last" {
    plugin = "./m.wasm"
    input  = task.load.output
  }
}
flow "load" {
  param "x" {}
  task "read" {
    plugin = "./m.wasm"
    input  = param.x
  }
  task "store" {
    flow  = flow.store
    input = { x = task.read.output }
  }
  task "note" {
    plugin = "./m.wasm"
    input  = task.store.output
  }
  output "sum" { value = task.note.output }
}
flow "store" {
  param "x" {}
  task "open" {
    plugin = "./m.wasm"
    input  = param.x
  }
  task "write" {
    plugin = "./m.wasm"
    input  = [task.open.output]
  }
  output "written" { value = task.write.output }
}
`

// tally counts the calls by task and input. A call that is named in fails does.
type tally struct {
	mu    sync.Mutex
	calls map[string]int
	fails map[string]bool
}

func (c *tally) Invoke(_ context.Context, call run.Call) (run.Result, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	name := call.Task + " " + string(call.Input)
	c.calls[name]++
	if c.fails[name] {
		return fails(run.OutcomeFailed, false), nil
	}
	return gives(call.Input), nil
}

// now has calls fail from now on, and starts counting again.
func (c *tally) now(fails ...string) {
	c.calls, c.fails = map[string]int{}, map[string]bool{}
	for _, name := range fails {
		c.fails[name] = true
	}
}

func path(t *testing.T, text string) run.RerunOptions {
	t.Helper()
	refs, err := run.ParseTaskPath(text)
	if err != nil {
		t.Fatal(err)
	}
	return run.RerunOptions{Within: refs[:len(refs)-1], Task: refs[len(refs)-1]}
}

func TestRunsOfSubflowsAreContinued(t *testing.T) {
	t.Parallel()
	downstream := func(how run.RerunOptions) run.RerunOptions {
		how.Downstream = true
		return how
	}
	with := func(how run.RerunOptions, x string) run.RerunOptions {
		how.Params = map[string]json.RawMessage{"x": json.RawMessage(x)}
		return how
	}
	set := load(t, nestedAgainHCL)
	for name, c := range map[string]struct {
		flow  string
		fails []string // at first
		how   run.RerunOptions
		again []string // fail again
		calls map[string]int
		state run.State
	}{
		"a run that failed goes on in the innermost one": {
			flow: "top", fails: []string{"write [1]"}, state: run.Succeeded,
			calls: map[string]int{"write [1]": 1, `note {"written":[1]}`: 1, `last {"sum":{"written":[1]}}`: 1},
		},
		"one that gets other params begins anew": {
			flow: "top", fails: []string{"write [1]", "first 1"}, how: with(run.RerunOptions{Task: run.TaskRef{Task: "first"}, Downstream: true}, "2"), state: run.Succeeded,
			calls: map[string]int{"first 2": 1, "read 2": 1, "open 2": 1, "write [2]": 1, `note {"written":[2]}`: 1, `last {"sum":{"written":[2]}}`: 1},
		},
		"as a whole": {
			flow: "top", fails: []string{"write [1]"}, how: run.RerunOptions{Whole: true}, state: run.Succeeded,
			calls: map[string]int{"first 1": 1, "read 1": 1, "open 1": 1, "write [1]": 1, `note {"written":[1]}`: 1, `last {"sum":{"written":[1]}}`: 1},
		},
		"a task of the innermost one": {
			flow: "top", how: path(t, "load/store/open"), state: run.Succeeded,
			calls: map[string]int{"open 1": 1},
		},
		"and all that comes after it, in each of the runs": {
			flow: "top", how: downstream(path(t, "load/store/write")), state: run.Succeeded,
			calls: map[string]int{"write [1]": 1, `note {"written":[1]}`: 1, `last {"sum":{"written":[1]}}`: 1},
		},
		"a task that fails again": {
			flow: "top", how: path(t, "load/read"), again: []string{"read 1"}, state: run.Failed,
			calls: map[string]int{"read 1": 1},
		},
		"what failed of one item": {
			flow: "many", fails: []string{`write ["us"]`, "last " + `[{"sum":{"written":["eu"]}},null]`}, state: run.Succeeded,
			calls: map[string]int{`last [{"sum":{"written":["eu"]}},null]`: 1},
		},
		"a task in one item": {
			flow: "many", how: downstream(path(t, "load[1]/store/write")), state: run.Succeeded,
			calls: map[string]int{`write ["us"]`: 1, `note {"written":["us"]}`: 1, `last [{"sum":{"written":["eu"]}},{"sum":{"written":["us"]}}]`: 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				host := new(tally)
				host.now(c.fails...)
				r := boot(t, Config{Invoker: host}, set)
				old := r.run(c.flow, `null`)
				host.now(c.again...)
				receipt, err := r.Retry(t.Context(), old.Run, c.how)
				if err != nil {
					t.Fatal(err)
				}
				record := r.wait(receipt.Run)
				if diff := cmp.Diff(c.calls, host.calls); diff != "" {
					t.Errorf("calls differ (-want +got):\n%s", diff)
				}
				if record.State != c.state {
					t.Errorf("the run is %s and gives %s", record.State, record.Output)
				}
				r.stop()
			})
		})
	}
}

// Continued runs know the run that they continue; what they take over was recorded
// with the first one, and survives a restart before their tasks begin.
func TestWhatIsContinuedSurvivesARestart(t *testing.T) {
	t.Parallel()
	source := nestedAgainHCL + `
flow "gated" {
  concurrency { limit = 1 }
  wait "go" {
    when   = trigger.payload == "wait"
    signal = true
  }
  task "load" {
    flow  = flow.load
    input = { x = 1 }
  }
}`
	set := load(t, source)
	synctest.Test(t, func(t *testing.T) {
		host := new(tally)
		host.now("write [1]")
		r := boot(t, Config{Invoker: host}, set)
		old := r.run("gated", `null`)
		load := r.child(old, "load")
		store := r.child(load, "store")
		host.now()
		gate := r.submit("gated", `"wait"`)
		receipt, err := r.Retry(t.Context(), old.Run, run.RerunOptions{})
		if err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		r.crash()
		r = boot(t, Config{Invoker: host, Journal: r.journal}, set)
		if err := r.Signal(t.Context(), gate, "go", json.RawMessage(`null`)); err != nil {
			t.Fatal(err)
		}
		record := r.wait(receipt.Run)
		if want := map[string]int{"read 1": 1, "open 1": 1, "write [1]": 2, `note {"written":[1]}`: 2}; record.State != run.Succeeded || !cmp.Equal(want, host.calls) {
			t.Errorf("%s with calls %v", record.State, host.calls)
		}
		again := r.child(record, "load")
		if again.RetryOf != load.Run || r.child(again, "store").RetryOf != store.Run {
			t.Errorf("the runs continue %q and %q", again.RetryOf, r.child(again, "store").RetryOf)
		}
		r.stop()
	})
}

func TestPathsThatLeadNowhere(t *testing.T) {
	t.Parallel()
	set := load(t, nestedAgainHCL)
	synctest.Test(t, func(t *testing.T) {
		host := new(tally)
		host.now(`write ["us"]`)
		history := newPastRuns()
		r := boot(t, Config{Invoker: host, History: history}, set)
		top, many := r.run("top", `null`), r.run("many", `null`)
		for _, c := range []struct {
			of   *run.Record
			path string
			want string
		}{
			{top, "first/read", "task first of run " + string(top.Run) + " did not run a flow"},
			{top, "load/red", `flow load has no task "red" among its main tasks`},
			{top, "lead/read", "task lead of run " + string(top.Run) + " did not run a flow"},
			{many, "load/read", "task load is fanned out: name the item, load[KEY]/…"},
			{many, "load[7]/read", "task load[7] of run " + string(many.Run) + " did not run a flow"},
			{many, "load[1]/note", "task note depends on task store, which did not succeed in that run: name that task instead"},
		} {
			_, err := r.Retry(t.Context(), c.of.Run, path(t, c.path))
			if refused := (*run.RequestError)(nil); !errors.As(err, &refused) || err.Error() != c.want {
				t.Errorf("%s: %v, want %s", c.path, err, c.want)
			}
		}
		r.stop()
	})
}

// What runs of sub-flows take over begins in one commit with them.
func TestASubflowWithTooMuchToTakeOver(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "top" {
  task "many" { flow = flow.many }
}
flow "many" {
  task "copy" {
    plugin   = "./m.wasm"
    for_each = range(100)
    input    = trigger.time
  }
  task "last" {
    plugin = "./m.wasm"
    after  = [task.copy]
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		large := json.RawMessage(`"` + strings.Repeat("x", 50_000) + `"`)
		host := guests{
			"copy": func(context.Context, run.Call) (run.Result, error) { return gives(large), nil },
			"last": func(context.Context, run.Call) (run.Result, error) { return fails(run.OutcomeFailed, false), nil },
		}
		r := boot(t, Config{Invoker: host}, set)
		old := r.run("top", `null`)
		_, err := r.Retry(t.Context(), old.Run, run.RerunOptions{})
		if refused := (*run.RequestError)(nil); !errors.As(err, &refused) || refused.Code != run.RequestSize || !strings.Contains(err.Error(), "as a whole") {
			t.Errorf("it is answered with %v", err)
		}
		if _, err := r.Retry(t.Context(), old.Run, run.RerunOptions{Whole: true}); err != nil {
			t.Error(err)
		}
		r.stop()
	})
}

// A task that is asked for runs, whoever has won in the groups around it.
func TestALoserRunsAgainWhenItIsAskedFor(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"first_success", "race"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			set := load(t, `
flow "f" {
  group "any" {
    mode = "`+mode+`"
    group "one" {
      mode = "serial"
      task "slow" { plugin = "./m.wasm" }
      task "more" {
        plugin = "./m.wasm"
        input  = task.slow.output
      }
    }
    task "fast" { plugin = "./m.wasm" }
  }
}`)
			synctest.Test(t, func(t *testing.T) {
				host := new(tally)
				host.now("slow null")
				r := boot(t, Config{Invoker: host}, set)
				old := r.run("f", `null`)
				host.now()
				receipt, err := r.Retry(t.Context(), old.Run, run.RerunOptions{Task: run.TaskRef{Task: "slow"}})
				if err != nil {
					t.Fatal(err)
				}
				record := r.wait(receipt.Run)
				if want := map[string]int{"slow null": 1}; record.State != run.Succeeded || !cmp.Equal(want, host.calls) {
					t.Errorf("%s with calls %v", record.State, host.calls)
				}
				r.stop()
			})
		})
	}
}

// A group of which nothing is to run again is as it was, also where another member
// of the race around it has won since.
func TestAGroupThatIsTakenOverIsAsItWas(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  group "first" {
    mode = "race"
    group "slow" {
      task "bad" { plugin = "./m.wasm" }
    }
    task "good" { plugin = "./m.wasm" }
  }
  task "rescue" {
    plugin = "./m.wasm"
    after  = [group.slow]
    run_on = "failure"
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		runs := 0
		r := boot(t, Config{Invoker: guests{
			"bad":  func(context.Context, run.Call) (run.Result, error) { return fails(run.OutcomeFailed, false), nil },
			"good": takes(time.Second),
			"rescue": func(context.Context, run.Call) (run.Result, error) {
				runs++
				return gives(nil), nil
			},
		}}, set)
		old := r.run("f", `null`)
		receipt, err := r.Retry(t.Context(), old.Run, run.RerunOptions{Task: run.TaskRef{Task: "rescue"}})
		if err != nil {
			t.Fatal(err)
		}
		if record := r.wait(receipt.Run); record.State != run.Succeeded || runs != 2 {
			t.Errorf("it is %s, and the rescue ran %d times", record.State, runs)
		}
		r.stop()
	})
}

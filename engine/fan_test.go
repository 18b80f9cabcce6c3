package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// forEach is a task that gives back the item that it is run for, after a second.
func forEach(items string, more ...string) string {
	return "task \"t\" {\n plugin = \"./m.wasm\"\n for_each = " + items + "\n input = { key = each.key, value = each.value, index = each.index }\n" + strings.Join(more, "\n") + "\n}\n"
}

// failingItems fails the items with the given keys.
func failingItems(keys ...string) func(context.Context, run.Call) (run.Result, error) {
	return func(ctx context.Context, call run.Call) (run.Result, error) {
		r, err := takes(time.Second)(ctx, call)
		for _, key := range keys {
			if call.Key == key && err == nil && r.Outcome == run.OutcomeSucceeded {
				return fails(run.OutcomeFailed, true), nil
			}
		}
		return r, err
	}
}

func TestFanOuts(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flow   string
		guest  func(context.Context, run.Call) (run.Result, error)
		state  run.State
		output string
		items  int
		took   time.Duration
		fails  string // part of the run's failure
	}{
		"a list": {
			flow: forEach(`["x", "y"]`), guest: takes(time.Second), state: run.Succeeded, items: 2, took: time.Second,
			output: `{"t":[{"index":0,"key":0,"value":"x"},{"index":1,"key":1,"value":"y"}]}`,
		},
		"an object": {
			flow: forEach(`{ b = 1, a = [2] }`), guest: takes(time.Second), state: run.Succeeded, items: 2, took: time.Second,
			output: `{"t":{"a":{"index":0,"key":"a","value":[2]},"b":{"index":1,"key":"b","value":1}}}`,
		},
		"a set": {
			flow: forEach(`toset(["q", "p", "q"])`), guest: takes(time.Second), state: run.Succeeded, items: 2, took: time.Second,
			output: `{"t":{"p":{"index":0,"key":"p","value":"p"},"q":{"index":1,"key":"q","value":"q"}}}`,
		},
		"no items":        {flow: forEach(`[]`), state: run.Succeeded, output: `{"t":[]}`},
		"an empty set":    {flow: forEach(`toset([])`), state: run.Succeeded, output: `{"t":{}}`},
		"no items by key": {flow: forEach(`{}`), state: run.Succeeded, output: `{"t":{}}`},
		"a value of the run": {
			flow: forEach(`trigger.payload`), guest: takes(0), state: run.Succeeded, items: 1,
			output: `{"t":[{"index":0,"key":0,"value":7}]}`,
		},
		"null":         {flow: forEach(`trigger.payload[0] == 7 ? null : []`), state: run.Failed, fails: "must be a list"},
		"an empty key": {flow: forEach(`{ "" = trigger.payload }`), state: run.Failed, fails: "key is empty"},
		"max_parallel": {
			flow: forEach(`range(5)`, "max_parallel = 2"), guest: takes(time.Second), state: run.Succeeded, items: 5, took: 3 * time.Second,
			output: `{"t":[{"index":0,"key":0,"value":0},{"index":1,"key":1,"value":1},{"index":2,"key":2,"value":2},{"index":3,"key":3,"value":3},{"index":4,"key":4,"value":4}]}`,
		},
		"a failure lets no other begin": {
			flow: forEach(`range(5)`, "max_parallel = 1"), guest: failingItems("1"), state: run.Failed, items: 2, took: 2 * time.Second, fails: "no luck",
		},
		"a failure that is forgiven": {
			flow:  forEach(`range(3)`, `on_error = "continue"`) + "output \"o\" {\n value = { all = task.t.output, keys = task.t.errors[*].key, why = task.t.errors[*].message }\n}\n",
			guest: failingItems("1"), state: run.Succeeded, items: 3, took: time.Second,
			output: `{"o":{"all":[{"index":0,"key":0,"value":0},null,{"index":2,"key":2,"value":2}],"keys":[1],"why":["no luck"]}}`,
		},
		"items are retried": {
			flow: forEach(`range(2)`, "retry {\n attempts = 3\n delay = \"10s\"\n backoff = \"constant\"\n}"), guest: failingItems("1"), state: run.Failed, items: 2, took: 23 * time.Second, fails: "no luck",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, "flow \"f\" {\n"+c.flow+"}\n")
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Workers: 8, Invoker: guests{"t": c.guest}}, set)
				record := r.run("f", `[7]`)
				if record.State != c.state {
					t.Fatalf("the run is %s: %v", record.State, record.Error)
				}
				if got := string(record.Output); c.output != "" && got != c.output {
					t.Errorf("output %s, want %s", got, c.output)
				}
				items := 0
				for _, task := range record.Tasks {
					if task.Key != nil {
						items++
					}
				}
				if items != c.items {
					t.Errorf("%d items have begun, want %d", items, c.items)
				}
				if took := record.FinishedAt.Sub(*record.StartedAt); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				if c.fails != "" && (record.Error == nil || !strings.Contains(record.Error.Message, c.fails)) {
					t.Errorf("failure %v, want one with %q", record.Error, c.fails)
				}
				r.stop()
			})
		})
	}
}

// A fan-out that ends before it has items has no errors of them.
func TestErrorsOfNoItems(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n"+forEach(`trigger.payload[0] == 7 ? null : []`)+
		"task \"u\" {\n plugin = \"./m.wasm\"\n run_on = \"always\"\n when = length(task.t.errors) > 0\n}\n}\n")
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 8, Invoker: guests{}}, set)
		record := r.run("f", `[7]`)
		if u := taskOf(t, record, "u"); u.State != run.Skipped {
			t.Errorf("what looks at them %s: %v", u.State, u.Error)
		}
		r.stop()
	})
}

// A fan-out of many items has only few of them under way, and continues where it was
// after a crash: no item that had ended is run again.
func TestAFanOutGoesOnAfterACrash(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n"+forEach(`range(40)`, "max_parallel = 4", "retry {\n attempts = 2\n}")+"}\n")
	for at := range 9 {
		t.Run(fmt.Sprint("after ", at, " seconds"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				count := &gauge{}
				var mu sync.Mutex
				made := map[string]int{}
				guest := count.around(func(ctx context.Context, call run.Call) (run.Result, error) {
					r, err := takes(time.Second)(ctx, call)
					if err == nil {
						mu.Lock()
						made[call.Key]++
						mu.Unlock()
					}
					return r, err
				})
				journal := memory.NewJournal()
				r := boot(t, Config{Journal: journal, Workers: 8, Invoker: guests{"t": guest}}, set)
				id := r.submit("f", `null`)
				time.Sleep(time.Duration(at)*time.Second + 500*time.Millisecond)
				r.crash()
				r = boot(t, Config{Journal: journal, Workers: 8, Invoker: guests{"t": guest}}, set)
				record := r.wait(id)
				var all []struct{ Value int }
				if err := json.Unmarshal(taskOf(t, record, "t").Output, &all); err != nil || len(all) != 40 {
					t.Fatalf("%s %v: %s", record.State, record.Error, taskOf(t, record, "t").Output)
				}
				for i, one := range all {
					if one.Value != i {
						t.Errorf("place %d has %d", i, one.Value)
					}
				}
				if count.most > 4 {
					t.Errorf("%d items at once", count.most)
				}
				for key, n := range made {
					if n != 1 {
						t.Errorf("item %s was made %d times", key, n)
					}
				}
				r.stop()
			})
		})
	}
}

func TestItemsAreCanceled(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n"+forEach(`range(9)`, "max_parallel = 3")+"}\n")
	for name, c := range map[string]struct {
		stop  func(r *rig, id run.ID) error
		items map[string]run.State
		whole run.State
	}{
		"the run": {
			stop:  func(r *rig, id run.ID) error { return r.Cancel(r.t.Context(), id, "enough") },
			items: map[string]run.State{"0": run.Canceled, "1": run.Canceled, "2": run.Canceled}, whole: run.Canceled,
		},
		"the task": {
			stop: func(r *rig, id run.ID) error {
				return r.CancelTask(r.t.Context(), id, run.TaskRef{Task: "t"}, "enough")
			},
			items: map[string]run.State{"0": run.Canceled, "1": run.Canceled, "2": run.Canceled}, whole: run.Canceled,
		},
		"an item": {
			stop: func(r *rig, id run.ID) error {
				return r.CancelTask(r.t.Context(), id, run.TaskRef{Task: "t", Key: "1"}, "enough")
			},
			items: map[string]run.State{"0": run.Succeeded, "1": run.Canceled, "2": run.Succeeded}, whole: run.Canceled,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Workers: 8, Invoker: guests{"t": takes(time.Second)}}, set)
				id := r.submit("f", `null`)
				time.Sleep(500 * time.Millisecond)
				if err := c.stop(r, id); err != nil {
					t.Fatal(err)
				}
				if err := r.CancelTask(t.Context(), id, run.TaskRef{Task: "t", Key: "8"}, "not begun"); err == nil {
					t.Error("an item that has not begun is canceled")
				}
				record := r.wait(id)
				items := map[string]run.State{}
				for _, task := range record.Tasks {
					if task.Key != nil {
						items[*task.Key] = task.State
					} else if task.State != c.whole {
						t.Errorf("the task is %s, want %s", task.State, c.whole)
					}
				}
				if diff := cmp.Diff(c.items, items); diff != "" {
					t.Errorf("items differ (-want +got):\n%s", diff)
				}
				r.stop()
			})
		})
	}
}

// Sub-flows may be fanned out, and run in groups.
func TestSubflowsOfItemsAndInRaces(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "all" {
    flow         = flow.child
    for_each     = range(7)
    max_parallel = 2
    input        = { n = each.value }
  }
  group "quickest" {
    mode = "race"
    task "slow" {
      flow  = flow.child
      input = { n = 60 }
    }
    task "quick" {
      flow  = flow.child
      input = { n = 1 }
    }
  }
  output "all" { value = task.all.output[*].n }
  output "first" { value = group.quickest.output.n }
}
flow "child" {
  param "n" { type = number }
  task "t" {
    plugin = "./m.wasm"
    input  = { n = param.n }
  }
  output "n" { value = task.t.output.n }
}`)
	sleeper := func(ctx context.Context, call run.Call) (run.Result, error) {
		var in struct{ N int }
		if err := json.Unmarshal(call.Input, &in); err != nil {
			return run.Result{}, err
		}
		return takes(time.Duration(in.N)*time.Second)(ctx, call)
	}
	for crash := range 8 {
		t.Run(fmt.Sprint("crash after ", crash, " seconds"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				journal := memory.NewJournal()
				r := boot(t, Config{Journal: journal, Workers: 8, Invoker: guests{"t": sleeper}}, set)
				id := r.submit("f", `null`)
				if crash > 0 {
					time.Sleep(time.Duration(crash)*time.Second - 500*time.Millisecond)
					r.crash()
					r = boot(t, Config{Journal: journal, Workers: 8, Invoker: guests{"t": sleeper}}, set)
				}
				record := r.wait(id)
				if got := string(record.Output); got != `{"all":[0,1,2,3,4,5,6],"first":1}` {
					t.Errorf("the run is %s (%v) and gives %s", record.State, record.Error, got)
				}
				if slow := taskOf(t, record, "slow"); slow.State != run.Canceled {
					t.Errorf("the slow one is %s", slow.State)
				}
				r.stop()
			})
		})
	}
}

// Items that wait for a worker, or for a slot of a group, have not begun: after a
// failure they do not.
func TestAFailedItemLetsNoneOfThoseThatWaitBegin(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		flow    string
		workers int
	}{
		"for a worker": {forEach(`range(5)`), 1},
		"for a slot":   {"group \"g\" {\n max_parallel = 1\n" + forEach(`range(5)`) + plain("next") + "}\n", 8},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, "flow \"f\" {\n"+c.flow+"}\n")
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Workers: c.workers, Invoker: guests{"t": failingItems("1")}}, set)
				items := map[string]run.State{}
				for _, task := range r.run("f", `null`).Tasks {
					if task.Key != nil {
						items[*task.Key] = task.State
					} else if want := map[string]run.State{"t": run.Failed, "next": run.Succeeded}[task.Task]; task.State != want {
						t.Errorf("task %s is %s, want %s", task.Task, task.State, want)
					}
				}
				if diff := cmp.Diff(map[string]run.State{"0": run.Succeeded, "1": run.Failed}, items); diff != "" {
					t.Errorf("items differ (-want +got):\n%s", diff)
				}
				r.stop()
			})
		})
	}
}

// A fan-out that is canceled is canceled, also when its items may fail: what it
// gives is not what was asked for.
func TestACanceledFanOutIsNotForgiven(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n"+forEach(`range(3)`, `on_error = "continue"`)+"}\n")
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 8, Invoker: guests{"t": takes(time.Second)}}, set)
		id := r.submit("f", `null`)
		time.Sleep(500 * time.Millisecond)
		if err := r.CancelTask(t.Context(), id, run.TaskRef{Task: "t"}, "enough"); err != nil {
			t.Fatal(err)
		}
		if record := r.wait(id); record.State != run.Canceled || taskOf(t, record, "t").State != run.Canceled {
			t.Errorf("the run is %s, the task %s", record.State, taskOf(t, record, "t").State)
		}
		r.stop()
	})
}

// An item that fails by itself after its task was canceled is not attempted again.
func TestAnItemOfACanceledTaskIsNotAttemptedAgain(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n"+forEach(`[1]`, "retries = 3")+"}\n")
	synctest.Test(t, func(t *testing.T) {
		deaf := func(context.Context, run.Call) (run.Result, error) {
			time.Sleep(time.Second)
			return fails(run.OutcomeFailed, true), nil
		}
		r := boot(t, Config{Workers: 8, Invoker: guests{"t": deaf}}, set)
		id := r.submit("f", `null`)
		time.Sleep(500 * time.Millisecond)
		if err := r.CancelTask(t.Context(), id, run.TaskRef{Task: "t"}, "enough"); err != nil {
			t.Fatal(err)
		}
		for _, task := range r.wait(id).Tasks {
			if task.Key != nil && task.Attempts != 1 {
				t.Errorf("the item was attempted %d times", task.Attempts)
			}
		}
		r.stop()
	})
}

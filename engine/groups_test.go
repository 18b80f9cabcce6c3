package engine

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// endsAs is a guest that ends with a state after a while.
func endsAs(state run.State, after time.Duration) func(context.Context, run.Call) (run.Result, error) {
	return func(ctx context.Context, call run.Call) (run.Result, error) {
		r, err := takes(after)(ctx, call)
		if err != nil || r.Outcome != run.OutcomeSucceeded {
			return r, err
		}
		if state == run.Failed {
			return fails(run.OutcomeFailed, false), nil
		}
		return gives([]byte(fmt.Sprintf("%q", call.Task))), nil
	}
}

func plain(names ...string) string {
	text := ""
	for _, name := range names {
		text += fmt.Sprintf("  task %q { plugin = \"./m.wasm\" }\n", name)
	}
	return text
}

func TestGroups(t *testing.T) {
	t.Parallel()
	ok, bad := run.Succeeded, run.Failed
	for name, c := range map[string]struct {
		flow   string
		guests guests
		states map[string]run.State
		output string // of the flow
		took   time.Duration
	}{
		"parallel members run at once": {
			flow:   `group "g" { ` + "\n" + plain("a", "b") + "}\n",
			guests: guests{"a": endsAs(ok, 2*time.Second), "b": endsAs(ok, 3*time.Second)},
			states: map[string]run.State{"": ok, "a": ok, "b": ok},
			output: `{"g":{"a":"a","b":"b"}}`, took: 3 * time.Second,
		},
		"a failed member fails the group and not its siblings": {
			flow:   "group \"g\" {\n" + plain("a", "b") + "}\n task \"next\" {\n plugin = \"./m.wasm\"\n after = [group.g]\n}\n",
			guests: guests{"a": endsAs(bad, time.Second), "b": endsAs(ok, 3*time.Second)},
			states: map[string]run.State{"": bad, "a": bad, "b": ok, "next": run.Skipped},
			took:   3 * time.Second,
		},
		"serial members run one after the other": {
			flow:   "group \"g\" {\n mode = \"serial\"\n" + plain("a", "b", "c") + "}\n",
			guests: guests{"a": endsAs(ok, 2*time.Second), "b": endsAs(ok, 3*time.Second), "c": endsAs(ok, time.Second)},
			states: map[string]run.State{"": ok, "a": ok, "b": ok, "c": ok},
			output: `{"g":{"a":"a","b":"b","c":"c"}}`, took: 6 * time.Second,
		},
		"serial members do not follow a failed one": {
			flow:   "group \"g\" {\n mode = \"serial\"\n" + plain("a", "b", "c") + "}\n",
			guests: guests{"a": endsAs(ok, 2*time.Second), "b": endsAs(bad, 3*time.Second)},
			states: map[string]run.State{"": bad, "a": ok, "b": bad, "c": run.Skipped},
			took:   5 * time.Second,
		},
		"serial members follow a skipped one": {
			flow:   "group \"g\" {\n mode = \"serial\"\n task \"a\" {\n plugin = \"./m.wasm\"\n when = false\n}\n" + plain("b") + "}\n",
			guests: guests{"b": endsAs(ok, time.Second)},
			states: map[string]run.State{"": ok, "a": run.Skipped, "b": ok},
			output: `{"g":{"a":null,"b":"b"}}`, took: time.Second,
		},
		"a group that refers to the member before it is skipped with it": {
			flow: "group \"g\" {\n mode = \"serial\"\n task \"a\" {\n plugin = \"./m.wasm\"\n when = false\n}\n" +
				"group \"h\" {\n after = [task.a]\n" + plain("b") + "}\n}\n",
			guests: guests{},
			states: map[string]run.State{"": ok, "a": run.Skipped, "b": run.Skipped},
			output: `{"g":null}`,
		},
		"first_success ends with the first that succeeds": {
			flow:   "group \"g\" {\n mode = \"first_success\"\n" + plain("a", "b", "c") + "}\n output \"o\" {\n value = [group.g.output, group.g.state]\n}\n",
			guests: guests{"a": endsAs(bad, time.Second), "b": endsAs(ok, time.Second)},
			states: map[string]run.State{"": ok, "a": bad, "b": ok, "c": run.Skipped},
			output: `{"o":["b","succeeded"]}`, took: 2 * time.Second,
		},
		"first_success fails when all do": {
			flow:   "group \"g\" {\n mode = \"first_success\"\n" + plain("a", "b") + "}\n",
			guests: guests{"a": endsAs(bad, time.Second), "b": endsAs(bad, time.Second)},
			states: map[string]run.State{"": bad, "a": bad, "b": bad},
			took:   2 * time.Second,
		},
		"a race is over with the first success": {
			flow:   "group \"g\" {\n mode = \"race\"\n" + plain("a", "b", "c") + "}\n output \"o\" {\n value = group.g.output\n}\n",
			guests: guests{"a": endsAs(ok, 3*time.Second), "b": endsAs(ok, 2*time.Second), "c": endsAs(bad, time.Second)},
			states: map[string]run.State{"": ok, "a": run.Canceled, "b": ok, "c": bad},
			output: `{"o":"b"}`, took: 2 * time.Second,
		},
		"a race that nobody wins fails": {
			flow:   "group \"g\" {\n mode = \"race\"\n" + plain("a", "b") + "}\n",
			guests: guests{"a": endsAs(bad, 3*time.Second), "b": endsAs(bad, 2*time.Second)},
			states: map[string]run.State{"": bad, "a": bad, "b": bad},
			took:   3 * time.Second,
		},
		"groups within groups": {
			flow: "group \"g\" {\n mode = \"first_success\"\n group \"both\" {\n" + plain("a", "b") + "}\n group \"steps\" {\n mode = \"serial\"\n" + plain("c", "d") + "}\n}\n",
			guests: guests{
				"a": endsAs(ok, time.Second), "b": endsAs(bad, 2*time.Second),
				"c": endsAs(ok, time.Second), "d": endsAs(ok, time.Second),
			},
			states: map[string]run.State{"": ok, "a": ok, "b": bad, "c": ok, "d": ok},
			output: `{"g":{"c":"c","d":"d"}}`, took: 4 * time.Second,
		},
		"a race of groups cancels what the losers have not begun": {
			flow: "group \"g\" {\n mode = \"race\"\n" + plain("quick") + " group \"steps\" {\n mode = \"serial\"\n" + plain("c", "d") + "}\n}\n",
			guests: guests{
				"quick": endsAs(ok, 2*time.Second), "c": endsAs(ok, time.Second), "d": endsAs(ok, 9*time.Second),
			},
			states: map[string]run.State{"": ok, "quick": ok, "c": ok, "d": run.Canceled},
			output: `{"g":"quick"}`, took: 2 * time.Second,
		},
		"a group whose condition is false skips its members": {
			flow:   "group \"g\" {\n when = false\n" + plain("a") + " group \"h\" {\n" + plain("b") + "}\n}\n task \"next\" {\n plugin = \"./m.wasm\"\n after = [group.g]\n}\n",
			guests: guests{},
			states: map[string]run.State{"": ok, "a": run.Skipped, "b": run.Skipped, "next": run.Skipped},
			output: `{"next":null}`,
		},
		"a group after something that failed does not begin": {
			flow:   plain("first") + "group \"g\" {\n after = [task.first]\n" + plain("a") + "}\n",
			guests: guests{"first": endsAs(bad, time.Second)},
			states: map[string]run.State{"": bad, "first": bad, "a": run.Skipped},
			took:   time.Second,
		},
		"a fallback waits for what the others need": {
			flow:   plain("first") + "group \"g\" {\n mode = \"race\"\n task \"a\" {\n plugin = \"./m.wasm\"\n input = task.first.output\n}\n" + plain("b") + "}\n",
			guests: guests{"first": endsAs(ok, 5*time.Second), "a": endsAs(ok, 2*time.Second), "b": endsAs(ok, time.Second)},
			states: map[string]run.State{"": ok, "first": ok, "a": run.Canceled, "b": ok},
			output: `{"g":"b"}`, took: 6 * time.Second,
		},
		"max_parallel bounds the tasks at once": {
			flow:   "group \"g\" {\n max_parallel = 2\n" + plain("a", "b", "c", "d", "e") + "}\n",
			guests: guests{"a": endsAs(ok, time.Second), "b": endsAs(ok, time.Second), "c": endsAs(ok, time.Second), "d": endsAs(ok, time.Second), "e": endsAs(ok, time.Second)},
			states: map[string]run.State{"": ok, "a": ok, "b": ok, "c": ok, "d": ok, "e": ok},
			output: `{"g":{"a":"a","b":"b","c":"c","d":"d","e":"e"}}`, took: 3 * time.Second,
		},
		"what is outside may refer to a member": {
			flow:   "group \"g\" {\n mode = \"race\"\n" + plain("a", "b") + "}\n task \"next\" {\n plugin = \"./m.wasm\"\n input = coalesce(task.a.output, task.b.output)\n}\n",
			guests: guests{"a": endsAs(ok, time.Second), "b": endsAs(ok, 2*time.Second)},
			states: map[string]run.State{"": ok, "a": ok, "b": run.Canceled, "next": ok},
			output: `{"g":"a","next":"a"}`, took: time.Second,
		},
		"a wait is a member": {
			flow:   "group \"g\" {\n mode = \"serial\"\n" + plain("a") + "wait \"pause\" {\n duration = \"5s\"\n}\n" + plain("b") + "}\n",
			guests: guests{"a": endsAs(ok, time.Second), "b": endsAs(ok, time.Second)},
			states: map[string]run.State{"": ok, "a": ok, "wait.pause": ok, "b": ok},
			output: `{"g":{"a":"a","pause":null,"b":"b"}}`, took: 7 * time.Second,
		},
		"a wait may lose a race": {
			flow:   "group \"g\" {\n mode = \"race\"\n" + plain("a") + "wait \"answer\" {\n signal = true\n}\n}\n",
			guests: guests{"a": endsAs(ok, time.Second)},
			states: map[string]run.State{"": ok, "a": ok, "wait.answer": run.Canceled},
			output: `{"g":"a"}`, took: time.Second,
		},
		"the losers' tasks that come after others do not begin": {
			flow: "group \"g\" {\n mode = \"race\"\n" + plain("quick") + " group \"steps\" {\n mode = \"serial\"\n" + plain("c", "d") + " group \"more\" {\n" + plain("e") + "}\n}\n}\n",
			guests: guests{
				"quick": endsAs(ok, 2*time.Second), "c": endsAs(ok, 5*time.Second), "d": endsAs(ok, 9*time.Second), "e": endsAs(ok, 9*time.Second),
			},
			states: map[string]run.State{"": ok, "quick": ok, "c": run.Canceled, "d": run.Canceled, "e": run.Canceled},
			output: `{"g":"quick"}`, took: 2 * time.Second,
		},
		"on_error continue is forgiven": {
			flow:   "group \"g\" {\n mode = \"serial\"\n task \"a\" {\n plugin = \"./m.wasm\"\n on_error = \"continue\"\n}\n" + plain("b") + "}\n",
			guests: guests{"a": endsAs(bad, time.Second), "b": endsAs(ok, time.Second)},
			states: map[string]run.State{"": ok, "a": bad, "b": ok},
			output: `{"g":{"a":null,"b":"b"}}`, took: 2 * time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, "flow \"f\" {\n"+c.flow+"}\n")
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Workers: 8, Invoker: c.guests}, set)
				record := r.run("f", `null`)
				wantStates(t, record, c.states)
				if got := string(record.Output); got != c.output {
					t.Errorf("output %s, want %s", got, c.output)
				}
				if took := record.FinishedAt.Sub(*record.StartedAt); took != c.took {
					t.Errorf("it took %s, want %s", took, c.took)
				}
				r.stop()
			})
		})
	}
}

// A group continues after a member has failed. That member may still be what failed
// first in the run, or in the group around.
func TestTheFirstFailureIsThatOfATask(t *testing.T) {
	t.Parallel()
	group := "group \"g\" {\n" + plain("a", "b") + "}\n"
	unmet := "group \"g\" {\n when = trigger.payload.missing\n" + plain("a") + "}\n"
	for name, c := range map[string]struct{ flow, first string }{
		"in the run":    {group + plain("c"), "a"},
		"in the group":  {"group \"around\" {\n" + plain("c") + group + "}\n", "a"},
		"a group's own": {"group \"around\" {\n" + unmet + plain("b") + "}\n" + plain("c"), "group.g"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, "flow \"f\" {\n"+c.flow+"}\n")
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Workers: 8, Invoker: guests{
					"a": endsAs(run.Failed, time.Second), "b": endsAs(run.Succeeded, 9*time.Second), "c": endsAs(run.Failed, 5*time.Second),
				}}, set)
				if record := r.run("f", `{}`); record.Error == nil || record.Error.Task != c.first {
					t.Errorf("the error is %+v, and %s failed first", record.Error, c.first)
				}
				r.stop()
			})
		})
	}
}

// What had begun before a crash keeps its slot of the group, whichever is looked
// at first afterwards.
func TestSlotsAreKeptOverACrash(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n group \"g\" {\n max_parallel = 1\n task \"later\" {\n plugin = \"./m.wasm\"\n after = [task.before]\n}\n"+
		forEach("range(2)")+"}\n"+plain("before")+"}\n")
	synctest.Test(t, func(t *testing.T) {
		count := &gauge{}
		config := Config{Journal: memory.NewJournal(), Workers: 8, Invoker: guests{
			"before": takes(500 * time.Millisecond), "t": count.around(takes(9 * time.Second)), "later": count.around(takes(time.Second)),
		}}
		r := boot(t, config, set)
		id := r.submit("f", `null`)
		time.Sleep(time.Second)
		r.crash()
		r = boot(t, config, set)
		if record := r.wait(id); record.State != run.Succeeded || count.most != 1 {
			t.Errorf("the run is %s, and %d tasks of the group were under way at once", record.State, count.most)
		}
		r.stop()
	})
}

// A group that had begun in a race before a crash ends by its members, as it would
// have without: that another member was faster meanwhile keeps no group from
// beginning that has begun.
func TestAGroupThatHadBegunIsNotDecidedAgain(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n group \"g\" {\n mode = \"race\"\n group \"slow\" {\n"+plain("a", "b")+"}\n"+plain("fast")+"}\n"+plain("other")+
		"task \"next\" {\n plugin = \"./m.wasm\"\n after = [task.other]\n input = group.slow.state\n}\n}\n")
	for name, crashes := range map[string]bool{"without a crash": false, "over a crash": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				config := Config{Journal: memory.NewJournal(), Workers: 8, Invoker: guests{
					"a": endsAs(run.Succeeded, time.Second), "b": takes(time.Minute), "fast": endsAs(run.Succeeded, 2*time.Second), "other": takes(10 * time.Second),
				}}
				r := boot(t, config, set)
				id := r.submit("f", `null`)
				time.Sleep(5 * time.Second)
				if crashes {
					r.crash()
					r = boot(t, config, set)
				}
				record := r.wait(id)
				wantStates(t, record, map[string]run.State{
					"": run.Succeeded, "a": run.Succeeded, "b": run.Canceled, "fast": run.Succeeded, "other": run.Succeeded, "next": run.Succeeded,
				})
				if slow := string(taskOf(t, record, "next").Output); slow != `"succeeded"` {
					t.Errorf("the group is %s", slow)
				}
				r.stop()
			})
		})
	}
}

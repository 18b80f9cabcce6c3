package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

// Of a group that one success is enough for, what has failed is not run again if
// there was one, and otherwise it is.
func TestRetryOfGroups(t *testing.T) {
	t.Parallel()
	task := func(name string, more ...string) string {
		return fmt.Sprintf("task %q {\n plugin = \"./m.wasm\"\n%s\n}\n", name, strings.Join(more, ""))
	}
	group := func(name, mode, members string) string {
		return fmt.Sprintf("group %q {\n mode = %q\n%s}\n", name, mode, members)
	}
	for name, c := range map[string]struct {
		members string
		fails   []string
		calls   map[string]int
	}{
		"a fallback that was enough": {
			members: group("g", "first_success", task("a")+task("b")), fails: []string{"a", "last"},
			calls: map[string]int{"last": 1},
		},
		"a member of which a part only succeeded": {
			members: group("g", "first_success", group("s", "serial", task("a")+task("b"))+task("c")), fails: []string{"b", "c"},
			calls: map[string]int{"b": 1, "last": 1},
		},
		"a member that succeeded as a whole": {
			members: group("g", "first_success", task("c")+group("s", "parallel", task("a")+task("b"))), fails: []string{"c", "last"},
			calls: map[string]int{"last": 1},
		},
		"a fallback for a fan-out": {
			members: group("g", "first_success", task("a", "for_each = range(2)")+task("b", "run_on = \"failure\"\n after = [task.a]")), fails: []string{"a[0]", "last"},
			calls: map[string]int{"last": 1},
		},
		"a group within one that was not enough": {
			members: group("g", "serial", group("s", "first_success", task("a")+task("b"))+task("c")), fails: []string{"a", "c"},
			calls: map[string]int{"c": 1, "last": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, "flow \"f\" {\n"+c.members+"task \"last\" {\n plugin = \"./m.wasm\"\n input = group.g.output\n}\n}\n")
			synctest.Test(t, func(t *testing.T) {
				host := &callCounter{calls: map[string]int{}, fails: map[string]bool{}}
				for _, name := range c.fails {
					host.fails[name] = true
				}
				r := boot(t, Config{Invoker: host}, set)
				old := r.run("f", `{}`)
				host.calls, host.fails = map[string]int{}, nil
				record := r.wait(r.retried(old.Run, false))
				if diff := cmp.Diff(c.calls, host.calls); diff != "" || old.State != run.Failed || record.State != run.Succeeded {
					t.Errorf("it was %s and is %s (%v); other tasks were run (-want +got):\n%s", old.State, record.State, record.Error, diff)
				}
				r.stop()
			})
		})
	}
}

// A group that something was taken over of ends as it did, although another member of
// the group around it was enough.
func TestRetryLeavesGroupsAsTheyEnded(t *testing.T) {
	t.Parallel()
	task := func(name, more string) string {
		return fmt.Sprintf("task %q {\n plugin = \"./m.wasm\"\n%s\n}\n", name, more)
	}
	for name, c := range map[string]struct {
		members string
		last    string
		group   string
		calls   map[string]int
	}{
		"one that lost a race": {
			members: task("won", "") + "group \"g\" {\n" + task("quick", "") + task("slow", "") + "}\n",
			group:   "race", last: "after = [group.g]", calls: map[string]int{"last": 1},
		},
		"one within one that lost a race": {
			members: task("won", "") + "group \"o\" {\n group \"g\" {\n" + task("quick", "") + task("slow", "") + "}\n}\n",
			group:   "race", last: "after = [group.g]", calls: map[string]int{"last": 1},
		},
		"one that lost a race and stands first": {
			members: "group \"g\" {\n" + task("quick", "") + task("slow", "") + "}\n" + task("won", ""),
			group:   "race", last: "after = [group.g]", calls: map[string]int{"last": 1, "out": 1},
		},
		"one that failed before another one succeeded": {
			members: "group \"g\" {\n" + task("quick", "") + task("fails", "") + "}\n" + task("won", ""),
			group:   "first_success", last: "after = [group.g]\n run_on = \"failure\"", calls: map[string]int{"last": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set := load(t, "flow \"f\" {\n group \"around\" {\n mode = \""+c.group+"\"\n"+c.members+"}\n"+task("last", c.last)+task("out", "input = group.around.output")+"}\n")
			synctest.Test(t, func(t *testing.T) {
				host := &racers{callCounter{calls: map[string]int{}, fails: map[string]bool{"last": true, "fails": true, "out": c.calls["out"] > 0}}}
				r := boot(t, Config{Invoker: host, Workers: 3}, set)
				old := r.run("f", `null`)
				host.calls, host.fails = map[string]int{}, nil
				record := r.wait(r.retried(old.Run, false))
				if diff := cmp.Diff(c.calls, host.calls); diff != "" || old.State != run.Failed || record.State != run.Succeeded {
					t.Errorf("it was %s and is %s (%v); other tasks were run (-want +got):\n%s", old.State, record.State, record.Error, diff)
				}
				for _, given := range []json.RawMessage{taskOf(t, old, "out").Input, taskOf(t, record, "out").Input} {
					if given != nil && string(given) != "null" {
						t.Errorf("the group around gives %s, not what the member that won gave", given)
					}
				}
				r.stop()
			})
		})
	}
}

// racers end at once, in a second, or in an hour.
type racers struct{ callCounter }

func (r *racers) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	select {
	case <-time.After(map[string]time.Duration{"won": time.Second, "slow": time.Hour}[call.Task]):
		return r.callCounter.Invoke(ctx, call)
	case <-ctx.Done():
		return fails(run.OutcomeCanceled, false), nil
	}
}

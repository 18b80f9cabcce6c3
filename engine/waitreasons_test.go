package engine

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// waitReasonsOf gives what the open runs and their task runs wait for: "0" is the oldest
// run, "0 a" its task a. Runs in reasons are "#0" and so on.
func (r *rig) waitReasonsOf() map[string]run.WaitsFor {
	r.t.Helper()
	var ids []run.ID
	r.onLoop(func() {
		for id := range r.exec.open {
			ids = append(ids, id)
		}
	})
	slices.Sort(ids)
	all := map[string]run.WaitsFor{}
	note := func(name string, why *run.WaitsFor) {
		if why == nil {
			return
		}
		known := *why
		if i := slices.Index(ids, known.Run); i >= 0 {
			known.Run = run.ID(fmt.Sprint("#", i))
		}
		all[name] = known
	}
	for i, id := range ids {
		record := r.get(id)
		note(fmt.Sprint(i), record.WaitsFor)
		for _, t := range record.Tasks {
			note(fmt.Sprint(i, " ", t.Ref().Label()), t.WaitsFor)
		}
	}
	return all
}

// forever works until it is stopped.
var forever = takes(1000 * time.Hour)

// reasonCase is a state of an engine that is at rest, and the reasons that it shows.
type reasonCase struct {
	name   string
	flows  string
	config Config
	calls  func(context.Context, run.Call) (run.Result, error) // forever by default
	submit []string                                            // flows, one after the other
	after  time.Duration
	act    func(*rig) // before the reasons are asked for
	want   map[string]run.WaitsFor
	again  map[string]run.WaitsFor // after a restart; nil for the same
}

func taskWith(name, arguments string) string {
	return fmt.Sprintf("task %q {\n plugin = \"./m.wasm\"\n %s\n}\n", name, arguments)
}

func flowOf(name string, parts ...string) string {
	return fmt.Sprintf("flow %q {\n%s}\n", name, strings.Join(parts, ""))
}

func reasonCases() []reasonCase {
	worker := run.WaitsFor{Reason: run.WaitWorker, InUse: 1, Max: 1}
	return []reasonCase{
		{
			name:   "upstream",
			flows:  flowOf("f", plain("a", "b", "c", "d"), taskWith("e", "after = [task.a, task.b, task.c, task.d]"), taskWith("g", "after = [task.e]")),
			submit: []string{"f"},
			want: map[string]run.WaitsFor{
				"0 e": {Reason: run.WaitUpstream, Tasks: []string{"a", "b", "c"}, More: 1},
				"0 g": {Reason: run.WaitUpstream, Tasks: []string{"e"}},
			},
		},
		{
			name: "upstream of and after groups",
			flows: flowOf("f", plain("a"), "wait \"w\" {\n after = [task.a]\n signal = true\n}\n",
				"group \"g\" {\n after = [wait.w]\n", plain("b"), taskWith("c", "after = [task.b]"), "}\n", taskWith("d", "after = [group.g]")),
			submit: []string{"f"},
			want: map[string]run.WaitsFor{
				"0 wait.w": {Reason: run.WaitUpstream, Tasks: []string{"a"}},
				"0 b":      {Reason: run.WaitUpstream, Tasks: []string{"wait.w"}},
				"0 c":      {Reason: run.WaitUpstream, Tasks: []string{"b", "wait.w"}},
				"0 d":      {Reason: run.WaitUpstream, Tasks: []string{"group.g"}},
			},
		},
		{
			name:   "worker",
			flows:  flowOf("f", plain("a", "b")),
			config: Config{Workers: 1},
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 b": worker},
			again:  map[string]run.WaitsFor{"0 a": worker}, // b was queued when a was found to be lost
		},
		{
			name:   "paused",
			flows:  flowOf("f", plain("a")),
			config: Config{Workers: -1},
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 a": {Reason: run.WaitPaused}},
		},
		{
			name:   "limit",
			flows:  "limit \"db\" {\n concurrency = 2\n}\n" + flowOf("f", taskWith("a", "limit = limit.db")),
			submit: []string{"f", "f", "f"},
			want:   map[string]run.WaitsFor{"2 a": {Reason: run.WaitLimit, Limit: "db", InUse: 2, Max: 2}},
			again: map[string]run.WaitsFor{ // the last one was queued when the others were found to be lost
				"1 a": {Reason: run.WaitLimit, Limit: "db", InUse: 2, Max: 2},
			},
		},
		{
			name:   "rate",
			flows:  "limit \"api\" {\n rate = \"1/h\"\n}\n" + flowOf("f", taskWith("a", "limit = limit.api")),
			submit: []string{"f", "f"},
			want:   map[string]run.WaitsFor{"1 a": {Reason: run.WaitRate, Limit: "api", Rate: "1/h", Next: epoch.Add(time.Hour)}},
			again: map[string]run.WaitsFor{ // the lost attempt counts
				"0 a": {Reason: run.WaitRate, Limit: "api", Rate: "1/h", Next: epoch.Add(time.Hour)},
				"1 a": {Reason: run.WaitRate, Limit: "api", Rate: "1/h", Next: epoch.Add(time.Hour)},
			},
		},
		{
			name:   "memory",
			flows:  flowOf("f", plain("a"), taskWith("b", "")),
			calls:  waits(run.WaitMemory, time.Hour, forever),
			config: Config{Workers: 1},
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 a": {Reason: run.WaitMemory}, "0 b": {Reason: run.WaitMemory}},
		},
		{
			name:   "module",
			flows:  flowOf("f", plain("a")),
			calls:  waits(run.WaitModule, time.Hour, forever),
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 a": {Reason: run.WaitModule}},
		},
		{
			name:   "sleep, and too many in flight",
			flows:  flowOf("f", plain("a", "b")),
			calls:  waits(run.WaitSleep, time.Hour, forever),
			config: Config{Workers: 1, InFlight: 1},
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 a": {Reason: run.WaitSleep}, "0 b": {Reason: run.WaitInFlight, InUse: 1, Max: 1}},
			again:  map[string]run.WaitsFor{"0 b": {Reason: run.WaitSleep}, "0 a": {Reason: run.WaitInFlight, InUse: 1, Max: 1}},
		},
		{
			name:  "a worker again",
			flows: flowOf("f", plain("a", "b")),
			calls: func(ctx context.Context, c run.Call) (run.Result, error) {
				if c.Task == "a" {
					return waits(run.WaitSleep, time.Minute, forever)(ctx, c)
				}
				return forever(ctx, c)
			},
			config: Config{Workers: 1},
			submit: []string{"f"},
			after:  time.Minute,
			want:   map[string]run.WaitsFor{"0 a": worker},
		},
		{
			name:   "retry",
			flows:  flowOf("f", taskWith("a", "retry {\n attempts = 2\n delay = \"1h\"\n}")),
			calls:  func(context.Context, run.Call) (run.Result, error) { return fails(run.OutcomeFailed, true), nil },
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 a": {Reason: run.WaitRetry}},
		},
		{
			name:   "group",
			flows:  flowOf("f", "group \"g\" {\n max_parallel = 1\n", plain("a", "b"), "}\n"),
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 b": {Reason: run.WaitGroup, Group: "g", InUse: 1, Max: 1}},
		},
		{
			name:   "items in a group",
			flows:  flowOf("f", "group \"g\" {\n max_parallel = 2\n", taskWith("a", "for_each = range(5)"), "}\n"),
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 a": {Reason: run.WaitGroup, Group: "g", InUse: 2, Max: 2}},
		},
		{
			name: "items with slots of a group",
			flows: "limit \"db\" {\n concurrency = 1\n}\n" +
				flowOf("f", "group \"g\" {\n max_parallel = 2\n", taskWith("a", "for_each = range(5)\n limit = limit.db"), "}\n"),
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 a": {Reason: run.WaitLimit, Limit: "db", InUse: 1, Max: 1}},
			again: map[string]run.WaitsFor{
				"0 a":    {Reason: run.WaitGroup, Group: "g", InUse: 2, Max: 2}, // the item that was lost is queued, and holds a slot
				"0 a[0]": {Reason: run.WaitLimit, Limit: "db", InUse: 1, Max: 1},
			},
		},
		{
			name:   "max_parallel",
			flows:  flowOf("f", taskWith("a", "for_each = range(5)\n max_parallel = 2")),
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 a": {Reason: run.WaitMaxParallel, InUse: 2, Max: 2}},
		},
		{
			name:   "items for workers",
			flows:  flowOf("f", taskWith("a", "for_each = range(5)")),
			config: Config{Workers: 2},
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 a": {Reason: run.WaitWorker, InUse: 2, Max: 2}},
			again: map[string]run.WaitsFor{ // those that were lost come after those that were queued
				"0 a":    {Reason: run.WaitWorker, InUse: 2, Max: 2},
				"0 a[0]": {Reason: run.WaitWorker, InUse: 2, Max: 2},
				"0 a[1]": {Reason: run.WaitWorker, InUse: 2, Max: 2},
			},
		},
		{
			name:  "the same task of an earlier run",
			flows: flowOf("f", "trigger \"schedule\" \"s\" {\n every = \"10s\"\n overlap = \"node\"\n count = 2\n}\n", plain("a")),
			after: 30 * time.Second,
			want:  map[string]run.WaitsFor{"1 a": {Reason: run.WaitEarlierRun, Run: "#0"}},
		},
		{
			name:  "earlier runs",
			flows: flowOf("f", "trigger \"schedule\" \"s\" {\n every = \"10s\"\n overlap = \"queue\"\n count = 3\n}\n", plain("a")),
			after: 30 * time.Second,
			want: map[string]run.WaitsFor{
				"1": {Reason: run.WaitEarlierRun, Run: "#0", Position: 1},
				"2": {Reason: run.WaitEarlierRun, Run: "#0", Position: 2},
			},
		},
		{
			name:   "concurrency",
			flows:  flowOf("f", "concurrency {\n limit = 1\n key = \"eu\"\n}\n", plain("a")),
			submit: []string{"f", "f", "f"},
			want: map[string]run.WaitsFor{
				"1": {Reason: run.WaitConcurrency, Key: "eu", InUse: 1, Max: 1, Position: 1},
				"2": {Reason: run.WaitConcurrency, Key: "eu", InUse: 1, Max: 1, Position: 2, Run: "#1"},
			},
		},
		{
			name:   "concurrency, behind a run that was canceled",
			flows:  flowOf("f", "concurrency {\n limit = 1\n}\n", plain("a")),
			submit: []string{"f", "f", "f"},
			act: func(r *rig) {
				var ids []run.ID
				r.onLoop(func() {
					for id := range r.exec.open {
						ids = append(ids, id)
					}
				})
				slices.Sort(ids)
				if err := r.Cancel(context.Background(), ids[1], "enough"); err != nil {
					r.t.Error(err)
				}
			},
			want: map[string]run.WaitsFor{"1": {Reason: run.WaitConcurrency, InUse: 1, Max: 1, Position: 1}},
		},
		{
			name:  "a sub-flow",
			flows: flowOf("f", plain("m"), "task \"a\" {\n flow = \"g\"\n after = [task.m]\n}\n") + flowOf("g", "concurrency {\n limit = 1\n}\n", plain("b")),
			calls: func(ctx context.Context, c run.Call) (run.Result, error) {
				if c.Task == "m" {
					return takes(time.Second)(ctx, c) // the id of the run follows that of its parent
				}
				return forever(ctx, c)
			},
			after:  time.Minute,
			submit: []string{"g", "f"},
			want:   map[string]run.WaitsFor{"2": {Reason: run.WaitConcurrency, InUse: 1, Max: 1, Position: 1}},
		},
		{
			name:  "a task of a hook",
			flows: "limit \"db\" {\n concurrency = 1\n}\n" + flowOf("f", "finally {\n", taskWith("a", "limit = limit.db"), taskWith("b", "limit = limit.db"), "}\n", taskWith("m", "")),
			calls: func(ctx context.Context, c run.Call) (run.Result, error) {
				if c.Task == "m" {
					return gives(nil), nil
				}
				return forever(ctx, c)
			},
			submit: []string{"f"},
			want:   map[string]run.WaitsFor{"0 b": {Reason: run.WaitLimit, Limit: "db", InUse: 1, Max: 1}},
			again:  map[string]run.WaitsFor{"0 a": {Reason: run.WaitLimit, Limit: "db", InUse: 1, Max: 1}},
		},
	}
}

func TestWaitReasons(t *testing.T) {
	t.Parallel()
	for _, c := range reasonCases() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			set := load(t, c.flows)
			synctest.Test(t, func(t *testing.T) {
				c.config.Journal, c.config.Invoker = memory.NewJournal(), invokerFunc(forever)
				c.config.Timeout = 10000 * time.Hour
				if c.calls != nil {
					c.config.Invoker = invokerFunc(c.calls)
				}
				r := boot(t, c.config, set)
				for _, flow := range c.submit {
					r.submit(flow, `null`)
					time.Sleep(time.Millisecond) // ids of one instant have no order
				}
				time.Sleep(c.after)
				if c.act != nil {
					c.act(r)
				}
				synctest.Wait()
				if diff := cmp.Diff(c.want, r.waitReasonsOf()); diff != "" {
					t.Errorf("reasons differ (-want +got):\n%s", diff)
				}
				r.crash()
				r = boot(t, c.config, set)
				time.Sleep(c.after)
				synctest.Wait()
				want := c.again
				if want == nil {
					want = c.want
				}
				if diff := cmp.Diff(want, r.waitReasonsOf()); diff != "" {
					t.Errorf("reasons differ after a restart (-want +got):\n%s", diff)
				}
				r.crash()
			})
		})
	}
}

// Without a bound of its own, a fan-out begins twice as many items as may be in flight.
func TestWaitReasonOfItemsBeyondThoseThatBegin(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n task \"a\" {\n flow = \"g\"\n for_each = range(5)\n}\n}\nflow \"g\" {\n"+plain("b")+"}\n")
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{InFlight: 1, Invoker: invokerFunc(forever)}, set)
		record := r.get(r.submit("f", `null`))
		want := &run.WaitsFor{Reason: run.WaitInFlight, InUse: 2, Max: 2}
		if diff := cmp.Diff(want, taskOf(t, &run.Record{Tasks: record.Tasks[:1]}, "a").WaitsFor); diff != "" {
			t.Errorf("reason differs (-want +got):\n%s", diff)
		}
		r.crash()
	})
}

// A list has the reasons of pending runs, and a run that is done has none.
func TestWaitReasonsInLists(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n concurrency {\n limit = 1\n}\n"+plain("a")+"}\n")
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: invokerFunc(takes(time.Minute))}, set)
		first := r.submit("f", `null`)
		synctest.Wait()
		second := r.submit("f", `null`)
		of := func() map[run.ID]*run.WaitsFor {
			all := map[run.ID]*run.WaitsFor{}
			for _, s := range r.pages(run.Query{}, func() {}) {
				all[s.Run] = s.WaitsFor
			}
			return all
		}
		if diff := cmp.Diff(map[run.ID]*run.WaitsFor{first: nil, second: {Reason: run.WaitConcurrency, InUse: 1, Max: 1}}, of()); diff != "" {
			t.Errorf("reasons of a list (-want +got):\n%s", diff)
		}
		r.wait(first)
		record := r.wait(second)
		if diff := cmp.Diff(map[run.ID]*run.WaitsFor{first: nil, second: nil}, of()); diff != "" || record.WaitsFor != nil || record.Tasks[0].WaitsFor != nil {
			t.Errorf("reasons of runs that are done: %+v\n%s", record, diff)
		}
		r.stop()
	})
}

// While the host stops, nothing starts, whatever has room.
func TestWaitReasonsWhileTheHostStops(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n concurrency {\n limit = 1\n}\n"+plain("a", "b")+taskWith("c", "after = [task.a]")+"}\n")
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": takes(time.Second), "b": takes(time.Minute)}}, set)
		running := r.submit("f", `null`)
		synctest.Wait()
		pending := r.submit("f", `null`)
		r.Drain()
		time.Sleep(30 * time.Second)
		stopping := &run.WaitsFor{Reason: run.WaitStopping}
		if diff := cmp.Diff(stopping, taskOf(t, r.get(running), "c").WaitsFor); diff != "" {
			t.Errorf("the task that is ready (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(stopping, r.get(pending).WaitsFor); diff != "" {
			t.Errorf("the pending run (-want +got):\n%s", diff)
		}
		r.stop()
	})
}

// reasonsAgree compares the reasons in the record of an open run with the queues in which
// its tasks really are.
func reasonsAgree(e *executor, o *openRun) error {
	record := o.run.Record(o.shownTasks())
	explainWaits(e, o, record)
	if o.run.State == run.Pending || o.busy() || e.draining { // a host that stops takes what has not begun out of all queues
		return nil
	}
	in := map[run.TaskRef]run.WaitReason{} // the tasks of the run that are in a queue
	unbegun := map[string]int{}            // items of fan-outs of these that have no state
	note := func(t task, reason run.WaitReason) {
		if t.openRun == o {
			in[t.ref()] = reason
			if t.item != nil && t.state() == nil {
				unbegun[t.spec.Name]++
			}
		}
	}
	e.runnable.Withdraw(func(t task) bool { note(t, run.WaitWorker); return false })
	for _, t := range e.children.starts {
		note(t, "")
	}
	for _, s := range o.phase.groupLimiters {
		for _, t := range s.waiting {
			note(t, run.WaitGroup)
		}
	}
	for _, earlier := range e.open {
		for _, t := range earlier.waiters {
			note(t, run.WaitEarlierRun)
		}
	}
	for ref := range o.retries {
		in[ref] = run.WaitRetry
	}
	for _, t := range record.Tasks {
		spec, got := o.flow.Task(t.Task), run.WaitReason("")
		if t.WaitsFor != nil {
			got = t.WaitsFor.Reason
		}
		if !o.phase.holds(spec) || t.State.Done() {
			if got != "" {
				return fmt.Errorf("task %s is %s, and waits for %+v", t.Ref().Label(), t.State, t.WaitsFor)
			}
			continue
		}
		leaf := o.leaf(spec.Node)
		if f := leaf.fan(); f != nil && t.Key == nil {
			if n := len(f.active) - leaf.state().Open(); n != unbegun[t.Task] {
				return fmt.Errorf("%d items of task %s are queued, and %d are counted", unbegun[t.Task], t.Task, n)
			}
			continue
		}
		want, queued := in[t.Ref()]
		switch {
		case want == run.WaitWorker:
			if !cmp.Equal((&waitReasons{exec: e, open: o}).admission(leaf), t.WaitsFor) {
				return fmt.Errorf("task %s is ready, and waits for %+v", t.Ref().Label(), t.WaitsFor)
			}
		case queued && got != want:
			return fmt.Errorf("task %s waits for %q, and is said to wait for %q", t.Ref().Label(), want, got)
		case !queued && t.State == run.Waiting && got != run.WaitUpstream && leaf.stopped() == nil:
			return fmt.Errorf("task %s is in no queue, and is said to wait for %q", t.Ref().Label(), got)
		}
	}
	return nil
}

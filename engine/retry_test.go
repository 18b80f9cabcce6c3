package engine

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
)

// A chain whose middle breaks, with a branch that does not.
const brokenHCL = `
flow "f" {
  param "x" {
    type    = number
    default = 5
  }
  task "a" {
    plugin = "./m.wasm"
    input  = { payload = trigger.payload, x = param.x }
  }
  task "b" {
    plugin = "./m.wasm"
    input  = task.a.output
  }
  task "c" {
    plugin = "./m.wasm"
    input  = { a = task.a.output, b = task.b.output }
  }
  task "side" {
    plugin = "./m.wasm"
    input  = "side"
  }
  output "all" {
    value = [task.c.output, task.side.output]
  }
}`

// mended is an invoker whose task b fails until it is mended. It counts calls.
type mended struct {
	mu    sync.Mutex
	well  bool
	calls map[string]int
	input map[string]string // of the last call
}

func (m *mended) Invoke(_ context.Context, c run.Call) (run.Result, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.calls == nil {
		m.calls, m.input = map[string]int{}, map[string]string{}
	}
	m.calls[c.Task]++
	m.input[c.Task] = string(c.Input)
	if c.Task == "b" && !m.well {
		return fails(run.OutcomeFailed, false), nil
	}
	return gives(c.Input), nil
}

// mend lets b succeed from now on, and forgets the calls so far.
func (m *mended) mend() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.well, m.calls = true, nil
}

func (m *mended) made() map[string]int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.calls
}

func (r *rig) retried(id run.ID, whole bool) run.ID {
	r.t.Helper()
	receipt, err := r.Retry(context.Background(), id, run.RerunOptions{Whole: whole})
	if err != nil || !receipt.Accepted || receipt.Repeated || receipt.Run == id {
		r.t.Fatalf("retry of %s: %+v, %v", id, receipt, err)
	}
	return receipt.Run
}

func TestRetryContinuesWhereTheRunFailed(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		host := &mended{}
		r := boot(t, Config{Invoker: host}, set)
		old := r.run("f", `{"p":1,"x":7}`)
		wantStates(t, old, map[string]run.State{"": run.Failed, "a": run.Succeeded, "b": run.Failed, "c": run.Skipped, "side": run.Succeeded})
		time.Sleep(time.Hour)
		host.mend()
		record := r.wait(r.retried(old.Run, false))

		wantStates(t, record, map[string]run.State{"": run.Succeeded, "a": run.Succeeded, "b": run.Succeeded, "c": run.Succeeded, "side": run.Succeeded})
		if diff := cmp.Diff(map[string]int{"b": 1, "c": 1}, host.made()); diff != "" {
			t.Errorf("other tasks were run (-want +got):\n%s", diff)
		}
		if got := host.input["b"]; got != `{"payload":{"p":1,"x":7},"x":7}` {
			t.Errorf("b is given %s", got)
		}
		if got := string(record.Output); got != `{"all":[{"a":{"payload":{"p":1,"x":7},"x":7},"b":{"payload":{"p":1,"x":7},"x":7}},"side"]}` {
			t.Errorf("the run gives %s", got)
		}
		if record.RetryOf != old.Run || old.RetryOf != "" {
			t.Errorf("retry_of is %q, and %q of the first run", record.RetryOf, old.RetryOf)
		}
		for _, task := range record.Tasks {
			if reused := task.Task == "a" || task.Task == "side"; task.Reused != reused || reused && task.Attempts != 0 {
				t.Errorf("task %s: reused is %t after %d attempts", task.Task, task.Reused, task.Attempts)
			}
		}
		if a, was := taskOf(t, record, "a"), taskOf(t, old, "a"); string(a.Output) != string(was.Output) || *a.Outcome != run.OutcomeSucceeded {
			t.Errorf("the task taken over is %+v", a)
		}
		if diff := cmp.Diff(old.Trigger, record.Trigger); diff != "" || record.CreatedAt.Sub(old.CreatedAt) < time.Hour {
			t.Errorf("the trigger is another one:\n%s", diff)
		}
		r.stop()
	})
}

func TestRetryAsAWholeRunsEverything(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		host := &mended{}
		r := boot(t, Config{Invoker: host}, set)
		old := r.run("f", `null`)
		host.mend()
		for range 2 { // a run that succeeded may be run again as a whole
			record := r.wait(r.retried(old.Run, true))
			if diff := cmp.Diff(map[string]int{"a": 1, "b": 1, "c": 1, "side": 1}, host.made()); diff != "" {
				t.Errorf("other tasks were run (-want +got):\n%s", diff)
			}
			if record.State != run.Succeeded || record.RetryOf != old.Run {
				t.Errorf("the run is %s and continues %q", record.State, record.RetryOf)
			}
			if slices.ContainsFunc(record.Tasks, func(t run.TaskRecord) bool { return t.Reused }) {
				t.Errorf("something was taken over: %+v", record.Tasks)
			}
			old = record
			host.mend()
		}
		r.stop()
	})
}

// What the first run did well is not done again, however often it is continued.
func TestRetryOfARetry(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		host := &mended{}
		r := boot(t, Config{Invoker: host}, set)
		first := r.run("f", `1`)
		second := r.wait(r.retried(first.Run, false))
		if second.State != run.Failed {
			t.Fatalf("the second run is %s", second.State)
		}
		host.mend()
		third := r.wait(r.retried(second.Run, false))
		if diff := cmp.Diff(map[string]int{"b": 1, "c": 1}, host.made()); diff != "" {
			t.Errorf("other tasks were run (-want +got):\n%s", diff)
		}
		if third.State != run.Succeeded || third.RetryOf != second.Run || !taskOf(t, third, "a").Reused {
			t.Errorf("the third run is %s and continues %s", third.State, third.RetryOf)
		}
		r.stop()
	})
}

func TestRetryOfRunsThatCannotBeContinued(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		slow := guests{"a": takes(time.Minute)}
		r := boot(t, Config{Invoker: slow}, set)
		id := r.submit("f", `1`)
		for _, whole := range []bool{false, true} {
			if receipt, err := r.Retry(t.Context(), id, run.RerunOptions{Whole: whole}); !errors.Is(err, ErrUnfinished) || receipt.Accepted {
				t.Errorf("an open run is answered with %+v, %v", receipt, err)
			}
			if _, err := r.Retry(t.Context(), run.NewID(time.Now()), run.RerunOptions{Whole: whole}); !errors.Is(err, run.ErrUnknown) {
				t.Errorf("an unknown run is answered with %v", err)
			}
		}
		r.wait(id)
		if _, err := r.Retry(t.Context(), id, run.RerunOptions{}); !errors.Is(err, ErrSucceeded) {
			t.Errorf("a run that succeeded is answered with %v", err)
		}
		canceled := r.submit("f", `1`)
		if err := r.Cancel(t.Context(), canceled, ""); err != nil {
			t.Fatal(err)
		}
		r.wait(canceled)
		again := r.retried(canceled, false)
		r.Drain()
		synctest.Wait()
		if _, err := r.Retry(t.Context(), id, run.RerunOptions{Whole: true}); !errors.Is(err, ErrDraining) {
			t.Errorf("a host that stops answers %v", err)
		}
		r.stop()
		if got := fold(t, r.journal).Runs[again]; got.RetryOf != canceled {
			t.Errorf("the run of the journal continues %q", got.RetryOf)
		}
	})
}

func TestRetryUsesTheFlowAsItIsNow(t *testing.T) {
	t.Parallel()
	before := load(t, brokenHCL)
	after := load(t, `
flow "f" {
  task "side" {
    plugin = "./m.wasm"
    input  = "changed"
  }
  task "d" {
    plugin = "./m.wasm"
    input  = task.side.output
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		journal, history := memory.NewJournal(), newPastRuns()
		config := Config{Journal: journal, Invoker: &mended{}, History: history, Observers: []Observation{{Observer: history}}}
		r := boot(t, config, before)
		old, whole := r.run("f", `1`), r.run("f", `2`)
		r.stop()

		r = boot(t, config)
		<-r.Ready()
		var refused *run.RequestError
		if _, err := r.Retry(t.Context(), old.Run, run.RerunOptions{}); !errors.As(err, &refused) || refused.Code != run.RequestUnknownFlow {
			t.Errorf("without the flow the answer is %v", err)
		}
		if err := r.Deploy(t.Context(), after); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Retry(t.Context(), old.Run, run.RerunOptions{}); !errors.As(err, &refused) || refused.Code != run.RequestParams {
			t.Errorf("with a param that the flow has no more the answer is %v", err)
		}
		withoutParams(history, old.Run, whole.Run)
		record := r.wait(r.retried(old.Run, false))
		wantStates(t, record, map[string]run.State{"": run.Succeeded, "side": run.Succeeded, "d": run.Succeeded})
		if got := string(taskOf(t, record, "d").Input); got != `"side"` {
			t.Errorf("d is given %s, not what the first run made", got)
		}
		record = r.wait(r.retried(whole.Run, true))
		if got := string(taskOf(t, record, "d").Input); got != `"changed"` {
			t.Errorf("as a whole, d is given %s", got)
		}
		r.stop()
	})
}

func withoutParams(history *pastRuns, ids ...run.ID) {
	history.mu.Lock()
	defer history.mu.Unlock()
	for _, id := range ids {
		less := *history.records[id]
		less.Params = nil
		history.records[id] = &less
	}
}

// A history leaves out of a record what does not fit: first the inputs and outputs
// of tasks, then everything that can be large. What is left out must not be taken
// for empty.
func TestRetryOfAShortenedRecord(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		history := newPastRuns()
		config := Config{Journal: memory.NewJournal(), Invoker: &mended{}, History: history}
		r := boot(t, config, set)
		slim, bare := *r.run("f", `{"p":1}`), *r.run("f", `{"p":1}`)
		r.stop()
		slim.Tasks = slices.Clone(slim.Tasks)
		for i := range slim.Tasks {
			slim.Tasks[i].Input, slim.Tasks[i].Output = nil, nil
		}
		bare.Tasks, bare.Params, bare.Trigger.Payload = []run.TaskRecord{}, nil, nil
		for _, record := range []run.Record{slim, bare} {
			history.records[record.Run] = asStored(t, struct {
				run.Record
				Truncated bool `json:"truncated"`
			}{record, true})
		}

		r = boot(t, config, set)
		var refused *run.RequestError
		for id, ways := range map[run.ID][]bool{slim.Run: {false}, bare.Run: {false, true}} {
			for _, whole := range ways {
				if receipt, err := r.Retry(t.Context(), id, run.RerunOptions{Whole: whole}); !errors.As(err, &refused) || refused.Code != run.RequestSize {
					t.Errorf("whole is %t, and the answer is %+v, %v", whole, receipt, err)
				}
			}
		}
		record := r.wait(r.retried(slim.Run, true))
		if a := taskOf(t, record, "a"); a.Reused || a.Attempts != 1 || string(a.Input) != `{"payload":{"p":1},"x":5}` {
			t.Errorf("as a whole, task a is %+v", a)
		}
		r.stop()
	})
}

// A task may succeed without any output.
func TestRetryTakesOverWhatHasNoOutput(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		well := false
		r := boot(t, Config{Invoker: guests{
			"a": func(context.Context, run.Call) (run.Result, error) { return gives(nil), nil },
			"b": func(_ context.Context, c run.Call) (run.Result, error) {
				if !well {
					return fails(run.OutcomeFailed, false), nil
				}
				return gives(c.Input), nil
			},
		}}, set)
		old := r.run("f", `1`)
		well = true
		if receipt, err := r.Retry(t.Context(), old.Run, run.RerunOptions{}); err != nil {
			t.Errorf("the answer is %+v, %v", receipt, err)
		} else if record := r.wait(receipt.Run); record.State != run.Succeeded || !taskOf(t, record, "a").Reused {
			t.Errorf("the run is %s: %v", record.State, record.Error)
		}
		r.stop()
	})
}

func TestRetryWaitsForItsSlot(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  concurrency {
    key   = trigger.payload.customer
    limit = 1
  }
  task "a" { plugin = "./m.wasm" }
  task "b" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		bad := true
		r := boot(t, Config{Workers: 8, Invoker: guests{"b": func(ctx context.Context, c run.Call) (run.Result, error) {
			if bad {
				return fails(run.OutcomeFailed, false), nil
			}
			return takes(10*time.Second)(ctx, c)
		}}}, set)
		ann, bob := r.run("f", `{"customer":"ann"}`), r.run("f", `{"customer":"bob"}`)
		bad = false
		ids := []run.ID{r.submit("f", `{"customer":"ann"}`), r.retried(ann.Run, false), r.retried(ann.Run, false), r.retried(bob.Run, false)}
		start := time.Now()
		for i, want := range []time.Duration{10 * time.Second, 20 * time.Second, 30 * time.Second, 10 * time.Second} {
			if got := r.wait(ids[i]).FinishedAt.Sub(start); got != want {
				t.Errorf("run %d ended after %s, want %s", i, got, want)
			}
		}
		r.stop()
		if len(r.exec.runLimits.byKey) != 0 {
			t.Errorf("%d gates are left", len(r.exec.runLimits.byKey))
		}
	})
}

func TestRetryCanBeCanceledBeforeItStarts(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  concurrency {
    limit = 1
  }
  task "a" { plugin = "./m.wasm" }
  task "b" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		bad := true
		r := boot(t, Config{Invoker: guests{"b": func(ctx context.Context, c run.Call) (run.Result, error) {
			if bad {
				return fails(run.OutcomeFailed, false), nil
			}
			return takes(time.Minute)(ctx, c)
		}}}, set)
		old := r.run("f", `null`)
		bad = false
		holds := r.submit("f", `null`)
		id := r.retried(old.Run, false)
		synctest.Wait()
		if err := r.Cancel(t.Context(), id, "changed my mind"); err != nil {
			t.Errorf("cancel of a run that waits for its slot: %v", err)
		}
		record, err := r.Wait(t.Context(), id)
		if err != nil {
			t.Fatalf("%v, %v", err, <-r.ended)
		}
		wantStates(t, record, map[string]run.State{"": run.Canceled, "a": run.Succeeded, "b": run.Canceled})
		r.wait(holds)
		r.stop()
	})
}

func TestRetryIsBoundedLikeAnyRequest(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		host := &mended{}
		r := boot(t, Config{OpenRuns: 1, Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			if c.Task == "side" {
				return takes(time.Minute)(ctx, c)
			}
			return host.Invoke(ctx, c)
		})}, set)
		old := r.run("f", `1`)
		r.submit("f", `1`)
		if _, err := r.Retry(t.Context(), old.Run, run.RerunOptions{}); !errors.As(err, new(*BusyError)) {
			t.Errorf("a host that is full answers %v", err)
		}
		r.stop()
	})
}

// finest gives a journal of the same events in the smallest commits that an
// engine may write: under load, and when the process ends, a commit can end
// after any of them.
func finest(t *testing.T, j Journal) *memory.Journal {
	t.Helper()
	fine := memory.NewJournal()
	var together []run.Event // recorded at once
	flush := func() {
		if len(together) == 0 {
			return
		}
		var c wire.Commit
		if err := c.Add(together...); err != nil {
			t.Fatal(err)
		}
		if _, err := fine.Append(t.Context(), fine.Last(), c.Seal(fine.Last())); err != nil {
			t.Fatal(err)
		}
		together = nil
	}
	err := j.Replay(t.Context(), 0, func(_ uint64, stored []byte) error {
		commit, err := wire.DecodeCommit(stored)
		if err != nil {
			return err
		}
		for _, e := range commit.Events {
			switch e.Data.(type) {
			case *run.TaskReused, *run.Decided:
			default:
				flush()
			}
			together = append(together, e)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	flush()
	return fine
}

// fromEveryEvent boots an engine on each journal that ends in the midst of a run,
// lets it finish the run and gives its record to check.
func fromEveryEvent(t *testing.T, whole Journal, id run.ID, boot func(Journal) *rig, check func(n uint64, r *rig, record *run.Record)) {
	t.Helper()
	fine, checked := finest(t, whole), 0
	for n := range fine.Last() {
		journal := prefix(t, fine, n)
		if accepted := fold(t, journal).Runs[id]; accepted == nil || accepted.State.Done() {
			continue
		}
		r := boot(journal)
		record, err := r.Wait(t.Context(), id)
		if err != nil {
			t.Fatalf("after event %d: %v, %v", n, err, <-r.ended)
		}
		check(n, r, record)
		r.stop()
		checked++
	}
	if checked < 5 {
		t.Errorf("the run was continued from %d places only", checked)
	}
}

// The process may end after any event of a run that continues another one.
func TestRetriedRunContinuesFromEveryEvent(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		host := &mended{}
		r := boot(t, Config{Invoker: host, Workers: 1}, set)
		old := r.run("f", `{"p":1}`)
		host.mend()
		id := r.retried(old.Run, false)
		want := r.wait(id)
		r.stop()
		fromEveryEvent(t, r.journal, id, func(j Journal) *rig {
			host.mend()
			return boot(t, Config{Journal: j, Invoker: host, Workers: 1}, set)
		}, func(n uint64, r *rig, got *run.Record) {
			if got.State != run.Succeeded || string(got.Output) != string(want.Output) || got.RetryOf != old.Run {
				t.Errorf("after event %d: run is %s (%v) and gives %s", n, got.State, got.Error, got.Output)
			}
			if made := host.made(); made["a"]+made["side"] > 0 || !taskOf(t, got, "a").Reused || !taskOf(t, got, "side").Reused {
				t.Errorf("after event %d: what was taken over is run again: %v", n, made)
			}
		})
	})
}

// The tasks of hooks are not part of what is continued: they run again when there
// is a reason.
func TestRetryDoesNotTakeOverHooks(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "a" { plugin = "./m.wasm" }
  task "b" {
    plugin = "./m.wasm"
    after  = [task.a]
  }
  on_failure {
    task "alert" { plugin = "./m.wasm" }
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		host, told := &mended{}, &notices{}
		r := boot(t, Config{Invoker: host, Observers: []Observation{{Observer: told}}}, set)
		old := r.run("f", `1`)
		second := r.wait(r.retried(old.Run, false))
		if diff := cmp.Diff(map[string]int{"a": 1, "b": 2, "alert": 2}, host.made()); diff != "" {
			t.Errorf("other tasks were run (-want +got):\n%s", diff)
		}
		if alert := taskOf(t, second, "alert"); alert.Reused {
			t.Errorf("the hook's task is %+v", alert)
		}
		r.stop()
		reused := 0
		for _, n := range told.all() {
			if d, ok := n.Event.Data.(*run.TaskReused); ok {
				reused++
				if n.Event.Run != second.Run || d.Task != "a" || n.Flow != "f" {
					t.Errorf("observers are told of %+v of run %s", d, n.Event.Run)
				}
			}
		}
		if reused != 1 {
			t.Errorf("observers are told of %d tasks taken over", reused)
		}
	})
}

// asStored is a record as a history gives it that keeps JSON.
func asStored(t *testing.T, record any) *run.Record {
	t.Helper()
	stored := new(run.Record)
	text, err := run.EncodeJSON(record)
	if err == nil {
		err = json.Unmarshal(text, stored)
	}
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func TestRetryOfARunThatIsHistory(t *testing.T) {
	t.Parallel()
	set := load(t, brokenHCL)
	synctest.Test(t, func(t *testing.T) {
		host, history := &mended{}, newPastRuns()
		config := Config{Journal: memory.NewJournal(), Invoker: host, History: history}
		r := boot(t, config, set)
		old := r.run("f", `{"p":1}`)
		r.stop()
		history.records[old.Run] = asStored(t, old)
		host.mend()
		r = boot(t, config, set)
		record := r.wait(r.retried(old.Run, false))
		if diff := cmp.Diff(map[string]int{"b": 1, "c": 1}, host.made()); diff != "" || record.State != run.Succeeded {
			t.Errorf("the run is %s; other tasks were run (-want +got):\n%s", record.State, diff)
		}
		if got := taskOf(t, record, "c").Input; string(got) != `{"a":{"payload":{"p":1},"x":5},"b":{"payload":{"p":1},"x":5}}` {
			t.Errorf("task c is given %s", got)
		}
		r.stop()
	})
}

package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func TestOutputsTravelAlongReferences(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "a" {
    plugin = "./m.wasm"
    input  = { n = trigger.payload.n, big = 12345678901234567890.25 }
  }
  task "b" {
    plugin = "./m.wasm"
    input  = { double = task.a.output.n * 2, from = task.a.output }
  }
  output "result" {
    value = task.b.output.double
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		record := r.run("f", `{"n":21}`)
		wantStates(t, record, map[string]run.State{"": run.Succeeded, "a": run.Succeeded, "b": run.Succeeded})
		if got := string(record.Output); got != `{"result":42}` {
			t.Errorf("output %s", got)
		}
		if got := string(taskOf(t, record, "b").Input); got != `{"double":42,"from":{"big":12345678901234567890.25,"n":21}}` {
			t.Errorf("input of b: %s", got)
		}
		r.stop()
	})
}

// Two chains, each slow where the other is quick: waves would take the sum of the
// slowest task of each level, 60 s; the critical path is 40 s.
func TestTasksStartWhenTheirOwnDependenciesAreDone(t *testing.T) {
	t.Parallel()
	set := load(t, chainsHCL)
	synctest.Test(t, func(t *testing.T) {
		slow, quick := takes(20*time.Second), takes(0)
		r := boot(t, Config{Workers: 8, Invoker: guests{
			"a1": slow, "a2": quick, "a3": slow, "b1": quick, "b2": slow, "b3": quick,
		}}, set)
		record := r.run("f", `null`)
		if record.State != run.Succeeded {
			t.Fatalf("run is %s: %v", record.State, record.Error)
		}
		if got := record.FinishedAt.Sub(*record.StartedAt); got != 40*time.Second {
			t.Errorf("the run took %s, its critical path is 40s", got)
		}
		r.stop()
	})
}

const chainsHCL = `
flow "f" {
  task "a1" { plugin = "./m.wasm" }
  task "a2" {
    plugin = "./m.wasm"
    after  = [task.a1]
  }
  task "a3" {
    plugin = "./m.wasm"
    after  = [task.a2]
  }
  task "b1" { plugin = "./m.wasm" }
  task "b2" {
    plugin = "./m.wasm"
    after  = [task.b1]
  }
  task "b3" {
    plugin = "./m.wasm"
    after  = [task.b2]
  }
}`

func TestWorkersBoundAttemptsAtOnce(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	source.WriteString("flow \"f\" {\n")
	for i := range 20 {
		fmt.Fprintf(&source, "  task \"t%d\" { plugin = \"./m.wasm\" }\n", i)
	}
	source.WriteString("}\n")
	set := load(t, source.String())
	synctest.Test(t, func(t *testing.T) {
		count := &gauge{}
		all := guests{}
		for i := range 20 {
			all[fmt.Sprintf("t%d", i)] = count.around(takes(time.Second))
		}
		r := boot(t, Config{Workers: 3, Invoker: all}, set)
		if record := r.run("f", `null`); record.State != run.Succeeded {
			t.Errorf("run is %s: %v", record.State, record.Error)
		}
		if count.most != 3 {
			t.Errorf("%d attempts were under way at once, want 3", count.most)
		}
		r.stop()
	})
}

// gauge counts calls at once.
type gauge struct {
	mu        sync.Mutex
	now, most int
}

func (g *gauge) around(f func(context.Context, run.Call) (run.Result, error)) func(context.Context, run.Call) (run.Result, error) {
	return func(ctx context.Context, call run.Call) (run.Result, error) {
		g.add(1)
		defer g.add(-1)
		return f(ctx, call)
	}
}

func (g *gauge) add(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now += n
	g.most = max(g.most, g.now)
}

// A reference for the states of a graph's tasks, written without a frontier: it
// looks at all upstream states of a task in topological order.
type modelTask struct {
	name  string
	deps  []int
	runOn flows.RunOn
	when  bool
	fails bool
}

func (m modelTask) hcl() string {
	var b strings.Builder
	fmt.Fprintf(&b, "  task %q {\n    plugin = \"./m.wasm\"\n    when = %v\n", m.name, m.when)
	fmt.Fprintf(&b, "    run_on = %q\n    after = [", m.runOn)
	for _, d := range m.deps {
		fmt.Fprintf(&b, "task.t%d, ", d)
	}
	b.WriteString("]\n  }\n")
	return b.String()
}

const blocked = run.State("skipped because of a failure")

func modelStates(tasks []modelTask) map[string]run.State {
	result := make([]run.State, len(tasks))
	for i, m := range tasks {
		result[i] = m.state(result)
	}
	want := map[string]run.State{"": run.Succeeded}
	for i, m := range tasks {
		want[m.name] = result[i]
		switch result[i] {
		case blocked:
			want[m.name] = run.Skipped
		case run.Failed:
			want[""] = run.Failed
		}
	}
	return want
}

func (m modelTask) state(upstream []run.State) run.State {
	bad, skipped := false, len(m.deps) > 0
	for _, d := range m.deps {
		bad = bad || upstream[d] == run.Failed || upstream[d] == blocked
		skipped = skipped && upstream[d] == run.Skipped
	}
	switch {
	case m.runOn == flows.RunOnFailure && !bad:
		return run.Skipped
	case m.runOn == flows.RunOnSuccess && bad:
		return blocked
	case m.runOn == flows.RunOnSuccess && skipped, !m.when:
		return run.Skipped
	case m.fails:
		return run.Failed
	}
	return run.Succeeded
}

func TestJoinsAgreeWithTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 7))
		tasks := randomTasks(rng)
		var source strings.Builder
		source.WriteString("flow \"f\" {\n")
		all := guests{}
		for _, m := range tasks {
			source.WriteString(m.hcl())
			delay := time.Duration(rng.IntN(1000)) * time.Millisecond
			all[m.name] = takes(delay)
			if m.fails {
				all[m.name] = func(context.Context, run.Call) (run.Result, error) {
					time.Sleep(delay)
					return fails(run.OutcomeFailed, false), nil
				}
			}
		}
		source.WriteString("}\n")
		set := load(t, source.String())
		synctest.Test(t, func(t *testing.T) {
			r := boot(t, Config{Invoker: all, Workers: 1 + rng.IntN(5)}, set)
			record := r.run("f", `null`)
			if diff := cmp.Diff(modelStates(tasks), states(record)); diff != "" {
				t.Errorf("seed %d: states differ (-model +engine):\n%s\n%s", seed, diff, source.String())
			}
			r.stop()
		})
	}
}

func randomTasks(rng *rand.Rand) []modelTask {
	kinds := []flows.RunOn{flows.RunOnSuccess, flows.RunOnSuccess, flows.RunOnSuccess, flows.RunOnFailure, flows.RunAlways}
	tasks := make([]modelTask, 1+rng.IntN(12))
	for i := range tasks {
		m := modelTask{name: fmt.Sprintf("t%d", i), when: rng.IntN(5) > 0, fails: rng.IntN(5) == 0, runOn: flows.RunOnSuccess}
		for d := range i {
			if rng.IntN(3) == 0 {
				m.deps = append(m.deps, d)
			}
		}
		if len(m.deps) > 0 {
			m.runOn = kinds[rng.IntN(len(kinds))]
		}
		tasks[i] = m
	}
	return tasks
}

func TestExpressionThatFailsInARun(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "a" { plugin = "./m.wasm" }
  task "b" {
    plugin = "./m.wasm"
    input  = { n = trigger.payload.missing.deeper }
  }
  task "c" {
    plugin = "./m.wasm"
    after  = [task.b]
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		record := r.run("f", `{}`)
		wantStates(t, record, map[string]run.State{"": run.Failed, "a": run.Succeeded, "b": run.Failed, "c": run.Skipped})
		if e := record.Error; e == nil || e.Outcome != run.OutcomeRejected || e.Code != run.CodeExpression || e.Task != "b" {
			t.Errorf("the run's error is %+v", e)
		}
		if at := taskOf(t, record, "b").Error.At; !strings.HasPrefix(at, "test.hcl:") {
			t.Errorf("the failure is located at %q", at)
		}
		r.stop()
	})
}

func TestOnFailureKnowsTheError(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "a" { plugin = "./m.wasm" }
  on_failure {
    task "alert" {
      plugin = "./m.wasm"
      input  = { text = "${run.flow}: ${error.task} failed (${error.message})" }
    }
    task "page" {
      plugin = "./m.wasm"
      input  = task.alert.output.text
    }
  }
}`)
	bad := true
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: guests{"a": func(context.Context, run.Call) (run.Result, error) {
			if bad {
				return fails(run.OutcomeFailed, false), nil
			}
			return gives(json.RawMessage(`1`)), nil
		}}}, set)
		record := r.run("f", `null`)
		wantStates(t, record, map[string]run.State{"": run.Failed, "a": run.Failed, "alert": run.Succeeded, "page": run.Succeeded})
		if got := string(taskOf(t, record, "page").Output); got != `"f: a failed (no luck)"` {
			t.Errorf("the hook was given %s", got)
		}
		bad = false
		record = r.run("f", `null`)
		if record.State != run.Succeeded || slices.ContainsFunc(record.Tasks, func(t run.TaskRecord) bool { return t.Attempts > 0 && t.Task != "a" }) {
			t.Errorf("after a success the hook ran, or the run is not succeeded: %v", states(record))
		}
		r.stop()
	})
}

func TestOutputThatFailsIsAFailureOfTheRun(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "a" { plugin = "./m.wasm" }
  output "v" {
    value = trigger.payload.missing.deeper
  }
  on_failure {
    task "alert" {
      plugin = "./m.wasm"
      input  = error.code
    }
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{}, set)
		record := r.run("f", `{}`)
		wantStates(t, record, map[string]run.State{"": run.Failed, "a": run.Succeeded, "alert": run.Succeeded})
		if e := record.Error; e == nil || e.Code != run.CodeExpression || e.Task != "" {
			t.Errorf("the run's error is %+v", e)
		}
		if got := string(taskOf(t, record, "alert").Input); got != `"expression"` {
			t.Errorf("the hook sees the code %s", got)
		}
		r.stop()
	})
}

package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

// crowdHCL has a flow of many tasks that are all ready at once and one of a single
// task.
func crowdHCL(tasks int) string {
	var b strings.Builder
	b.WriteString("flow \"crowd\" {\n")
	for i := range tasks {
		fmt.Fprintf(&b, "  task \"t%d\" { plugin = \"./m.wasm\" }\n", i)
	}
	b.WriteString("}\nflow \"single\" {\n  task \"one\" { plugin = \"./m.wasm\" }\n}\n")
	return b.String()
}

// invokerFunc is one function for all tasks.
type invokerFunc func(context.Context, run.Call) (run.Result, error)

func (f invokerFunc) Invoke(ctx context.Context, call run.Call) (run.Result, error) {
	return f(ctx, call)
}

func TestOneFlowsCrowdDoesNotDelayAnother(t *testing.T) {
	t.Parallel()
	const perRun, ready = 200, 20_000
	set := load(t, crowdHCL(perRun))
	for workers, attempts := range map[int]time.Duration{1: 3, 2: 3, 8: 1} { // its own, the one under way and a turn of the crowd
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := boot(t, Config{Workers: workers, Invoker: invokerFunc(takes(time.Second))}, set)
				for range ready / perRun {
					r.submit("crowd", `null`)
				}
				for range 3 {
					record := r.run("single", `null`)
					if took := record.FinishedAt.Sub(record.CreatedAt); took > attempts*time.Second {
						t.Errorf("a run of another flow took %s, want at most %d attempts", took, attempts)
					}
				}
				var waiting int
				r.command(t.Context(), func() { waiting = r.exec.runnable.Len() })
				if waiting < ready-10*workers {
					t.Errorf("only %d tasks wait: the other flow was not alone against a crowd", waiting)
				}
				r.crash()
			})
		})
	}
}

// Whoever is alone gets all places, and a flow that has nothing under way gets one beyond
// them.
func TestWhoeverIsAloneGetsEverything(t *testing.T) {
	t.Parallel()
	set := load(t, crowdHCL(40))
	for _, workers := range []int{1, 2, 3, 4, 8, 10} {
		t.Run(fmt.Sprint(workers, " workers"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				crowd, all := &gauge{}, &gauge{}
				r := boot(t, Config{Workers: workers, Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
					work := all.around(takes(time.Second))
					if c.Flow == "crowd" {
						work = crowd.around(work)
					}
					return work(ctx, c)
				})}, set)
				ids := []run.ID{r.submit("crowd", `null`), r.submit("crowd", `null`)}
				time.Sleep(1500 * time.Millisecond)
				for range workers {
					ids = append(ids, r.submit("single", `null`))
				}
				for _, id := range ids {
					r.wait(id)
				}
				if crowd.most != workers {
					t.Errorf("one flow had %d attempts under way at once, want %d", crowd.most, workers)
				}
				if all.most != workers+1 {
					t.Errorf("%d attempts were under way at once, want one more than %d", all.most, workers)
				}
				r.stop()
				if !r.exec.runnable.Empty() {
					t.Errorf("after the last task the queue holds %+v", r.exec.runnable)
				}
			})
		})
	}
}

// longFlow keeps one of two places, so that the flows beside it get the other one in turn.
const longFlow = `
flow "long" {
  task "long" { plugin = "./m.wasm" }
}`

func TestPrioritiesDecideWhenWorkersAreScarce(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "background" {
  priority = -5
  task "b1" { plugin = "./m.wasm" }
  task "b2" {
    plugin   = "./m.wasm"
    priority = 7
  }
}
flow "normal" {
  task "n1" { plugin = "./m.wasm" }
  task "n2" {
    plugin = "./m.wasm"
    after  = [task.n1]
  }
}
flow "urgent" {
  priority = 10
  task "u1" { plugin = "./m.wasm" }
}`+longFlow)
	synctest.Test(t, func(t *testing.T) {
		var order []string
		r := boot(t, Config{Workers: 1, Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			if c.Flow == "long" {
				return takes(time.Minute)(ctx, c)
			}
			order = append(order, c.Task)
			return takes(time.Second)(ctx, c)
		})}, set)
		long := r.submit("long", `null`)
		first := r.submit("background", `null`) // b2 starts, b1 waits
		ids := []run.ID{first, r.submit("background", `null`), r.submit("normal", `null`), r.submit("urgent", `null`)}
		time.Sleep(1500 * time.Millisecond)
		ids = append(ids, r.submit("urgent", `null`)) // comes late and is next
		for _, id := range ids {
			r.wait(id)
		}
		want := []string{"b2", "u1", "u1", "b2", "n1", "n2", "b1", "b1"}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("tasks started in another order (-want +got):\n%s", diff)
		}
		r.wait(long)
		r.stop()
	})
}

// A flow of more priority that has all places does not keep another one from its first.
func TestPriorityDoesNotKeepNewcomersAway(t *testing.T) {
	t.Parallel()
	set := load(t, strings.Replace(crowdHCL(40), `flow "crowd" {`, "flow \"crowd\" {\n  priority = 100", 1))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 4, Invoker: invokerFunc(takes(time.Second))}, set)
		r.submit("crowd", `null`)
		record := r.run("single", `null`)
		if took := record.FinishedAt.Sub(record.CreatedAt); took != time.Second {
			t.Errorf("the run of less priority took %s, a worker was free for it", took)
		}
		r.crash()
	})
}

package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func queued(flow string, priority int, name string) task {
	return task{openRun: &openRun{run: &run.Run{Flow: flow}}, spec: &flows.Task{Name: name, Priority: priority}}
}

// queueModel says of a readyQueue what it must do, not how.
type queueModel struct {
	limits  []*quota // of which it looks at the numbers only
	held    map[*quota]int
	waiting map[modelQueue][]string
	running map[string]int
	under   map[string][]modelQueue        // by flow: the queues of the running tasks
	since   map[string]int                 // by name: when a task became ready
	passed  map[modelQueue]map[string]bool // since its last turn: the flows that had one before it
}

type modelQueue struct {
	flow     string
	priority int
	limits   uint // a bit for each
}

func newQueueModel(limits []*quota) *queueModel {
	return &queueModel{
		limits, map[*quota]int{}, map[modelQueue][]string{}, map[string]int{}, map[string][]modelQueue{}, map[string]int{}, map[modelQueue]map[string]bool{},
	}
}

func (m *queueModel) size() int {
	n := 0
	for _, names := range m.waiting {
		n += len(names)
	}
	return n
}

// quotas are the limits of a queue.
func (m *queueModel) quotas(limits uint) []*quota {
	var out []*quota
	for i, l := range m.limits {
		if limits&(1<<i) != 0 {
			out = append(out, l)
		}
	}
	return out
}

func (m *queueModel) push(t task, limits uint) {
	q := modelQueue{t.run.Flow, t.spec.Priority, limits}
	m.waiting[q] = append(m.waiting[q], t.spec.Name)
	m.since[t.spec.Name] = len(m.since)
}

// may reports whether a queue has a task that may start.
func (m *queueModel) may(q modelQueue, share int) bool {
	for _, l := range m.quotas(q.limits) {
		if l.resting || l.limit.Concurrency > 0 && m.held[l] >= l.limit.Concurrency {
			return false
		}
	}
	return len(m.waiting[q]) > 0 && m.running[q.flow] < share
}

// queueOf finds a task's queue.
func (m *queueModel) queueOf(t task) modelQueue {
	for q, names := range m.waiting {
		if slices.Contains(names, t.spec.Name) {
			return q
		}
	}
	return modelQueue{}
}

// popped gives what is wrong with t as the next task.
func (m *queueModel) popped(t task, share int) error {
	q := m.queueOf(t)
	if !m.may(q, share) {
		return fmt.Errorf("%s of %v may not start: %d waiting, %d running", t.spec.Name, q, len(m.waiting[q]), m.running[q.flow])
	}
	if first := m.waiting[q][0]; first != t.spec.Name {
		return fmt.Errorf("%s comes before %s of %v", t.spec.Name, first, q)
	}
	for other := range m.waiting {
		switch {
		case !m.may(other, share):
			delete(m.passed, other) // it cannot use its turn
		case other.priority > q.priority:
			return fmt.Errorf("%v is served before %v", q, other)
		case other.priority < q.priority || other == q:
		case other.flow == q.flow:
			if first := m.waiting[other][0]; m.since[first] < m.since[t.spec.Name] {
				return fmt.Errorf("%s of %v comes before %s of %v", t.spec.Name, q, first, other)
			}
		default:
			if m.passed[other][q.flow] {
				return fmt.Errorf("%v has two turns before %v has one", q, other)
			}
			if m.passed[other] == nil {
				m.passed[other] = map[string]bool{}
			}
			m.passed[other][q.flow] = true
		}
	}
	for other := range m.passed {
		if other.flow == q.flow && other.priority == q.priority {
			delete(m.passed, other)
		}
	}
	m.running[q.flow]++
	m.under[q.flow] = append(m.under[q.flow], q)
	for _, l := range m.quotas(q.limits) {
		m.held[l]++
	}
	m.cut(q, func(name string) bool { return name == t.spec.Name })
	return nil
}

// doneBoth ends a task of a flow.
func doneBoth(r *readyQueue, m *queueModel, flow string, which int) {
	q := m.under[flow][which]
	m.under[flow] = slices.Delete(m.under[flow], which, which+1)
	m.running[flow]--
	for _, l := range m.quotas(q.limits) {
		m.held[l]--
	}
	r.done(flow, m.quotas(q.limits))
}

func (m *queueModel) cut(q modelQueue, gone func(name string) bool) {
	if m.waiting[q] = slices.DeleteFunc(m.waiting[q], gone); len(m.waiting[q]) == 0 {
		delete(m.waiting, q)
		delete(m.passed, q)
	}
}

// idle reports whether nothing may start.
func (m *queueModel) idle(share int) bool {
	for q := range m.waiting {
		if m.may(q, share) {
			return false
		}
	}
	return true
}

// counted gives what is wrong with the counts of the limits.
func (m *queueModel) counted() error {
	for i, l := range m.limits {
		waiting := 0
		for q, names := range m.waiting {
			if q.limits&(1<<i) != 0 {
				waiting += len(names)
			}
		}
		if l.waiting != waiting || l.held != m.held[l] {
			return fmt.Errorf("limit %d has %d waiting and %d held, want %d and %d", i, l.waiting, l.held, waiting, m.held[l])
		}
	}
	return nil
}

func TestReadyQueueAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var r readyQueue
		limits := make([]*quota, rng.IntN(4))
		for i := range limits {
			limits[i] = &quota{limit: &flows.Limit{Concurrency: rng.IntN(4)}} // 0: bounded by its rate only
		}
		m := newQueueModel(limits)
		share, flowCount, levels := 1+rng.IntN(4), 1+rng.IntN(6), 1+rng.IntN(3)
		pushes := 2 + rng.IntN(6) // of ten steps: some queues stay short, some grow
		for step := range 400 {
			switch flow := fmt.Sprint("f", rng.IntN(flowCount)); {
			case rng.IntN(10) < pushes:
				added := queued(flow, rng.IntN(levels)-1, fmt.Sprint("t", step))
				under := uint(rng.IntN(1<<len(limits))) & uint(rng.Uint64())
				r.push(added, m.quotas(under))
				m.push(added, under)
			case rng.IntN(20) == 0:
				digit := fmt.Sprint(rng.IntN(10))
				withdrawBoth(t, &r, m, flow, func(name string) bool { return strings.HasSuffix(name, digit) })
			case len(limits) > 0 && rng.IntN(10) == 0:
				l := limits[rng.IntN(len(limits))]
				l.resting = !l.resting
				l.limit = &flows.Limit{Concurrency: rng.IntN(4)} // as if deployed anew
			case m.running[flow] > 0 && rng.IntN(2) == 0:
				doneBoth(&r, m, flow, rng.IntN(m.running[flow]))
			default:
				popBoth(t, &r, m, share)
			}
			if got, want := r.size, m.size(); got != want {
				t.Fatalf("step %d: the queue has %d tasks, the model %d", step, got, want)
			}
			if err := m.counted(); err != nil {
				t.Error(err)
			}
			if t.Failed() {
				t.Fatalf("seed %d, step %d", seed, step)
			}
		}
		emptyBoth(t, &r, m)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func popBoth(t *testing.T, r *readyQueue, m *queueModel, share int) {
	t.Helper()
	next, ok := r.pop(share)
	if ok == m.idle(share) {
		t.Fatalf("pop gives %v while the model has something to start: %v", ok, !m.idle(share))
	}
	if ok {
		if err := m.popped(next, share); err != nil {
			t.Error(err)
		}
	}
}

func withdrawBoth(t *testing.T, r *readyQueue, m *queueModel, flow string, match func(name string) bool) {
	t.Helper()
	var want, got []string
	for q, names := range m.waiting {
		if q.flow == flow {
			for _, name := range names {
				if match(name) {
					want = append(want, name)
				}
			}
			m.cut(q, match)
		}
	}
	for _, out := range r.withdraw(func(t task) bool { return t.run.Flow == flow && match(t.spec.Name) }) {
		got = append(got, out.spec.Name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("withdrawn tasks differ (-model +queue):\n%s", diff)
	}
}

// emptyBoth takes everything out: nothing may be left behind.
func emptyBoth(t *testing.T, r *readyQueue, m *queueModel) {
	t.Helper()
	for _, l := range m.limits {
		l.resting = false
	}
	for m.size() > 0 {
		for flow := range m.under {
			for m.running[flow] > 0 {
				doneBoth(r, m, flow, 0)
			}
		}
		popBoth(t, r, m, 1<<20)
	}
	if len(r.levels) != 0 {
		t.Errorf("%d levels are left in a queue without tasks", len(r.levels))
	}
	for flow := range m.under {
		for m.running[flow] > 0 {
			doneBoth(r, m, flow, 0)
		}
	}
	if err := m.counted(); err != nil {
		t.Error(err)
	}
	if len(r.lanes) != 0 {
		t.Errorf("lanes are left in a queue without tasks: %v", r.lanes)
	}
}

// Two flows that come back with their next task as soon as one is taken must not
// keep the turn between them.
func TestFlowsThatComeBackWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	var r readyQueue
	for i := range 10 {
		r.push(queued("patient", 0, fmt.Sprint("p", i)), nil)
	}
	r.push(queued("x", 0, "x"), nil)
	r.push(queued("y", 0, "y"), nil)
	turns := map[string]int{}
	for range 15 {
		next, _ := r.pop(100)
		if next.run.Flow != "patient" {
			r.push(next, nil)
		}
		turns[next.run.Flow]++
	}
	if diff := cmp.Diff(map[string]int{"patient": 5, "x": 5, "y": 5}, turns); diff != "" {
		t.Errorf("turns differ (-want +got):\n%s", diff)
	}
}

func TestReadyQueueFreesWhatIsGone(t *testing.T) {
	t.Parallel()
	var r readyQueue
	check := func() {
		for _, l := range r.lanes {
			for _, q := range l.queues {
				waiting := len(q.tasks) - q.head
				if spare := len(q.tasks) - waiting; spare > max(1025, waiting+1) {
					t.Fatalf("%d places are kept for %d tasks", len(q.tasks), waiting)
				}
				for _, gone := range q.tasks[:q.head] {
					if gone.openRun != nil {
						t.Fatal("the queue holds on to a task that was taken out")
					}
				}
			}
		}
	}
	for i := range 5000 {
		r.push(queued("f", 0, fmt.Sprint(i)), nil)
	}
	for i := range 4990 { // from full to nearly empty
		r.pop(1 << 20)
		if i%500 == 0 {
			check()
		}
	}
	for i := range 5000 { // steadily short: it is never empty, and so never starts afresh
		r.push(queued("f", 0, fmt.Sprint(i)), nil)
		r.pop(1 << 20)
		if i%100 == 0 {
			check()
		}
	}
	check()
}

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
				r.command(t.Context(), func() { waiting = r.runnable.size })
				if waiting < ready-10*workers {
					t.Errorf("only %d tasks wait: the other flow was not alone against a crowd", waiting)
				}
				r.crash()
			})
		})
	}
}

func TestOneFlowLeavesAQuarterOfTheWorkers(t *testing.T) {
	t.Parallel()
	set := load(t, crowdHCL(40))
	for workers, share := range map[int]int{1: 1, 2: 2, 3: 3, 4: 3, 8: 6, 10: 8} {
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
				if crowd.most != share {
					t.Errorf("one flow had %d attempts under way at once, want %d", crowd.most, share)
				}
				if all.most != workers {
					t.Errorf("%d of %d workers were busy at most", all.most, workers)
				}
				r.stop()
				if r.runnable.size != 0 || len(r.runnable.lanes) != 0 || len(r.runnable.levels) != 0 {
					t.Errorf("after the last task the queue holds %+v", r.runnable)
				}
			})
		})
	}
}

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
}`)
	synctest.Test(t, func(t *testing.T) {
		var order []string
		r := boot(t, Config{Workers: 1, Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			order = append(order, c.Task)
			return takes(time.Second)(ctx, c)
		})}, set)
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
		r.stop()
	})
}

// A flow whose share is used up leaves the free workers to one of less priority.
func TestPriorityDoesNotTakeTheLastQuarter(t *testing.T) {
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

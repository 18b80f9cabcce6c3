package fairq

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func anyFlow(string) bool { return true }

// below admits flows that have fewer items running.
func below(q *Queue[item], share int) func(string) bool {
	return func(flow string) bool { return q.flows[flow].running < share }
}

// item is what the tests queue.
type item struct {
	flow     string
	priority int
	name     string
}

// queueModel states what a Queue must do, not how.
type queueModel struct {
	limits  []*Limit // of which it looks at the numbers only
	held    map[*Limit]int
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

func newQueueModel(limits []*Limit) *queueModel {
	return &queueModel{
		limits, map[*Limit]int{}, map[modelQueue][]string{}, map[string]int{}, map[string][]modelQueue{}, map[string]int{}, map[modelQueue]map[string]bool{},
	}
}

func (m *queueModel) size() int {
	n := 0
	for _, names := range m.waiting {
		n += len(names)
	}
	return n
}

// of gives the limits of a queue.
func (m *queueModel) of(limits uint) []*Limit {
	var out []*Limit
	for i, l := range m.limits {
		if limits&(1<<i) != 0 {
			out = append(out, l)
		}
	}
	return out
}

func (m *queueModel) push(t item, limits uint) {
	q := modelQueue{t.flow, t.priority, limits}
	m.waiting[q] = append(m.waiting[q], t.name)
	m.since[t.name] = len(m.since)
}

// may reports whether a queue has a task that may start.
func (m *queueModel) may(q modelQueue, share int) bool {
	for _, l := range m.of(q.limits) {
		if l.Paused || l.Max > 0 && m.held[l] >= l.Max {
			return false
		}
	}
	return len(m.waiting[q]) > 0 && m.running[q.flow] < share
}

// queueOf finds a task's queue.
func (m *queueModel) queueOf(t item) modelQueue {
	for q, names := range m.waiting {
		if slices.Contains(names, t.name) {
			return q
		}
	}
	return modelQueue{}
}

// popped gives what is wrong with t as the next item.
func (m *queueModel) popped(t item, share int) error {
	q := m.queueOf(t)
	if !m.may(q, share) {
		return fmt.Errorf("%s of %v may not start: %d waiting, %d running", t.name, q, len(m.waiting[q]), m.running[q.flow])
	}
	if first := m.waiting[q][0]; first != t.name {
		return fmt.Errorf("%s comes before %s of %v", t.name, first, q)
	}
	for other := range m.waiting {
		switch {
		case !m.may(other, share):
			delete(m.passed, other) // it cannot use its turn
		case other.priority > q.priority:
			return fmt.Errorf("%v is served before %v", q, other)
		case other.priority < q.priority || other == q:
		case other.flow == q.flow:
			if first := m.waiting[other][0]; m.since[first] < m.since[t.name] {
				return fmt.Errorf("%s of %v comes before %s of %v", t.name, q, first, other)
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
	for _, l := range m.of(q.limits) {
		m.held[l]++
	}
	m.cut(q, func(name string) bool { return name == t.name })
	return nil
}

// doneBoth ends a task of a flow.
func doneBoth(r *Queue[item], m *queueModel, flow string, which int) {
	q := m.under[flow][which]
	m.under[flow] = slices.Delete(m.under[flow], which, which+1)
	m.running[flow]--
	for _, l := range m.of(q.limits) {
		m.held[l]--
	}
	r.Done(flow, m.of(q.limits))
}

// underWay is how many items run.
func (m *queueModel) underWay() int {
	n := 0
	for _, running := range m.running {
		n += running
	}
	return n
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
		if l.waiting != waiting || l.running != m.held[l] {
			return fmt.Errorf("limit %d has %d waiting and %d held, want %d and %d", i, l.waiting, l.running, waiting, m.held[l])
		}
	}
	return nil
}

func TestQueueAgreesWithTheModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 11))
		var r Queue[item]
		limits := make([]*Limit, rng.IntN(4))
		for i := range limits {
			limits[i] = &Limit{Max: rng.IntN(4)} // 0: bounded by its rate only
		}
		m := newQueueModel(limits)
		share, flowCount, levels := 1+rng.IntN(4), 1+rng.IntN(6), 1+rng.IntN(3)
		pushes := 2 + rng.IntN(6) // of ten steps: some queues stay short, some grow
		for step := range 400 {
			switch flow := fmt.Sprint("f", rng.IntN(flowCount)); {
			case rng.IntN(10) < pushes:
				added := item{flow, rng.IntN(levels) - 1, fmt.Sprint("t", step)}
				under := uint(rng.IntN(1<<len(limits))) & uint(rng.Uint64())
				r.Push(added, added.flow, added.priority, m.of(under))
				m.push(added, under)
			case rng.IntN(20) == 0:
				digit := fmt.Sprint(rng.IntN(10))
				withdrawBoth(t, &r, m, flow, func(name string) bool { return strings.HasSuffix(name, digit) })
			case len(limits) > 0 && rng.IntN(10) == 0:
				l := limits[rng.IntN(len(limits))]
				l.Paused = !l.Paused
				l.Max = rng.IntN(4) // as a deployment does
			case m.running[flow] > 0 && rng.IntN(2) == 0:
				doneBoth(&r, m, flow, rng.IntN(m.running[flow]))
			default:
				popBoth(t, &r, m, share)
			}
			if got, want := r.size, m.size(); got != want {
				t.Fatalf("step %d: the queue has %d tasks, the model %d", step, got, want)
			}
			running, waiting := r.Running(), 0
			for _, f := range r.flows {
				waiting += f.waiting
			}
			if under := m.underWay(); waiting != r.size || running != under {
				t.Fatalf("step %d: the flows have %d waiting and %d running, want %d and %d", step, waiting, running, r.size, under)
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

func popBoth(t *testing.T, r *Queue[item], m *queueModel, share int) {
	t.Helper()
	next, _, ok := r.Pop(below(r, share))
	if ok == m.idle(share) {
		t.Fatalf("pop gives %v while the model has something to start: %v", ok, !m.idle(share))
	}
	if ok {
		if err := m.popped(next, share); err != nil {
			t.Error(err)
		}
	}
}

func withdrawBoth(t *testing.T, r *Queue[item], m *queueModel, flow string, match func(name string) bool) {
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
	for _, out := range r.Withdraw(func(t item) bool { return t.flow == flow && match(t.name) }) {
		got = append(got, out.name)
	}
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("withdrawn tasks differ (-model +queue):\n%s", diff)
	}
}

// emptyBoth takes everything out: nothing may be left behind.
func emptyBoth(t *testing.T, r *Queue[item], m *queueModel) {
	t.Helper()
	for _, l := range m.limits {
		l.Paused = false
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
		t.Errorf("%d levels are left in a queue without items", len(r.levels))
	}
	for flow := range m.under {
		for m.running[flow] > 0 {
			doneBoth(r, m, flow, 0)
		}
	}
	if err := m.counted(); err != nil {
		t.Error(err)
	}
	if len(r.flows) != 0 {
		t.Errorf("lanes are left in a queue without items: %v", r.flows)
	}
}

// Two flows that come back with their next item as soon as one is taken must not
// keep the turn between them.
func TestFlowsThatComeBackWaitForTheirTurn(t *testing.T) {
	t.Parallel()
	var r Queue[item]
	for i := range 10 {
		r.Push(item{"patient", 0, fmt.Sprint("p", i)}, "patient", 0, nil)
	}
	r.Push(item{"x", 0, "x"}, "x", 0, nil)
	r.Push(item{"y", 0, "y"}, "y", 0, nil)
	turns := map[string]int{}
	for range 15 {
		next, _, _ := r.Pop(anyFlow)
		if next.flow != "patient" {
			r.Push(next, next.flow, 0, nil)
		}
		turns[next.flow]++
	}
	if diff := cmp.Diff(map[string]int{"patient": 5, "x": 5, "y": 5}, turns); diff != "" {
		t.Errorf("turns differ (-want +got):\n%s", diff)
	}
}

func TestQueueFreesWhatIsGone(t *testing.T) {
	t.Parallel()
	var r Queue[item]
	check := func() {
		for _, l := range r.flows {
			for _, q := range l.fifos {
				waiting := len(q.items) - q.head
				if spare := len(q.items) - waiting; spare > max(1025, waiting+1) {
					t.Fatalf("%d places are kept for %d tasks", len(q.items), waiting)
				}
				for _, gone := range q.items[:q.head] {
					if gone.item != (item{}) {
						t.Fatal("the queue holds on to a task that was taken out")
					}
				}
			}
		}
	}
	for i := range 5000 {
		r.Push(item{"f", 0, fmt.Sprint(i)}, "f", 0, nil)
	}
	for i := range 4990 { // from full to nearly empty
		r.Pop(anyFlow)
		if i%500 == 0 {
			check()
		}
	}
	for i := range 5000 { // steadily short: it is never empty, and so never starts afresh
		r.Push(item{"f", 0, fmt.Sprint(i)}, "f", 0, nil)
		r.Pop(anyFlow)
		if i%100 == 0 {
			check()
		}
	}
	check()
}

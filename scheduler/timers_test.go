package scheduler

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// modelTimer is what the model knows of one timer: the model is a list sorted by
// due time, priority and order of addition.
type modelTimer struct {
	handle Timer
	due    int64
	prio   int8
	seq    int
	value  int
}

type model struct {
	t     *testing.T
	seed  uint64
	rnd   *rand.Rand
	queue *Queue[int]
	list  []modelTimer
	stale []Timer
	seq   int
}

// TestQueueModel does random operations on a queue and on a sorted list.
func TestQueueModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(60) {
		m := &model{t: t, seed: seed, rnd: rand.New(rand.NewPCG(seed, 3)), queue: NewQueue[int](Options{Limit: 200})}
		for range 1500 {
			m.step()
			m.check()
		}
		m.pop(math.MaxInt64)
		m.check()
	}
}

func (m *model) step() {
	due := m.rnd.Int64N(50) // few instants, so that many are equal
	switch op := m.rnd.IntN(10); {
	case op < 5:
		m.add(due)
	case op < 7:
		m.cancel()
	case op < 9:
		m.reset(due)
	case m.rnd.IntN(20) == 0:
		m.pop(due)
	}
}

func (m *model) add(due int64) {
	value := m.rnd.Int()
	prio := int8(m.rnd.IntN(256) - 128)
	if m.rnd.IntN(2) == 0 {
		prio = 0
	}
	handle, err := m.queue.AddPriority(time.Unix(0, due), prio, value)
	if full := len(m.list) == 200; full != (err != nil) {
		m.t.Fatalf("seed %d: add to %d timers: %v", m.seed, len(m.list), err)
	}
	if err == nil {
		m.list = append(m.list, modelTimer{handle, due, prio, m.seq, value})
	}
	m.seq++
}

func (m *model) cancel() {
	if len(m.list) > 0 {
		k := m.rnd.IntN(len(m.list))
		if !m.queue.Cancel(m.list[k].handle) {
			m.t.Fatalf("seed %d: a timer was gone before it was canceled", m.seed)
		}
		m.stale = append(m.stale, m.list[k].handle)
		m.list = slices.Delete(m.list, k, k+1)
	}
	if len(m.stale) == 0 {
		return
	}
	stale := m.stale[m.rnd.IntN(len(m.stale))]
	if m.queue.Cancel(stale) || m.queue.Reset(stale, time.Unix(0, 0)) {
		m.t.Fatalf("seed %d: a stale handle did something", m.seed)
	}
}

func (m *model) reset(due int64) {
	if len(m.list) == 0 {
		return
	}
	k := m.rnd.IntN(len(m.list))
	if !m.queue.Reset(m.list[k].handle, time.Unix(0, due)) {
		m.t.Fatalf("seed %d: a timer was gone before it was reset", m.seed)
	}
	m.list[k].due = due
}

func (m *model) pop(now int64) {
	got, _ := m.queue.due(make([]int, 0, 1+m.rnd.IntN(maxBatch)), now)
	var want []int
	for len(m.list) > 0 && len(want) < cap(got) && m.list[0].due <= now {
		want = append(want, m.list[0].value)
		m.stale = append(m.stale, m.list[0].handle)
		m.list = m.list[1:]
	}
	if !slices.Equal(got, want) {
		m.t.Fatalf("seed %d: popped %v, want %v", m.seed, got, want)
	}
}

func (m *model) check() {
	slices.SortFunc(m.list, func(a, b modelTimer) int {
		return cmp.Or(cmp.Compare(a.due, b.due), -cmp.Compare(a.prio, b.prio), cmp.Compare(a.seq, b.seq))
	})
	if m.queue.Len() != len(m.list) {
		m.t.Fatalf("seed %d: %d timers, want %d", m.seed, m.queue.Len(), len(m.list))
	}
	next, ok := m.queue.Next()
	if ok != (len(m.list) > 0) || ok && next.UnixNano() != m.list[0].due {
		m.t.Fatalf("seed %d: next %v, %v", m.seed, next, ok)
	}
	q := &m.queue.timers
	for i := root; i < root+q.len; i++ {
		n := q.heap.at(i)
		if i > root && n.before(*q.heap.at(parent(i))) || int(*q.slots.at(int(n.slot))) != i {
			m.t.Fatalf("seed %d: node %d of the heap is out of place", m.seed, i)
		}
	}
}

func TestZeroTimerIsInert(t *testing.T) {
	t.Parallel()
	q := NewQueue[int](Options{})
	for range 2 {
		if q.Cancel(Timer{}) || q.Reset(Timer{}, time.Now()) {
			t.Fatal("the zero timer did something")
		}
		add(t, q, time.Now(), 1)
	}
}

// A slot is used again, also after the queue was empty: its old handles must not
// mean its new value.
func TestStaleHandlesOfReusedSlots(t *testing.T) {
	t.Parallel()
	q := NewQueue[int](Options{})
	var stale []Timer
	for i := range 1000 {
		timer := add(t, q, time.Unix(int64(i%3), 0), i)
		for _, s := range stale {
			if q.Cancel(s) || q.Reset(s, time.Now()) {
				t.Fatalf("round %d: handle %+v did something to %+v", i, s, timer)
			}
		}
		q.Cancel(timer)
		stale = append(stale, timer)[max(0, len(stale)-9):]
	}
}

// TestChurnIsFlat cancels timers that are not the head, a million times: each
// frees its slot (gocron#777, timingwheel#49; htask keeps them until they are due).
func TestChurnIsFlat(t *testing.T) {
	t.Parallel()
	q := NewQueue[*int](Options{})
	for i := range 100 {
		add(t, q, time.Unix(int64(i), 0), new(int))
	}
	for i := range 1_000_000 {
		timer, err := q.Add(time.Unix(int64(1000+i%977), 0), new(int))
		if err != nil || !q.Cancel(timer) {
			t.Fatal(i, err)
		}
	}
	if n := q.timers.used; n != 101 {
		t.Errorf("%d slots for at most 101 timers", n)
	}
	if n := len(q.timers.heap.chunks) + len(q.timers.values.chunks); n != 2 {
		t.Errorf("slabs grew to %d chunks", n)
	}
	if *q.timers.values.at(100) != nil {
		t.Error("a canceled value is still held")
	}
}

func TestMemoryIsGivenBack(t *testing.T) {
	t.Parallel()
	q := NewQueue[int](Options{})
	timers := make([]Timer, 100*chunk)
	for i := range timers {
		timers[i] = add(t, q, time.Unix(int64(i), 0), i)
	}
	for _, timer := range timers {
		q.Cancel(timer)
	}
	if n := len(q.timers.heap.chunks) + len(q.timers.slots.chunks) + len(q.timers.values.chunks); n > 6 {
		t.Errorf("an empty queue holds %d chunks", n)
	}
}

// Not parallel: testing.AllocsPerRun counts what the whole process allocates.
func TestSteadyStateDoesNotAllocate(t *testing.T) {
	q := NewQueue[int](Options{})
	for i := range 1000 {
		add(t, q, time.Unix(int64(i), 0), i)
	}
	due := time.Unix(500, 0)
	q.Cancel(add(t, q, due, 0)) // the slabs have room for one more
	allocs := testing.AllocsPerRun(1000, func() {
		timer, _ := q.Add(due, 1)
		q.Reset(timer, due.Add(time.Second))
		q.Cancel(timer)
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

func TestInstantsOutOfRange(t *testing.T) {
	t.Parallel()
	q := NewQueue[string](Options{})
	for _, year := range []int{1, 1600, 2300, 9999, 300_000} {
		due := time.Date(year, 1, 1, 0, 0, 0, 0, time.UTC)
		add(t, q, due, "")
	}
	batch, _ := q.due(make([]string, 0, 10), nanos(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
	if len(batch) != 2 {
		t.Errorf("%d of 5 values came out in 2026, want those of years 1 and 1600", len(batch))
	}
}

// A timer counts elapsed time: without the bound, a clock that is set forward
// would be noticed only when the wait is over.
func TestSleepIsBounded(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		until, now int64
		want       time.Duration
	}{
		{5, 2, 3},
		{2, 2, 0},
		{2, 5, 0},
		{int64(time.Hour), 0, maxSleep},
		{never, math.MinInt64, maxSleep},
		{math.MinInt64, never, 0},
	} {
		if got := ahead(tt.until, tt.now); got != tt.want {
			t.Errorf("from %d to %d: sleeps %v, want %v", tt.now, tt.until, got, tt.want)
		}
	}
}

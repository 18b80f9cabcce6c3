package dag

import (
	"context"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// ending is what a node of a model does.
type ending int

const (
	endSucceeds ending = iota
	endFails
	endPanics
	endGoexit
	endSkips
	endCancels // cancels the walk and succeeds
	endGivesUp // cancels the walk and says so
)

// model is a random walk and what is seen of it.
type model struct {
	g        *Graph
	endings  []ending
	options  WalkOptions
	cancel   context.CancelFunc
	started  []atomic.Int32
	done     []atomic.Bool
	underWay atomic.Int32
	most     atomic.Int32
	returned atomic.Bool
}

func newModel(t *testing.T, rnd *rand.Rand) *model {
	m := &model{g: randomGraph(t, rnd)}
	n := m.g.Len()
	m.endings, m.started, m.done = make([]ending, n), make([]atomic.Int32, n), make([]atomic.Bool, n)
	trouble := rnd.IntN(3)
	for i := range m.endings {
		if rnd.IntN(10) < trouble {
			m.endings[i] = ending(rnd.IntN(int(endGivesUp) + 1))
		}
	}
	m.options = WalkOptions{Workers: 1 + rnd.IntN(6), KeepGoing: rnd.IntN(2) == 0}
	if rnd.IntN(2) == 0 {
		weights := rnd.Perm(n)
		m.options.Weight = func(i int) time.Duration { return time.Duration(weights[i]) }
	}
	return m
}

// do reports what must not be, and ends the node as its ending says.
func (m *model) do(t *testing.T, i int) error {
	if m.returned.Load() {
		t.Errorf("node %d runs after Walk has returned", i)
	}
	if m.started[i].Add(1) > 1 {
		t.Errorf("node %d started again", i)
	}
	for _, up := range m.g.Upstream(i) {
		if !m.done[up].Load() {
			t.Errorf("node %d started before %d succeeded", i, up)
		}
	}
	if n := m.underWay.Add(1); n > m.most.Load() {
		m.most.Store(n) // may miss a higher one: the bound is checked below
	}
	if n := m.underWay.Load(); int(n) > m.options.Workers {
		t.Errorf("%d nodes under way, %d workers", n, m.options.Workers)
	}
	defer m.underWay.Add(-1)
	runtime.Gosched()
	switch m.endings[i] {
	case endFails:
		return errBroken
	case endPanics:
		panic(errBroken)
	case endGoexit:
		runtime.Goexit()
	case endSkips:
		return ErrSkip
	case endCancels:
		m.cancel()
	case endGivesUp:
		m.cancel()
		return context.Canceled
	}
	m.done[i].Store(true)
	return nil
}

// reference is how nodes end when nothing stops the walk, one after the other.
func (m *model) reference() []State {
	states := make([]State, m.g.Len())
	for _, i := range m.g.Order() {
		upstreamEnded := func(up int) bool { return states[up] != Succeeded }
		switch {
		case slices.ContainsFunc(m.g.Upstream(i), upstreamEnded) || m.endings[i] == endSkips:
			states[i] = Skipped
		case m.endings[i] == endSucceeds || m.endings[i] == endCancels:
			states[i] = Succeeded
		case m.endings[i] == endGivesUp:
			states[i] = Canceled
		default:
			states[i] = Failed
		}
	}
	return states
}

// check compares a result with what the functions saw and with the reference.
func (m *model) check(t *testing.T, r *Result, err error) {
	want := m.reference()
	stopped := false // the walk, by an error or a cancellation that really came
	failed := 0
	for i := range want {
		if m.started[i].Load() > 0 {
			stopped = stopped || m.endings[i] >= endCancels || want[i] == Failed && !m.options.KeepGoing
			if want[i] == Failed {
				failed++
			}
		}
	}
	for i := range want {
		got := r.State(i)
		switch {
		case got == want[i]:
		case !stopped || got != NotRun:
			t.Errorf("node %d %v, want %v", i, got, want[i])
		}
		ran := m.started[i].Load() > 0
		if (got == Succeeded || got == Failed || got == Canceled) && !ran || got == NotRun && ran {
			t.Errorf("node %d %v, but ran %v", i, got, ran)
		}
		if _, skipped := r.SkippedBy(i); skipped != (got == Skipped) {
			t.Errorf("node %d %v, but skipped by another %v", i, got, skipped)
		}
	}
	if (err == nil) != (r.Count(Failed)+r.Count(NotRun)+r.Count(Canceled) == 0) {
		t.Errorf("error %v after %d failures, %d not run, %d canceled", err, r.Count(Failed), r.Count(NotRun), r.Count(Canceled))
	}
	if ids := failedIn(err); m.options.KeepGoing && len(ids) != failed || len(ids) > failed {
		t.Errorf("%d node errors of %d", len(ids), failed)
	}
}

func TestWalkModel(t *testing.T) {
	t.Parallel()
	most := int32(0)
	for seed := range uint64(2000) {
		m := newModel(t, rand.New(rand.NewPCG(seed, 3)))
		ctx, cancel := context.WithCancel(t.Context())
		m.cancel = cancel
		r, err := m.g.Walk(ctx, func(_ context.Context, i int) error { return m.do(t, i) }, m.options)
		m.returned.Store(true)
		if n := m.underWay.Load(); n != 0 {
			t.Errorf("%d nodes under way after Walk has returned", n)
		}
		m.check(t, r, err)
		cancel()
		most = max(most, m.most.Load())
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, m.options)
		}
	}
	if most < 2 {
		t.Error("no two nodes were ever under way at a time: the test has lost its use")
	}
}

// TestWalkKeepsAllWorkersBusy looks at random walks whose nodes take their time,
// every millisecond: as many nodes are under way as could be.
func TestWalkKeepsAllWorkersBusy(t *testing.T) {
	t.Parallel()
	for seed := range uint64(100) {
		synctest.Test(t, func(t *testing.T) {
			rnd := rand.New(rand.NewPCG(seed, 4))
			g := randomGraph(t, rnd)
			workers := 1 + rnd.IntN(5)
			took := make([]time.Duration, g.Len())
			for i := range took {
				took[i] = time.Duration(rnd.IntN(8)) * time.Millisecond
			}
			started, done := make([]atomic.Bool, g.Len()), make([]atomic.Bool, g.Len())
			var over atomic.Bool
			var watch sync.WaitGroup
			watch.Go(func() {
				for time.Sleep(time.Millisecond / 2); !over.Load(); time.Sleep(time.Millisecond) {
					underWay, could := 0, 0
					for i := range g.Len() {
						blocked := slices.ContainsFunc(g.Upstream(i), func(up int) bool { return !done[up].Load() })
						if !blocked && !done[i].Load() {
							could++
						}
						if started[i].Load() && !done[i].Load() {
							underWay++
						}
					}
					if underWay != min(could, workers) {
						t.Errorf("seed %d: %d nodes under way of %d that could be, %d workers", seed, underWay, could, workers)
					}
				}
			})
			_, err := g.Walk(t.Context(), func(_ context.Context, i int) error {
				started[i].Store(true)
				time.Sleep(took[i])
				done[i].Store(true)
				return nil
			}, WalkOptions{Workers: workers})
			over.Store(true)
			watch.Wait()
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// TestWalkSkewed has chains each of whose levels holds one slow node: by waves it
// would take as many times the longest path as there are chains.
func TestWalkSkewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const chains = 10
		const slow, quick = 100 * time.Millisecond, time.Millisecond
		g, err := edgesOf(chains*chains, func(i int, from func(int)) { from(i - chains) }).Build()
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = g.Walk(t.Context(), func(_ context.Context, i int) error {
			if i/chains == i%chains {
				time.Sleep(slow)
			} else {
				time.Sleep(quick)
			}
			return nil
		}, WalkOptions{Workers: chains})
		if took, path := time.Since(began), slow+(chains-1)*quick; err != nil || took != path {
			t.Errorf("took %v, longest path %v, %v", took, path, err)
		}
	})
}

// With two workers and short nodes first, the long chain would end last.
func TestWalkLongestFirstIsShorter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		took := map[string]time.Duration{"s1": 1, "s2": 1, "s3": 1, "s4": 1, "a": 1, "b": 3}
		g := graph(t, "s1 s2 s3 s4 a b", "a>b")
		seconds := func(i int) time.Duration { return took[g.ID(i)] * time.Second }
		began := time.Now()
		_, err := g.Walk(t.Context(), func(_ context.Context, i int) error {
			time.Sleep(seconds(i))
			return nil
		}, WalkOptions{Workers: 2, Weight: seconds})
		if took := time.Since(began); err != nil || took != 4*time.Second {
			t.Errorf("took %v, %v", took, err)
		}
	})
}

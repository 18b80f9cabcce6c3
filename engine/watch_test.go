package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/run"
)

// pastRuns is a separate history: it keeps what it receives and what a test
// puts into it.
type pastRuns struct {
	mu      sync.Mutex
	records map[run.ID]*run.Record
}

func newPastRuns(records ...*run.Record) *pastRuns {
	p := &pastRuns{records: map[run.ID]*run.Record{}}
	for _, r := range records {
		p.records[r.Run] = r
	}
	return p
}

func (p *pastRuns) Committed(_ context.Context, n run.Notice) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n.Record != nil {
		p.records[n.Record.Run] = n.Record
	}
	return nil
}

func (p *pastRuns) Flush(context.Context) error { return nil }

func (p *pastRuns) Get(_ context.Context, id run.ID) (*run.Record, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if r := p.records[id]; r != nil {
		return r, nil
	}
	return nil, fmt.Errorf("history: %w", run.ErrUnknown)
}

func (p *pastRuns) List(_ context.Context, q run.Query) (run.Page, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var page run.Page
	for _, r := range p.records {
		if s := r.Summary(); q.Matches(&s) {
			page.Runs = append(page.Runs, s)
		}
	}
	slices.SortFunc(page.Runs, newestFirst)
	if len(page.Runs) > q.Size() {
		page.Runs = page.Runs[:q.Size()]
		page.Next = page.Runs[q.Size()-1].Run
	}
	return page, nil
}

// gated is a journal whose appends wait while it is shut.
type gated struct {
	Journal
	mu   sync.Mutex
	gate chan struct{} // closed while it is open
}

func newGated() *gated {
	g := &gated{Journal: memory.NewJournal(), gate: make(chan struct{})}
	close(g.gate)
	return g
}

func (g *gated) shut() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate = make(chan struct{})
}

func (g *gated) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	close(g.gate)
}

func (g *gated) Append(ctx context.Context, after uint64, commit []byte) (uint64, error) {
	g.mu.Lock()
	gate := g.gate
	g.mu.Unlock()
	select {
	case <-gate:
		return g.Journal.Append(ctx, after, commit)
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// onLoop runs f where it may look at what the loop owns.
func (r *rig) onLoop(f func()) {
	r.t.Helper()
	if err := r.command(context.Background(), f); err != nil {
		r.t.Fatal(err)
	}
}

func (r *rig) watch(id run.ID, seen uint64) (*run.Record, uint64) {
	r.t.Helper()
	record, version, err := r.Watch(context.Background(), id, seen)
	if err != nil {
		r.t.Fatalf("watch of %s: %v", id, err)
	}
	return record, version
}

// eventsOf counts the durable events of a run.
func eventsOf(t *testing.T, j Journal, id run.ID) uint64 {
	t.Helper()
	if r := fold(t, j).Runs[id]; r != nil {
		return r.Version
	}
	return 0
}

const twoTasksHCL = `
flow "f" {
  task "a" {
    plugin = "./m.wasm"
    input  = trigger.payload
  }
  task "b" {
    plugin = "./m.wasm"
    input  = task.a.output
  }
}`

func TestWatchFollowsARunToItsEnd(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: invokerFunc(takes(10 * time.Second))}, set)
		id := r.submit("f", `1`)
		synctest.Wait()
		start := time.Now()
		type change struct {
			After time.Duration
			A, B  run.State
			Done  bool
		}
		var changes []change
		var seen uint64
		for {
			record, version := r.watch(id, seen)
			if version <= seen {
				t.Fatalf("version %d follows %d", version, seen)
			}
			if durable := eventsOf(t, r.journal, id); version > durable && !record.State.Done() {
				t.Errorf("version %d is told and %d events are durable", version, durable)
			}
			seen = version
			c := change{time.Since(start), taskOf(t, record, "a").State, taskOf(t, record, "b").State, record.State.Done()}
			if n := len(changes); n == 0 || changes[n-1] != c {
				changes = append(changes, c)
			}
			if c.Done {
				break
			}
		}
		want := []change{
			{0, run.Running, run.Waiting, false},
			{10 * time.Second, run.Succeeded, run.Waiting, false},
			{10 * time.Second, run.Succeeded, run.Running, false},
			{20 * time.Second, run.Succeeded, run.Succeeded, false},
			{20 * time.Second, run.Succeeded, run.Succeeded, true},
		}
		if diff := cmp.Diff(want, changes); diff != "" {
			t.Errorf("the watcher saw other changes (-want +got):\n%s", diff)
		}
		if n := eventsOf(t, r.journal, id); n != 7 {
			t.Errorf("the run has %d events, want 7", n)
		}
		again, version := r.watch(id, seen)
		if version <= seen || again.State != run.Succeeded || time.Since(start) != 20*time.Second {
			t.Errorf("after its end the run is %s with version %d, and the watcher had seen %d", again.State, version, seen)
		}
		r.stop()
		if n := len(r.exec.watchers.byRun); n != 0 {
			t.Errorf("%d runs are still watched", n)
		}
	})
}

func TestVersionsCountTheEventsOfTheRun(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: invokerFunc(takes(10 * time.Second))}, set)
		id := r.submit("f", `1`)
		for range 2 {
			time.Sleep(5 * time.Second)
			if _, version := r.watch(id, 0); version != eventsOf(t, r.journal, id) {
				t.Errorf("version %d of a run with %d events", version, eventsOf(t, r.journal, id))
			}
			time.Sleep(5 * time.Second)
		}
		r.stop()
	})
}

func TestWatchOfRunsThatAreNotOpen(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		older := &run.Record{Run: run.NewID(time.Now()), Flow: "f", State: run.Failed}
		r := boot(t, Config{History: newPastRuns(older)}, set)
		finished := r.run("f", `1`).Run
		for id, want := range map[run.ID]run.State{finished: run.Succeeded, older.Run: run.Failed} {
			for _, seen := range []uint64{0, 7, 1 << 40} {
				record, version := r.watch(id, seen)
				if record.State != want || version <= seen {
					t.Errorf("after version %d the run is %s with version %d", seen, record.State, version)
				}
			}
		}
		for _, seen := range []uint64{0, 1} {
			if _, _, err := r.Watch(t.Context(), run.NewID(time.Now()), seen); !errors.Is(err, run.ErrUnknown) {
				t.Errorf("watch of an unknown run after version %d: %v", seen, err)
			}
		}
		r.stop()
	})
}

func TestWatchersThatGiveUpAreForgotten(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: invokerFunc(takes(10 * time.Second))}, set)
		id := r.submit("f", `1`)
		synctest.Wait()
		_, seen := r.watch(id, 0)
		stays := make(chan uint64)
		go func() {
			_, version := r.watch(id, seen)
			stays <- version
		}()
		why := errors.New("lost interest")
		ctx, leave := context.WithTimeoutCause(t.Context(), time.Second, why)
		defer leave()
		var leaving sync.WaitGroup
		for range 5 {
			leaving.Go(func() {
				if _, _, err := r.Watch(ctx, id, seen); !errors.Is(err, why) {
					t.Errorf("a watcher whose time is up is answered with %v", err)
				}
			})
		}
		synctest.Wait()
		r.onLoop(func() {
			if n := r.watching(id); n != 6 {
				t.Errorf("%d watchers wait, want 6", n)
			}
		})
		leaving.Wait()
		r.onLoop(func() {
			if n := r.watching(id); n != 1 {
				t.Errorf("%d watchers are left, want the one that stays", n)
			}
		})
		if version := <-stays; version != seen+1 {
			t.Errorf("the one that stays is told of version %d after %d", version, seen)
		}
		r.wait(id)
		r.stop()
		if n := len(r.exec.watchers.byRun); n != 0 {
			t.Errorf("%d runs are still watched", n)
		}
	})
}

// A run changes in memory before its journal has the events. Until then nobody
// may learn of it, in whatever way he asks.
func TestOnlyWhatIsDurableIsTold(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := newGated()
		r := boot(t, Config{Journal: journal, Invoker: invokerFunc(takes(10 * time.Second)), History: newPastRuns()}, set)
		id := r.submit("f", `1`)
		synctest.Wait()
		_, seen := r.watch(id, 0)
		asked := map[string]func(context.Context) (run.State, error){
			"Get":  func(ctx context.Context) (run.State, error) { return stateOf(r.Get(ctx, id)) },
			"Wait": func(ctx context.Context) (run.State, error) { return stateOf(r.Wait(ctx, id)) },
			"Watch": func(ctx context.Context) (run.State, error) {
				record, _, err := r.Watch(ctx, id, seen)
				return stateOf(record, err)
			},
			"List": func(ctx context.Context) (run.State, error) {
				page, err := r.List(ctx, run.Query{})
				if err != nil {
					return "", err
				}
				return page.Runs[0].State, nil
			},
		}
		var asking sync.WaitGroup
		inVain := func(when string, d time.Duration, names ...string) {
			for _, name := range names {
				asking.Go(func() {
					ctx, stop := context.WithTimeout(t.Context(), d)
					defer stop()
					if state, err := asked[name](ctx); !errors.Is(err, context.DeadlineExceeded) {
						t.Errorf("%s that is asked %s gives %s, %v", name, when, state, err)
					}
				})
			}
		}
		journal.shut()
		time.Sleep(9 * time.Second)
		for _, name := range []string{"Get", "List"} {
			if state, err := asked[name](t.Context()); state != run.Running || err != nil {
				t.Errorf("%s of a run whose events are all durable gives %s, %v", name, state, err)
			}
		}
		inVain("before anything is left to be told", 5*time.Second, "Watch", "Wait")
		time.Sleep(2 * time.Second)
		inVain("when the end of a task is not durable", 5*time.Second, "Get", "Watch", "List", "Wait")
		time.Sleep(10 * time.Second)
		inVain("when the end of the run is not durable", 5*time.Second, "Get", "Watch", "List", "Wait")
		asking.Wait()
		if n := eventsOf(t, journal, id); n != seen {
			t.Fatalf("the journal has %d events of the run, it was shut at %d", n, seen)
		}
		for name, ask := range asked {
			asking.Go(func() {
				if state, err := ask(t.Context()); state != run.Succeeded || err != nil {
					t.Errorf("%s gives %s, %v once all is durable", name, state, err)
				}
			})
		}
		synctest.Wait()
		journal.open()
		asking.Wait()
		r.stop()
		if n := len(r.exec.watchers.byRun); n != 0 {
			t.Errorf("%d runs are still watched", n)
		}
	})
}

func stateOf(record *run.Record, err error) (run.State, error) {
	if err != nil {
		return "", err
	}
	return record.State, nil
}

func TestWatchersLearnThatTheEngineStops(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Invoker: invokerFunc(takes(time.Hour))}, set)
		id := r.submit("f", `1`)
		synctest.Wait()
		_, seen := r.watch(id, 0)
		answers := make(chan error, 2)
		go func() { _, _, err := r.Watch(t.Context(), id, seen); answers <- err }()
		go func() { _, err := r.Wait(t.Context(), id); answers <- err }()
		synctest.Wait()
		r.crash()
		for range 2 {
			if err := <-answers; !errors.Is(err, ErrStopped) {
				t.Errorf("one who waits is answered with %v", err)
			}
		}
	})
}

func TestWaitFindsARunWhereverItIs(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		older := &run.Record{Run: run.NewID(time.Now()), Flow: "f", State: run.Canceled}
		history := newPastRuns(older)
		r := boot(t, Config{
			Invoker: invokerFunc(takes(10 * time.Second)), History: history, Observers: []Observation{{Observer: history}},
		}, set)
		r.keepFinished(1) // the last one is all that it keeps
		first, second := r.submit("f", `1`), r.submit("f", `2`)
		start := time.Now()
		if record := r.wait(first); record.State != run.Succeeded || time.Since(start) != 20*time.Second {
			t.Errorf("the open run is %s after %s", record.State, time.Since(start))
		}
		synctest.Wait()
		for id, want := range map[run.ID]run.State{first: run.Succeeded, second: run.Succeeded, older.Run: run.Canceled} {
			for name, ask := range map[string]func(context.Context, run.ID) (*run.Record, error){"Wait": r.Wait, "Get": r.Get} {
				if record, err := ask(t.Context(), id); err != nil || record.Run != id || record.State != want {
					t.Errorf("%s of a run that is over gives %+v, %v", name, record, err)
				}
			}
		}
		r.onLoop(func() {
			if n := r.finishedKept(); n > 2 { // the last one, and the one before until its end was told
				t.Errorf("%d endings are kept", n)
			}
		})
		if _, err := r.Wait(t.Context(), run.NewID(time.Now())); !errors.Is(err, run.ErrUnknown) {
			t.Errorf("an unknown run is answered with %v", err)
		}
		r.stop()
	})
}

// A history that is behind has not been given the runs that ended last: the engine keeps
// them for as long, whatever they take.
func TestRunsAreFoundWhileTheHistoryIsBehind(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		history := newPastRuns()
		slow := stuck{make(chan struct{})}
		r := boot(t, Config{
			Invoker: invokerFunc(takes(time.Second)), History: history, Observers: []Observation{{Observer: slow, RunsOnly: true}, {Observer: history}},
		}, set)
		r.keepFinished(1)
		var ids []run.ID
		for range 5 {
			ids = append(ids, r.submit("f", `1`))
			time.Sleep(3 * time.Second)
		}
		for _, id := range ids {
			if record, err := r.Wait(t.Context(), id); err != nil || record.State != run.Succeeded {
				t.Errorf("a run of which the history does not know gives %+v, %v", record, err)
			}
		}
		close(slow.letGo)
		r.wait(r.submit("f", `1`))
		synctest.Wait()
		r.onLoop(func() {
			if n := r.finishedKept(); n > 2 {
				t.Errorf("%d endings are kept once they were told", n)
			}
		})
		r.stop()
	})
}

func TestWaitersThatGiveUpAreForgotten(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		journal := newGated()
		r := boot(t, Config{Journal: journal, Invoker: invokerFunc(takes(10 * time.Second))}, set)
		id := r.submit("f", `1`)
		giveUp := func(want int) {
			t.Helper()
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			defer stop()
			if _, err := r.Wait(ctx, id); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a waiter whose time is up is answered with %v", err)
			}
			r.onLoop(func() {
				end := r.exec.finished.get(id)
				if o := r.Engine.exec.open[id]; o != nil {
					end = o.completion
				}
				if n := len(end.waiting); n != want {
					t.Errorf("%d waiters are left, want %d", n, want)
				}
			})
		}
		stays := make(chan *run.Record)
		go func() { stays <- r.wait(id) }()
		synctest.Wait()
		giveUp(1) // while it is open
		journal.shut()
		time.Sleep(30 * time.Second)
		giveUp(1) // when it has ended and the journal does not know yet
		journal.open()
		if record := <-stays; record.State != run.Succeeded {
			t.Errorf("the one that stays is told that the run is %s", record.State)
		}
		r.stop()
	})
}

// An engine whose observers are behind takes no commands. That must not hold up
// those who do not want an answer any more.
func TestThoseWhoGiveUpDoNotWaitForACongestedEngine(t *testing.T) {
	t.Parallel()
	set := load(t, twoTasksHCL)
	synctest.Test(t, func(t *testing.T) {
		observer := stuck{make(chan struct{})}
		r := boot(t, Config{Observers: []Observation{{Observer: observer}}, Invoker: invokerFunc(takes(24 * time.Hour))}, set)
		id := r.submit("f", `1`)
		synctest.Wait()
		_, seen := r.watch(id, 0)
		ctx, stop := context.WithTimeout(t.Context(), time.Hour)
		defer stop()
		answers := make(chan error, 2)
		go func() { _, _, err := r.Watch(ctx, id, seen); answers <- err }()
		go func() { _, err := r.Wait(ctx, id); answers <- err }()
		for congested := false; !congested; {
			ctx, stop := context.WithTimeout(t.Context(), time.Second)
			_, err := r.Submit(ctx, run.Request{Flow: "f"})
			congested = errors.Is(err, context.DeadlineExceeded)
			stop()
		}
		time.Sleep(2 * time.Hour)
		for range 2 {
			select {
			case err := <-answers:
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("one whose time is up is answered with %v", err)
				}
			default:
				t.Error("one whose time is up still waits for the engine")
			}
		}
		close(observer.letGo)
		r.onLoop(func() {
			if len(r.exec.watchers.byRun) != 0 || len(r.Engine.exec.open[id].completion.waiting) != 0 {
				t.Errorf("those who gave up are still there: %v, %v", r.exec.watchers.byRun, r.Engine.exec.open[id].completion.waiting)
			}
		})
		r.crash()
	})
}

// Whoever watches a large run is not shown each of its changes: that would take
// longer than the run.
func TestALargeRunIsNotShownAtEachChange(t *testing.T) {
	t.Parallel()
	set := load(t, "flow \"f\" {\n"+forEach(`trigger.payload`, "max_parallel = 1")+"}\n")
	items := "[" + strings.TrimSuffix(strings.Repeat("1,", 3000), ",") + "]"
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 1, Invoker: invokerFunc(takes(time.Millisecond))}, set)
		id := r.submit("f", items)
		var seen uint64
		looks, large := 0, 0
		for {
			record, version, err := r.Watch(t.Context(), id, seen)
			if err != nil {
				t.Fatal(err)
			}
			if record.State.Done() {
				break
			}
			if version <= seen {
				t.Fatalf("version %d after %d", version, seen)
			}
			looks++
			if len(record.Tasks) > 2000 {
				large++
			}
			seen = version
		}
		// The last thousand items take a second, and a look at them 20 ms and more.
		if large > 60 || large < 20 {
			t.Errorf("it was shown %d times, %d of these while it was large", looks, large)
		}
		r.stop()
	})
}

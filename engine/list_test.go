package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

const twoFlowsHCL = `
flow "quick" {
  task "a" {
    plugin = "./m.wasm"
    input  = trigger.payload
  }
}
flow "slow" {
  task "a" { plugin = "./m.wasm" }
}`

// quickAndSlow gives the flow "slow" an hour, and lets the other fail for the
// payload "bad".
func quickAndSlow(ctx context.Context, c run.Call) (run.Result, error) {
	if c.Flow == "slow" {
		return takes(time.Hour)(ctx, c)
	}
	if string(c.Input) == `"bad"` {
		return fails(run.OutcomeFailed, false), nil
	}
	return gives(c.Input), nil
}

// pages reads a whole answer, page by page. between is called after each.
func (r *rig) pages(q run.Query, between func()) []run.Summary {
	r.t.Helper()
	var all []run.Summary
	for {
		page, err := r.List(context.Background(), q)
		if err != nil {
			r.t.Fatal(err)
		}
		if len(page.Runs) > q.Size() {
			r.t.Errorf("a page has %d runs, %d were asked for", len(page.Runs), q.Size())
		}
		if page.Next != "" && len(page.Runs) == 0 {
			r.t.Fatal("an empty page says that there are more")
		}
		all = append(all, page.Runs...)
		if page.Next == "" {
			return all
		}
		q.Before = page.Next
		between()
	}
}

func idsOf(all []run.Summary) []run.ID {
	var ids []run.ID
	for _, s := range all {
		ids = append(ids, s.Run)
	}
	return ids
}

func TestListPutsPresentAndPastTogether(t *testing.T) {
	t.Parallel()
	set := load(t, twoFlowsHCL)
	synctest.Test(t, func(t *testing.T) {
		history := newPastRuns(&run.Record{Run: run.NewID(time.Now()), Flow: "gone", State: run.Canceled, CreatedAt: time.Now().UTC()})
		r := boot(t, Config{Invoker: invokerFunc(quickAndSlow), History: history, Observers: []Observation{{Observer: history}}}, set)
		for _, flow := range []string{"slow", "quick", "slow", "quick", "quick"} {
			time.Sleep(time.Second)
			r.submit(flow, `null`)
		}
		time.Sleep(time.Second) // two open ones, three that are in both places, one of long ago
		all := r.pages(run.Query{}, nil)
		var got []string
		for i, s := range all {
			got = append(got, fmt.Sprint(s.Flow, " ", s.State))
			if i > 0 && s.Run >= all[i-1].Run {
				t.Errorf("run %s comes after %s", s.Run, all[i-1].Run)
			}
			if s.Flow == "quick" {
				record, err := r.Get(t.Context(), s.Run)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(record.Summary(), s); diff != "" {
					t.Errorf("the summary differs from that of the record:\n%s", diff)
				}
			}
			if s.Flow == "slow" && (s.FinishedAt != nil || s.Trigger.Kind != run.TriggerManual || s.CreatedAt.IsZero()) {
				t.Errorf("summary of an open run: %+v", s)
			}
		}
		want := []string{"quick succeeded", "quick succeeded", "slow running", "quick succeeded", "slow running", "gone canceled"}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("the list differs (-want +got):\n%s", diff)
		}
		r.crash()
	})
}

// Runs that are open, have just finished or are history only, some of them in two
// places: whatever is asked, the answer is that of one plain list.
func TestListAgreesWithAPlainList(t *testing.T) {
	t.Parallel()
	set := load(t, twoFlowsHCL)
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 3))
		synctest.Test(t, func(t *testing.T) {
			history := newPastRuns()
			r := boot(t, Config{Workers: 1000, Invoker: invokerFunc(quickAndSlow), History: history, Observers: []Observation{{Observer: history}}}, set)
			r.keepFinished(1000 * rng.IntN(20))
			start := time.Now()
			for range 40 {
				id := r.submit([]string{"quick", "quick", "slow"}[rng.IntN(3)], []string{`"good"`, `"bad"`}[rng.IntN(2)])
				if rng.IntN(4) == 0 {
					synctest.Wait()
					if err := r.Cancel(t.Context(), id, ""); err != nil && !errors.Is(err, ErrFinished) {
						t.Fatal(err)
					}
				}
				time.Sleep(time.Duration(rng.IntN(3)) * time.Millisecond)
			}
			synctest.Wait()
			took := time.Since(start)
			plain := r.plain(history)
			for range 30 {
				q := randomQuery(rng, start, took, plain)
				want := slices.DeleteFunc(slices.Clone(plain), func(s run.Summary) bool { return !q.Matches(&s) })
				if diff := cmp.Diff(idsOf(want), idsOf(r.pages(q, func() {}))); diff != "" {
					t.Errorf("seed %d, %+v (-want +got):\n%s", seed, q, diff)
				}
			}
			r.crash()
		})
	}
}

// plain is every run, newest first.
func (r *rig) plain(history *pastRuns) []run.Summary {
	all := map[run.ID]run.Summary{}
	history.mu.Lock()
	defer history.mu.Unlock()
	for _, record := range history.records {
		all[record.Run] = record.Summary()
	}
	r.onLoop(func() {
		for id, o := range r.exec.open {
			all[id] = o.run.Record(nil).Summary()
		}
	})
	var plain []run.Summary
	for _, s := range all {
		plain = append(plain, s)
	}
	slices.SortFunc(plain, newestFirst)
	return plain
}

func randomQuery(rng *rand.Rand, start time.Time, took time.Duration, all []run.Summary) run.Query {
	moment := func() time.Time { return start.Add(time.Duration(rng.Int64N(int64(took) + 1))) }
	q := run.Query{Limit: 1 + rng.IntN(12)}
	if rng.IntN(3) == 0 {
		q.Flow = []string{"quick", "slow", "none"}[rng.IntN(3)]
	}
	if rng.IntN(2) == 0 {
		states := []run.State{run.Running, run.Succeeded, run.Failed, run.Canceled, run.Pending}
		rng.Shuffle(len(states), func(i, j int) { states[i], states[j] = states[j], states[i] })
		q.States = states[:1+rng.IntN(3)]
	}
	if rng.IntN(3) == 0 {
		q.Since = moment()
	}
	if rng.IntN(3) == 0 {
		q.Until = moment()
	}
	if rng.IntN(3) == 0 {
		q.Before = all[rng.IntN(len(all))].Run
	}
	return q
}

// Someone who turns the pages while runs finish, and others come, sees each run
// that was there when he began, once.
func TestPagesAreStableWhileRunsFinish(t *testing.T) {
	t.Parallel()
	set := load(t, twoFlowsHCL)
	synctest.Test(t, func(t *testing.T) {
		history := newPastRuns()
		r := boot(t, Config{
			Workers: 100, History: history, Observers: []Observation{{Observer: history}},
			Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
				seconds, err := strconv.Atoi(string(c.Input))
				if err != nil {
					return run.Result{}, err
				}
				return takes(time.Duration(seconds)*time.Second)(ctx, c)
			}),
		}, set)
		r.keepFinished(2000)
		var want []run.ID
		for i := range 30 {
			want = append(want, r.submit("quick", fmt.Sprint(i*7%20)))
			time.Sleep(time.Millisecond)
		}
		time.Sleep(3 * time.Second)
		slices.Sort(want)
		slices.Reverse(want)
		moved := 0
		got := r.pages(run.Query{Limit: 4}, func() {
			time.Sleep(2 * time.Second) // some finish and become history
			r.submit("quick", `1`)
			moved++
		})
		if moved < 7 {
			t.Errorf("all came on %d pages", moved+1)
		}
		if diff := cmp.Diff(want, idsOf(got)); diff != "" {
			t.Errorf("the pages differ from what was there (-want +got):\n%s", diff)
		}
		r.stop()
	})
}

func TestHistoryThatFailsFailsTheList(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{History: brokenHistory{}})
		if page, err := r.List(t.Context(), run.Query{}); !errors.Is(err, errBroken) {
			t.Errorf("half a list is given as a whole one: %+v, %v", page, err)
		}
		if _, err := r.Get(t.Context(), run.NewID(time.Now())); !errors.Is(err, errBroken) {
			t.Errorf("a run that cannot be looked for is answered with %v", err)
		}
		r.stop()
	})
}

var errBroken = errors.New("the index is damaged")

type brokenHistory struct{}

func (brokenHistory) Get(context.Context, run.ID) (*run.Record, error)  { return nil, errBroken }
func (brokenHistory) List(context.Context, run.Query) (run.Page, error) { return run.Page{}, errBroken }

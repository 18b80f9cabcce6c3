package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// starts notes when attempts start, and how many are under way at once.
type starts struct {
	gauge
	mu    sync.Mutex
	at    []time.Time
	tasks []string
}

func (s *starts) around(f func(context.Context, run.Call) (run.Result, error)) invokerFunc {
	return s.gauge.around(func(ctx context.Context, call run.Call) (run.Result, error) {
		s.mu.Lock()
		s.at = append(s.at, time.Now())
		s.tasks = append(s.tasks, call.Task)
		s.mu.Unlock()
		return f(ctx, call)
	})
}

// since gives when attempts started, from a time on.
func (s *starts) since(begin time.Time) []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []time.Duration
	for _, at := range s.at {
		out = append(out, at.Sub(begin))
	}
	return out
}

// within is the largest number of starts in any time of a length.
func within(at []time.Duration, length time.Duration) int {
	slices.Sort(at)
	most, first := 0, 0
	for i := range at {
		for at[i]-at[first] >= length {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// limitedHCL has limits, and flows of tasks that all have them.
func limitedHCL(limit string, flows int, tasks int, more string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "limit \"l\" {\n%s\n}\n", limit)
	for f := range flows {
		fmt.Fprintf(&b, "flow \"f%d\" {\n", f)
		for t := range tasks {
			fmt.Fprintf(&b, "  task \"t%d\" {\n    plugin = \"./m.wasm\"\n    limit = limit.l\n%s\n  }\n", t, more)
		}
		b.WriteString("}\n")
	}
	b.WriteString("flow \"free\" {\n  task \"free\" { plugin = \"./m.wasm\" }\n}\n")
	return b.String()
}

// wantNoLimitsHeld holds that all slots are given back, and nothing waits.
func (r *rig) wantNoLimitsHeld() {
	r.t.Helper()
	for name, s := range r.exec.limits.byName {
		if s.slots.Running() != 0 || s.slots.Waiting() != 0 || s.runs != 0 {
			r.t.Errorf("limit %s: %d slots are held, %d tasks wait, %d runs refer to it", name, s.slots.Running(), s.slots.Waiting(), s.runs)
		}
	}
}

func TestLimitBoundsAttemptsOverFlows(t *testing.T) {
	t.Parallel()
	set := load(t, limitedHCL("concurrency = 3", 4, 5, ""))
	synctest.Test(t, func(t *testing.T) {
		s, free := new(starts), new(starts)
		r := boot(t, Config{Workers: 16, Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			if c.Flow == "free" {
				return free.around(takes(time.Second))(ctx, c)
			}
			return s.around(takes(time.Second))(ctx, c)
		})}, set)
		begin := time.Now()
		var ids []run.ID
		for f := range 4 {
			ids = append(ids, r.submit(fmt.Sprint("f", f), `null`))
		}
		if record := r.run("free", `null`); record.FinishedAt.Sub(record.CreatedAt) != time.Second {
			t.Error("a task without a limit has waited for those that have one")
		}
		for _, id := range ids {
			r.wait(id)
		}
		if s.most != 3 || time.Since(begin) != 7*time.Second {
			t.Errorf("%d attempts at once, and all took %s: want 3 and 7s", s.most, time.Since(begin))
		}
		r.stop()
		r.wantNoLimitsHeld()
	})
}

// What waits for a retry holds no slot.
func TestLimitIsFreeBetweenAttempts(t *testing.T) {
	t.Parallel()
	set := load(t, limitedHCL("concurrency = 1", 2, 1, `
		retry {
		  attempts = 2
		  backoff  = "constant"
		  delay    = "10s"
		}`))
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		r := boot(t, Config{Invoker: s.around(func(ctx context.Context, c run.Call) (run.Result, error) {
			if _, err := takes(time.Second)(ctx, c); err != nil || c.Attempt == 1 {
				return fails(run.OutcomeFailed, true), err
			}
			return gives(c.Input), nil
		})}, set)
		begin := time.Now()
		ids := []run.ID{r.submit("f0", `null`), r.submit("f1", `null`)}
		for _, id := range ids {
			r.wait(id)
		}
		if diff := cmp.Diff([]time.Duration{0, time.Second, 11 * time.Second, 12 * time.Second}, s.since(begin)); diff != "" || s.most != 1 {
			t.Errorf("%d at once: %s", s.most, diff)
		}
		r.stop()
		r.wantNoLimitsHeld()
	})
}

// Tasks that want the same limits, named in any order, cannot wait for each other.
func TestSeveralLimitsAreTakenTogether(t *testing.T) {
	t.Parallel()
	set := load(t, `
limit "a" { concurrency = 2 }
limit "b" { concurrency = 1 }
flow "ab" {
  task "ab" {
    plugin = "./m.wasm"
    limit  = [limit.a, limit.b]
  }
}
flow "ba" {
  task "ba" {
    plugin = "./m.wasm"
    limit  = [limit.b, limit.a]
  }
}
flow "a" {
  task "a" {
    plugin = "./m.wasm"
    limit  = limit.a
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		r := boot(t, Config{Workers: 8, Invoker: s.around(takes(time.Second))}, set)
		begin := time.Now()
		var ids []run.ID
		for range 3 {
			ids = append(ids, r.submit("ab", `null`), r.submit("ba", `null`))
		}
		ids = append(ids, r.submit("a", `null`), r.submit("a", `null`)) // one fits beside each of those
		for _, id := range ids {
			r.wait(id)
		}
		want := []time.Duration{0, 0, time.Second, time.Second, 2 * time.Second, 3 * time.Second, 4 * time.Second, 5 * time.Second}
		if diff := cmp.Diff(want, s.since(begin)); diff != "" {
			t.Error(diff)
		}
		r.stop()
		r.wantNoLimitsHeld()
	})
}

// Who gets a slot that becomes free: the highest priority, then flows in turn, then
// who was first.
func TestFreedSlotsGoByPriorityAndTurn(t *testing.T) {
	t.Parallel()
	set := load(t, `
limit "l" { concurrency = 1 }
flow "many" {
  task "m1" {
    plugin = "./m.wasm"
    limit  = limit.l
  }
  task "m2" {
    plugin = "./m.wasm"
    limit  = limit.l
  }
  task "m3" {
    plugin = "./m.wasm"
    limit  = limit.l
  }
}
flow "one" {
  task "o" {
    plugin = "./m.wasm"
    limit  = limit.l
  }
}
flow "urgent" {
  priority = 10
  task "u" {
    plugin = "./m.wasm"
    limit  = limit.l
  }
}`)
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		r := boot(t, Config{Workers: 8, Invoker: s.around(takes(time.Second))}, set)
		var ids []run.ID
		for _, flow := range []string{"many", "one", "urgent"} {
			ids = append(ids, r.submit(flow, `null`))
		}
		for _, id := range ids {
			r.wait(id)
		}
		if diff := cmp.Diff([]string{"m1", "u", "m2", "o", "m3"}, s.tasks); diff != "" {
			t.Error(diff)
		}
		r.stop()
	})
}

// An attempt that hangs gives its slot back when it is given up.
func TestStuckAttemptsGiveTheirSlotsBack(t *testing.T) {
	t.Parallel()
	set := load(t, "limit \"l\" { concurrency = 1 }\n"+strings.ReplaceAll(hangsHCL, `timeout = "5s"`, "timeout = \"5s\"\n    limit = limit.l"))
	synctest.Test(t, func(t *testing.T) {
		host := newDeaf()
		r := boot(t, Config{Workers: 4, Invoker: host}, set)
		first := r.submit("f", `1`)
		id := r.submit("again", `1`)
		r.wait(first)
		time.Sleep(time.Second)
		if n := host.hanging(); n != 2 {
			t.Errorf("%d calls hang, want the one that was given up and the one after it", n)
		}
		close(host.letGo)
		if record := r.wait(id); record.State != run.Succeeded {
			t.Errorf("the run that came after it is %s", record.State)
		}
		r.stop()
		r.wantNoLimitsHeld()
	})
}

func TestCanceledTasksGiveTheirSlotsBack(t *testing.T) {
	t.Parallel()
	set := load(t, limitedHCL("concurrency = 1", 2, 2, ""))
	for name, cancel := range map[string]func(r *rig, id run.ID) error{
		"run": func(r *rig, id run.ID) error { return r.Cancel(context.Background(), id, "") },
		"tasks": func(r *rig, id run.ID) error {
			err := r.CancelTask(context.Background(), id, run.TaskRef{Task: "t1"}, "") // waits for the limit
			if err == nil {
				err = r.CancelTask(context.Background(), id, run.TaskRef{Task: "t0"}, "") // has the slot
			}
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				s := new(starts)
				r := boot(t, Config{Invoker: s.around(takes(time.Minute))}, set)
				id, other := r.submit("f0", `null`), r.submit("f1", `null`)
				time.Sleep(time.Second)
				if err := cancel(r, id); err != nil {
					t.Error(err)
				}
				wantStates(t, r.wait(id), map[string]run.State{"": run.Canceled, "t0": run.Canceled, "t1": run.Canceled})
				record := r.wait(other)
				if took := record.FinishedAt.Sub(record.CreatedAt); took != 2*time.Minute+time.Second {
					t.Errorf("the other run took %s, want its two minutes after the first second", took)
				}
				r.stop()
				r.wantNoLimitsHeld()
			})
		})
	}
}

// Whatever ends the process, and however often: the limits hold, and every run
// ends. Nothing is lost of a slot and none is given out twice.
func TestLimitsHoldThroughCrashes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(seed, 6))
			limits := []string{"limit.a", "limit.b", "limit.c"}
			source := "limit \"a\" { concurrency = 1 }\nlimit \"b\" { concurrency = 2 }\nlimit \"c\" { rate = \"3/5s\" }\n"
			of := map[string][]string{}
			for f := range 3 {
				source += fmt.Sprintf("flow \"f%d\" {\n", f)
				for i := range 4 {
					var its []string
					for _, l := range limits {
						if rng.IntN(2) == 0 {
							its = append(its, l)
						}
					}
					name := fmt.Sprintf("t%d%d", f, i)
					of[name] = its
					source += fmt.Sprintf(`
  task %q {
    plugin   = "./m.wasm"
    limit    = [%s]
    priority = %d
    retry {
      attempts = 50
      backoff  = "constant"
      delay    = "1s"
    }
  }
`, name, strings.Join(its, ", "), rng.IntN(2))
				}
				source += "  task \"stays\" {\n    plugin  = \"./m.wasm\"\n    retries = 50\n  }\n}\n"
			}
			set := load(t, source)
			synctest.Test(t, func(t *testing.T) {
				under := map[string]*starts{"limit.a": {}, "limit.b": {}, "limit.c": {}}
				config := Config{Workers: 20, Journal: memory.NewJournal(), Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
					call := takes(time.Duration(1+len(c.Task)*c.Attempt%3) * time.Second)
					if c.Attempt == 1 {
						call = func(context.Context, run.Call) (run.Result, error) { return fails(run.OutcomeFailed, true), nil }
					}
					if c.Task == "stays" { // the run is open, and so its starts are known
						call = takes(time.Minute)
					}
					for _, l := range of[c.Task] {
						call = under[l].around(call)
					}
					return call(ctx, c)
				})}
				r := boot(t, config, set)
				begin := time.Now()
				var ids []run.ID
				for i := range 9 {
					ids = append(ids, r.submit(fmt.Sprint("f", i%3), `null`))
				}
				for range 3 {
					time.Sleep(time.Duration(rng.IntN(4000)) * time.Millisecond)
					r.crash()
					r = boot(t, config, set)
				}
				for _, id := range ids {
					if record := r.wait(id); record.State != run.Succeeded {
						t.Errorf("a run is %s: %v", record.State, record.Error)
					}
				}
				r.stop()
				r.wantNoLimitsHeld()
				if a, b := under["limit.a"].most, under["limit.b"].most; a > 1 || b > 2 {
					t.Errorf("%d and %d attempts were under way at once, want 1 and 2 at most", a, b)
				}
				if n := within(under["limit.c"].since(begin), 5*time.Second); n > 3 {
					t.Errorf("%d attempts started within 5s, want 3 at most", n)
				}
			})
		})
	}
}

func TestRate(t *testing.T) {
	t.Parallel()
	set := load(t, limitedHCL(`rate = "3/10s"`, 1, 1, ""))
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		r := boot(t, Config{Workers: 16, Invoker: s.around(takes(time.Second))}, set)
		begin := time.Now()
		var ids []run.ID
		for _, at := range []time.Duration{0, 4, 6, 6, 6, 6, 11, 30, 30, 30, 30} {
			time.Sleep(time.Until(begin.Add(at * time.Second)))
			ids = append(ids, r.submit("f0", `null`))
		}
		for _, id := range ids {
			r.wait(id)
		}
		const sec = time.Second
		want := []time.Duration{0, 4 * sec, 6 * sec, 10 * sec, 14 * sec, 16 * sec, 20 * sec, 30 * sec, 30 * sec, 30 * sec, 40 * sec}
		if diff := cmp.Diff(want, s.since(begin)); diff != "" {
			t.Error(diff)
		}
		r.stop()
		r.wantNoLimitsHeld()
	})
}

// Against random arrivals, the rate is kept exactly, and nobody waits longer than it
// asks for.
func TestRateIsExact(t *testing.T) {
	t.Parallel()
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 7))
		count, per := 1+rng.IntN(5), time.Duration(1+rng.IntN(20))*time.Second
		set := load(t, limitedHCL(fmt.Sprintf("rate = \"%d/%s\"", count, per), 1, 1, ""))
		synctest.Test(t, func(t *testing.T) {
			s := new(starts)
			r := boot(t, Config{Workers: 100, Invoker: s.around(takes(0))}, set)
			begin := time.Now()
			var want []time.Duration
			for range 60 {
				time.Sleep(time.Duration(rng.IntN(int(2 * per / time.Duration(count)))))
				due := time.Since(begin)
				if n := len(want); n >= count {
					due = max(due, want[n-count]+per)
				}
				want = append(want, due)
				r.submit("f0", `null`)
			}
			time.Sleep(time.Hour)
			if diff := cmp.Diff(want, s.since(begin)); diff != "" {
				t.Errorf("%d/%s: %s", count, per, diff)
			}
			r.stop()
		})
	}
}

// The rate counts attempts, also those of one task, and what a crash interrupted.
func TestRateCountsRetriesAndRestarts(t *testing.T) {
	t.Parallel()
	set := load(t, limitedHCL(`rate = "2/10s"`, 1, 1, "retries = 9"))
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		config := Config{Journal: memory.NewJournal(), Invoker: s.around(takes(time.Minute))}
		r := boot(t, config, set)
		begin := time.Now()
		id, other := r.submit("f0", `null`), r.submit("f0", `null`)
		time.Sleep(3 * time.Second)
		r.crash()
		r = boot(t, config, set) // both are to be made again
		time.Sleep(2 * time.Minute)
		r.wait(id)
		r.wait(other)
		if diff := cmp.Diff([]time.Duration{0, 0, 10 * time.Second, 10 * time.Second}, s.since(begin)); diff != "" {
			t.Error(diff)
		}
		r.stop()
	})
}

// The rate counts elapsed time, and a clock that was wrong by years keeps nothing
// waiting longer than it says.
func TestRateAndClocksThatAreSet(t *testing.T) {
	t.Parallel()
	set2 := load(t, limitedHCL(`rate = "1/1m"`, 1, 1, ""))
	for _, by := range []time.Duration{-time.Hour, time.Hour, -4 * 365 * 24 * time.Hour, 4 * 365 * 24 * time.Hour} {
		for _, restart := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				clock, s := scheduler.NewVirtualClock(epoch), new(starts)
				config := Config{Journal: memory.NewJournal(), Clock: clock, Invoker: s.around(func(ctx context.Context, c run.Call) (run.Result, error) {
					<-ctx.Done() // so that the runs stay open
					return takes(0)(ctx, c)
				})}
				r := boot(t, config, set2)
				synctest.Wait()
				r.submit("f0", `null`)
				r.submit("f0", `null`)
				synctest.Wait()
				pass(clock, 20*time.Second, time.Second)
				if restart {
					r.crash()
					s.at = nil
				}
				if set(clock, by); restart {
					r = boot(t, config, set2)
					synctest.Wait()
				}
				pass(clock, 30*time.Second, time.Second)
				before := len(s.since(epoch))
				pass(clock, 40*time.Second, time.Second)
				after := len(s.since(epoch))
				switch {
				case !restart && (before != 1 || after != 2):
					t.Errorf("%s: %d starts after 50s and %d after 90s, want 1 and 2", by, before, after)
				case restart && after == 0:
					t.Errorf("%s: nothing has started within 70s of the restart", by)
				}
				r.crash()
			})
		}
	}
}

// Numbers that are deployed hold at once, for runs in progress as well.
func TestLimitsThatAreDeployedAnew(t *testing.T) {
	t.Parallel()
	one, three, gone := load(t, limitedHCL("concurrency = 1", 1, 6, "")), load(t, limitedHCL("concurrency = 3", 1, 6, "")), load(t, "flow \"free\" {\n  task \"free\" { plugin = \"./m.wasm\" }\n}\n")
	paced := load(t, limitedHCL("rate = \"1/1h\"", 1, 6, ""))
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		r := boot(t, Config{Workers: 16, Invoker: s.around(takes(10 * time.Second))}, one)
		begin := time.Now()
		id := r.submit("f0", `null`)
		time.Sleep(5 * time.Second)
		if err := r.Deploy(t.Context(), three); err != nil { // two more at 5s
			t.Error(err)
		}
		time.Sleep(time.Second)
		if err := r.Deploy(t.Context(), one); err != nil { // none before all but one have ended, at 15s
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if err := r.Deploy(t.Context(), gone); err != nil { // one at a time continues: at 25s
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if err := r.Deploy(t.Context(), paced); err != nil { // at 26s, beside the other
			t.Error(err)
		}
		r.wait(id)
		const sec = time.Second
		want := []time.Duration{0, 5 * sec, 5 * sec, 15 * sec, 25 * sec, 26 * sec}
		if diff := cmp.Diff(want, s.since(begin)); diff != "" {
			t.Error(diff)
		}
		if err := r.Deploy(t.Context(), gone); err != nil {
			t.Error(err)
		}
		r.stop()
		if len(r.exec.limits.byName) != 0 || r.exec.clock.timers.Len() != 0 {
			t.Errorf("limits that nothing refers to are kept: %v, with %d timers", r.exec.limits.byName, r.exec.clock.timers.Len())
		}
	})
}

// A limit that was declared when a run began is known after a restart, whatever is
// deployed then.
func TestLimitOfARunWhoseFlowIsGone(t *testing.T) {
	t.Parallel()
	set := load(t, limitedHCL("concurrency = 2", 1, 6, ""))
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		config := Config{Journal: memory.NewJournal(), Workers: 16, Invoker: s.around(takes(time.Second))}
		r := boot(t, config, set)
		id := r.submit("f0", `null`)
		time.Sleep(1500 * time.Millisecond)
		r.crash()
		r = boot(t, config)
		if record := r.wait(id); record.State != run.Succeeded || s.most != 2 {
			t.Errorf("the run is %s, with %d attempts at once", record.State, s.most)
		}
		r.stop()
		if len(r.exec.limits.byName) != 0 {
			t.Errorf("limits that nothing refers to are kept: %v", r.exec.limits.byName)
		}
	})
}

// Numbers of rates hold at once as well, over starts that were counted before.
func TestRateThatIsDeployedAnew(t *testing.T) {
	t.Parallel()
	hourly, quick := load(t, limitedHCL(`rate = "1/1h"`, 1, 4, "")), load(t, limitedHCL(`rate = "2/10s"`, 1, 4, ""))
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		r := boot(t, Config{Invoker: s.around(takes(0))}, hourly)
		begin := time.Now()
		id := r.submit("f0", `null`)
		time.Sleep(5 * time.Second)
		if err := r.Deploy(t.Context(), quick); err != nil {
			t.Error(err)
		}
		r.wait(id)
		if diff := cmp.Diff([]time.Duration{0, 5 * time.Second, 10 * time.Second, 15 * time.Second}, s.since(begin)); diff != "" {
			t.Error(diff)
		}
		r.stop()
	})
}

// Until limits are deployed after a restart, the numbers are those of the runs that
// were accepted last.
func TestLimitsOfRunsBeforeAnythingIsDeployed(t *testing.T) {
	t.Parallel()
	one, three := load(t, limitedHCL("concurrency = 1", 1, 6, "")), load(t, limitedHCL("concurrency = 3", 1, 6, ""))
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		config := Config{Journal: memory.NewJournal(), Workers: 16, Invoker: s.around(takes(time.Second))}
		r := boot(t, config, one)
		ids := []run.ID{r.submit("f0", `null`)}
		time.Sleep(time.Millisecond)
		if err := r.Deploy(t.Context(), three); err != nil {
			t.Error(err)
		}
		ids = append(ids, r.submit("f0", `null`))
		r.crash()
		s.most = 0
		r = boot(t, config)
		for _, id := range ids {
			r.wait(id)
		}
		if s.most != 3 {
			t.Errorf("%d attempts were under way at once, want 3", s.most)
		}
		r.stop()
	})
}

// A clock that was set back is noticed a little later: what starts meanwhile comes
// after what has started before.
func TestStartsStayInOrder(t *testing.T) {
	t.Parallel()
	q := &limitState{limit: &flows.Limit{Rate: flows.Rate{Count: 3, Per: time.Minute}}}
	for _, at := range []time.Duration{0, time.Second, -time.Hour, 2 * time.Second} {
		q.started(epoch.Add(at))
	}
	want := []time.Time{epoch, epoch.Add(time.Second), epoch.Add(time.Second), epoch.Add(2 * time.Second)}
	if diff := cmp.Diff(want, q.starts); diff != "" {
		t.Error(diff)
	}
	for i := range 1000 {
		q.started(epoch.Add(time.Duration(i) * time.Minute))
	}
	if len(q.starts) > 2*3 {
		t.Errorf("%d starts are kept for a rate of 3", len(q.starts))
	}
}

func TestLimitsAreTold(t *testing.T) {
	t.Parallel()
	set := load(t, `
limit "b" {
  concurrency = 2
}
limit "a" {
  concurrency = 5
  rate        = "2/15m"
}
`+strings.ReplaceAll(crowdHCL(5), `plugin = "./m.wasm" }`, "\n plugin = \"./m.wasm\"\n limit = [limit.a, limit.b]\n}"))
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 8, Invoker: invokerFunc(takes(time.Minute))}, set)
		r.submit("crowd", `null`)
		begin := time.Now()
		synctest.Wait()
		got, err := r.Limits(t.Context())
		want := []run.LimitStatus{
			{Limit: "a", Concurrency: 5, InUse: 2, Rate: "2/15m", Next: begin.Add(15 * time.Minute).UTC(), Waiting: 3},
			{Limit: "b", Concurrency: 2, InUse: 2, Waiting: 3},
		}
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%v, (-want +got):\n%s", err, diff)
		}
		r.crash()
	})
}

// The limits that a host is given hold from the first attempt after a restart.
func TestLimitsAreKnownBeforeRunsGoOn(t *testing.T) {
	t.Parallel()
	one, three := load(t, limitedHCL("concurrency = 1", 1, 6, "")), load(t, limitedHCL("concurrency = 3", 1, 6, ""))
	synctest.Test(t, func(t *testing.T) {
		s := new(starts)
		config := Config{Journal: memory.NewJournal(), Workers: 16, Invoker: s.around(takes(time.Second))}
		r := boot(t, config, three)
		id := r.submit("f0", `null`)
		r.crash()
		s.most, config.Limits = 0, one.Limits
		r = boot(t, config)
		r.wait(id)
		if s.most != 1 {
			t.Errorf("%d attempts were under way at once, want 1", s.most)
		}
		r.stop()
	})
}

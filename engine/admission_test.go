package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
)

// waits lets a call wait in its host before it works.
func waits(reason run.WaitReason, d time.Duration, work func(context.Context, run.Call) (run.Result, error)) func(context.Context, run.Call) (run.Result, error) {
	return func(ctx context.Context, call run.Call) (run.Result, error) {
		place := run.PlaceOf(ctx)
		place.Leave(reason)
		select {
		case <-time.After(d):
		case <-ctx.Done():
			return takes(time.Hour)(ctx, call)
		}
		if place.Return(ctx) != nil {
			return takes(time.Hour)(ctx, call)
		}
		return work(ctx, call)
	}
}

const itemsHCL = `
flow "one" {
  task "work" {
    plugin   = "./m.wasm"
    for_each = range(12)
    timeout  = "1500ms"
  }
}
flow "two" {
  task "work" {
    plugin   = "./m.wasm"
    for_each = range(12)
    timeout  = "1500ms"
  }
}`

// The time of an attempt counts its work and its sleep, and nothing of what it waits for
// because others have it.
func TestTimeoutsCountNoWaiting(t *testing.T) {
	t.Parallel()
	set := load(t, `
flow "f" {
  task "work" {
    plugin  = "./m.wasm"
    timeout = "1500ms"
  }
}`)
	for _, c := range []struct {
		reason run.WaitReason
		waits  time.Duration
		works  time.Duration
		ends   time.Duration // after which time the attempt ends
		state  run.State
	}{
		{run.WaitMemory, time.Hour, time.Second, time.Hour + time.Second, run.Succeeded},
		{run.WaitModule, time.Hour, time.Second, time.Hour + time.Second, run.Succeeded},
		{run.WaitModule, time.Hour, 2 * time.Second, time.Hour + 1500*time.Millisecond, run.Failed},
		{run.WaitSleep, time.Second, 400 * time.Millisecond, 1400 * time.Millisecond, run.Succeeded},
		{run.WaitSleep, time.Second, time.Second, 1500 * time.Millisecond, run.Failed},
		{run.WaitSleep, time.Hour, 0, 1500 * time.Millisecond, run.Failed},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := boot(t, Config{Invoker: guests{"work": waits(c.reason, c.waits, takes(c.works))}}, set)
			record := r.run("f", `null`)
			queued := 0.0
			if !c.reason.Timed() {
				queued = float64(c.waits.Milliseconds())
			}
			if took := record.FinishedAt.Sub(record.CreatedAt); took != c.ends || record.State != c.state || record.Tasks[0].QueuedMS != queued {
				t.Errorf("%+v: %s after %v, of which %v ms do not count", c, record.State, took, record.Tasks[0].QueuedMS)
			}
			r.stop()
		})
	}
}

// A call that returns from a sleep waits for a place, and its time stands still again.
func TestCallsWaitForTheirPlaceAgain(t *testing.T) {
	t.Parallel()
	set := load(t, itemsHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 2, Invoker: guests{"work": waits(run.WaitSleep, 700*time.Millisecond, takes(700*time.Millisecond))}}, set)
		record := r.run("one", `null`)
		// All sleep at once, then two at a time work.
		if took := record.FinishedAt.Sub(record.CreatedAt); record.State != run.Succeeded || took != 700*time.Millisecond+6*700*time.Millisecond {
			t.Errorf("%s after %v: %v", record.State, took, record.Error)
		}
		r.stop()
	})
}

// Two flows that share a plugin, each with more items than there are workers.
func TestItemsOfTwoFlowsDoNotTimeOut(t *testing.T) {
	t.Parallel()
	set := load(t, itemsHCL)
	synctest.Test(t, func(t *testing.T) {
		all := &gauge{}
		r := boot(t, Config{Workers: 8, Invoker: guests{"work": all.around(takes(time.Second))}}, set)
		ids := []run.ID{r.submit("one", `null`), r.submit("two", `null`)}
		for _, id := range ids {
			if record := r.wait(id); record.State != run.Succeeded || record.Tasks[0].Attempts > 1 {
				t.Errorf("%s: %v", record.State, record.Error)
			}
		}
		if all.most > 9 {
			t.Errorf("%d computed at once", all.most)
		}
		r.stop()
	})
}

// The first task of another flow starts at once, however many long loops compute.
func TestNewcomersDoNotWaitForLongLoops(t *testing.T) {
	t.Parallel()
	set := load(t, itemsHCL)
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 8, Timeout: time.Hour, Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			if c.Flow == "one" {
				<-ctx.Done()
			}
			return takes(time.Second)(ctx, c)
		})}, set)
		r.submit("one", `null`)
		synctest.Wait()
		before := time.Now()
		record := r.wait(r.submit("two", `null`))
		if started := record.Tasks[0].StartedAt; started.Sub(before) != 0 || record.State != run.Succeeded {
			t.Errorf("started after %v: %s, %v", started.Sub(before), record.State, record.Error)
		}
		r.crash()
	})
}

// While a call waits for memory, no other of its flow begins, and those of others do.
func TestAFlowWaitsForMemoryWithOneCall(t *testing.T) {
	t.Parallel()
	set := load(t, itemsHCL)
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		began := map[string]int{}
		r := boot(t, Config{Workers: 8, Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			mu.Lock()
			began[c.Flow]++
			first := began[c.Flow] == 1
			mu.Unlock()
			if c.Flow == "one" && first {
				return waits(run.WaitMemory, time.Minute, takes(0))(ctx, c)
			}
			return takes(time.Second)(ctx, c)
		})}, set)
		one, two := r.submit("one", `null`), r.submit("two", `null`)
		if record := r.wait(two); record.State != run.Succeeded {
			t.Errorf("%s: %v", record.State, record.Error)
		}
		mu.Lock()
		if began["one"] > 8 { // as many as began before the first was known to wait
			t.Errorf("%d calls of the waiting flow began", began["one"])
		}
		mu.Unlock()
		if record := r.wait(one); record.State != run.Succeeded {
			t.Errorf("%s: %v", record.State, record.Error)
		}
		r.stop()
	})
}

// The bounds change while attempts are under way, and 0 workers pause.
func TestTune(t *testing.T) {
	t.Parallel()
	set := load(t, itemsHCL)
	synctest.Test(t, func(t *testing.T) {
		sleeping := &gauge{}
		r := boot(t, Config{Workers: -1, Invoker: guests{"work": sleeping.around(waits(run.WaitSleep, time.Second, takes(0)))}}, set)
		id := r.submit("one", `null`)
		check := func(want int) {
			t.Helper()
			synctest.Wait()
			sleeping.mu.Lock()
			defer sleeping.mu.Unlock()
			if sleeping.now != want {
				t.Errorf("%d attempts are under way, want %d", sleeping.now, want)
			}
		}
		time.Sleep(time.Hour)
		check(0)
		r.Tune(Tuning{Workers: 1, InFlight: 2})
		check(2)
		r.Tune(Tuning{Workers: 1, InFlight: 5})
		check(5)
		r.Tune(Tuning{Workers: -1, InFlight: 5})
		time.Sleep(2 * time.Second)
		check(0) // those that were under way have come to their end
		r.Tune(Tuning{Workers: 2})
		check(7)
		if record := r.wait(id); record.State != run.Succeeded {
			t.Errorf("%s: %v", record.State, record.Error)
		}
		r.stop()
	})
}

// An attempt that is given up while it waits for a place frees all that it held.
func TestAttemptsThatAreGivenUpWhileTheyWait(t *testing.T) {
	t.Parallel()
	set := load(t, itemsHCL)
	synctest.Test(t, func(t *testing.T) {
		var hang sync.Once
		release := make(chan struct{})
		r := boot(t, Config{Workers: 1, Invoker: invokerFunc(func(ctx context.Context, c run.Call) (run.Result, error) {
			stuck := false
			hang.Do(func() { stuck = true })
			if stuck {
				place := run.PlaceOf(ctx)
				place.Leave(run.WaitMemory)
				<-release
				err := place.Return(ctx)
				place.Leave(run.WaitSleep)
				return run.Result{}, errors.Join(err, fmt.Errorf("too late"))
			}
			return takes(time.Second)(ctx, c)
		})}, set)
		id := r.submit("one", `null`)
		time.Sleep(time.Minute)
		if err := r.Cancel(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
		r.wait(id)
		close(release)
		synctest.Wait()
		if !r.exec.places.Empty() {
			t.Errorf("places are left: %+v", r.exec.places)
		}
		if record := r.run("two", `null`); record.State != run.Succeeded {
			t.Errorf("%s: %v", record.State, record.Error)
		}
		r.stop()
	})
}

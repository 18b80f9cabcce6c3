package scheduler

import (
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A herd of one-offs and slow workers: all are called, once. go-quartz lost 1 815
// of 2 000.
func TestHerdWithSlowWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const herd = 2000
		r := boot(t, Config{Workers: 3})
		var counts [herd]atomic.Int32
		for i := range counts {
			must(r.At(r.start.Add(time.Minute), func(ctx context.Context, _ Fire) error {
				counts[i].Add(1)
				return wait(ctx, time.Second)
			}))
		}
		time.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := r.Stats(); got.Running != 3 || got.Waiting > 2*maxBatch || got.Blocked == 0 || got.Armed == 0 {
			t.Errorf("under way: %+v", got)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		for i := range counts {
			if n := counts[i].Load(); n != 1 {
				t.Errorf("function %d was called %d times", i, n)
			}
		}
		if got := r.Stats(); got.Fired != herd || got.Armed+got.Waiting+got.Running != 0 {
			t.Errorf("at the end: %+v", got)
		}
	})
}

// A scheduler that is paused for ten minutes loses no schedule, and starts no
// storm: each entry has at most the call that waited and one for what it missed.
func TestPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const entries = 3 * maxBatch
		r := boot(t, Config{Workers: Unlimited, Limit: entries})
		r.SetWorkers(0)
		var counts [entries]int
		for i := range counts {
			must(r.Every(time.Minute, func(context.Context, Fire) error {
				counts[i]++ // never beside itself
				return nil
			}))
		}
		r.expect(10*time.Minute + time.Second)
		if got := r.Stats(); got.Blocked == 0 || got.Waiting > 2*maxBatch {
			t.Errorf("paused: %+v", got)
		}
		r.SetWorkers(Unlimited)
		synctest.Wait()
		before := counts
		for i, n := range before {
			if n < 1 || n > 2 {
				t.Errorf("entry %d was called %d times", i, n)
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, n := range counts {
			if n != before[i]+1 {
				t.Errorf("a minute later entry %d was called %d times more", i, n-before[i])
			}
		}
	})
}

func TestSetWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 2})
		for range 20 {
			r.at(time.Minute, "call", 10*time.Second)
		}
		running := func(want int) {
			t.Helper()
			synctest.Wait()
			if got := r.Stats().Running; got != want {
				t.Errorf("%d calls run, want %d", got, want)
			}
		}
		time.Sleep(time.Minute)
		running(2)
		r.SetWorkers(5)
		running(5)
		time.Sleep(5 * time.Second)
		r.SetWorkers(1)
		running(5) // until they end
		time.Sleep(10 * time.Second)
		running(1)
		r.SetWorkers(0)
		time.Sleep(time.Hour)
		running(0)
		r.SetWorkers(Unlimited)
		running(14)
		if calls := r.pass(time.Minute); len(calls) != 20 {
			t.Errorf("%d calls", len(calls))
		}
	})
}

func TestUnlimited(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const herd = 1000
		r := boot(t, Config{Workers: Unlimited})
		for range herd {
			r.at(time.Minute, "call", time.Hour)
		}
		if calls := r.pass(time.Minute); len(calls) != herd || r.Stats().Running != herd {
			t.Errorf("%d calls at once, %+v", len(calls), r.Stats())
		}
		r.pass(2 * time.Hour)
	})
}

// rakanalh/scheduler panics when it is stopped twice.
func TestClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 1})
		r.at(time.Minute, "under way", time.Hour)
		r.at(time.Minute, "waits", 0)
		r.at(time.Hour, "later", 0)
		r.pass(time.Minute)
		var closing sync.WaitGroup
		for range 3 {
			closing.Go(func() {
				if err := r.Close(t.Context()); err != nil {
					t.Errorf("Close: %v", err)
				}
			})
		}
		closing.Wait()
		if time.Since(r.start) != time.Hour+time.Minute {
			t.Errorf("closed after %v", time.Since(r.start))
		}
		r.expect(24 * time.Hour)
		if err := <-r.ended; err != nil {
			t.Errorf("Run after Close: %v", err)
		}
		if _, err := r.At(r.start, r.notes("too late", 0)); !errors.Is(err, ErrClosed) {
			t.Errorf("At: %v", err)
		}
		if err := r.Run(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("Run again: %v", err)
		}
	})
}

func TestCloseIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{})
		var cause error
		must(r.At(r.start, func(ctx context.Context, _ Fire) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return nil
		}))
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := r.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(r.start) != time.Minute {
			t.Errorf("Close: %v after %v", err, time.Since(r.start))
		}
		if err := <-r.ended; err != nil || !errors.Is(cause, ErrClosed) {
			t.Errorf("Run: %v; the call: %v", err, cause)
		}
	})
}

func TestCloseFromACall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{})
		var closed error
		must(r.At(r.start, func(ctx context.Context, _ Fire) error {
			ctx, cancel := context.WithTimeout(ctx, time.Second)
			defer cancel()
			closed = r.Close(ctx)
			return nil
		}))
		if err := <-r.ended; err != nil || !errors.Is(closed, context.DeadlineExceeded) {
			t.Errorf("Run: %v, Close: %v", err, closed)
		}
	})
}

func TestCloseWithoutRun(t *testing.T) {
	t.Parallel()
	s := New(Config{})
	for range 2 {
		if err := s.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
	if err := s.Run(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("Run: %v", err)
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := boot(t, Config{Workers: 1, OnError: func(f Fire, err error) { t.Errorf("reported: %v", err) }})
		if err := r.Run(t.Context()); !errors.Is(err, ErrRunning) {
			t.Errorf("second Run: %v", err)
		}
		for range 3 * maxBatch { // more than may wait
			r.at(time.Minute, "call", time.Hour)
		}
		r.expect(2*time.Minute, fired{"call", time.Minute})
		r.kill()
		if err := <-r.ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run: %v", err)
		}
		r.expect(24 * time.Hour)
	})
}

// One million entries added and canceled while it runs, none of them the head:
// memory and goroutines stay as they were (gocron#777, timingwheel#49, htask).
func TestSchedulerChurnIsFlat(t *testing.T) {
	s := New(Config{})
	ended := make(chan error, 1)
	go func() { ended <- s.Run(t.Context()) }()
	nothing := func(context.Context, Fire) error { return nil }
	due := time.Now().Add(time.Hour)
	for range 100 {
		must(s.At(due, nothing))
	}
	used := func() (heap uint64, goroutines int) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc, runtime.NumGoroutine()
	}
	heap, goroutines := used()
	for i := range 1_000_000 {
		e, err := s.At(due.Add(time.Duration(1+i%977)*time.Second), nothing)
		if err != nil || !e.Cancel() {
			t.Fatal(i, err)
		}
	}
	if after, running := used(); after > heap+256<<10 || running > goroutines {
		t.Errorf("from %d bytes and %d goroutines to %d and %d", heap, goroutines, after, running)
	}
	if err := s.Close(t.Context()); err != nil || <-ended != nil {
		t.Error(err)
	}
}

func TestPoolKeepsOrder(t *testing.T) {
	t.Parallel()
	p := newPool(1)
	var got, want []int64
	next := int64(0)
	for round := range 50 {
		for range 7 * (round % 60) {
			next++
			p.push(call{nominal: time.Unix(next, 0)})
			want = append(want, next)
		}
		for range min(p.waiting(), 5*(round%80)) {
			got = append(got, p.pop().nominal.Unix())
		}
	}
	for p.waiting() > 0 {
		got = append(got, p.pop().nominal.Unix())
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

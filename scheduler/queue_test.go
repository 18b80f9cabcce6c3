package scheduler

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fired is one value as Run handed it out.
type fired struct {
	value string
	after time.Duration // since the start of the test
}

// runner runs a queue within a synctest bubble and notes what it fires.
type runner struct {
	queue *Queue[string]
	start time.Time
	stop  context.CancelFunc
	done  chan error

	mu    sync.Mutex
	fired []fired
}

// startQueue runs a queue; before, when set, is called with each batch first.
func startQueue(t *testing.T, before func(batch []string)) *runner {
	ctx, stop := context.WithCancel(t.Context())
	r := &runner{queue: NewQueue[string](Options{}), start: time.Now(), stop: stop, done: make(chan error, 1)}
	go func() {
		r.done <- r.queue.Run(ctx, func(batch []string) {
			if before != nil {
				before(batch)
			}
			r.note(batch)
		})
	}()
	synctest.Wait()
	return r
}

func (r *runner) note(batch []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, value := range batch {
		r.fired = append(r.fired, fired{value, time.Since(r.start)})
	}
}

func (r *runner) add(t *testing.T, after time.Duration, value string) Timer {
	t.Helper()
	return add(t, r.queue, r.start.Add(after), value)
}

// expect lets time pass, ends Run and compares all that fired.
func (r *runner) expect(t *testing.T, wait time.Duration, want ...fired) {
	t.Helper()
	time.Sleep(wait)
	synctest.Wait()
	r.stop()
	if err := <-r.done; !errors.Is(err, context.Canceled) {
		t.Errorf("Run returned %v", err)
	}
	if !slices.Equal(r.fired, want) {
		t.Errorf("fired %v, want %v", r.fired, want)
	}
}

func TestRunOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startQueue(t, nil)
		r.add(t, 3*time.Second, "c")
		r.add(t, 1*time.Second, "a1")
		r.add(t, 2*time.Second, "b")
		r.add(t, 1*time.Second, "a2")
		r.add(t, -time.Hour, "past")
		r.add(t, 1*time.Second, "a3")
		r.expect(t, time.Minute,
			fired{"past", 0},
			fired{"a1", time.Second}, fired{"a2", time.Second}, fired{"a3", time.Second},
			fired{"b", 2 * time.Second}, fired{"c", 3 * time.Second})
	})
}

func TestRunIsRearmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startQueue(t, nil)
		late := r.add(t, time.Hour, "late")
		r.add(t, 2*time.Hour, "last")
		time.Sleep(90 * time.Second) // Run sleeps towards the hour
		r.add(t, 100*time.Second, "earlier")
		synctest.Wait()
		if !r.queue.Reset(late, r.start.Add(95*time.Second)) {
			t.Error("reset of a waiting timer")
		}
		r.expect(t, 3*time.Hour,
			fired{"late", 95 * time.Second}, fired{"earlier", 100 * time.Second}, fired{"last", 2 * time.Hour})
	})
}

// Reset keeps the place among equal instants: what was declared first comes first.
func TestRunResetLater(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startQueue(t, nil)
		head := r.add(t, time.Second, "head")
		r.add(t, 3*time.Second, "other")
		r.queue.Reset(head, r.start.Add(3*time.Second))
		r.expect(t, time.Minute, fired{"head", 3 * time.Second}, fired{"other", 3 * time.Second})
	})
}

func TestRunNeverEarly(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startQueue(t, nil)
		dues := []time.Duration{1, 999_999_999, 1_000_000_001, 59*time.Second + 1, 60*time.Second + 1, 25 * time.Hour}
		var want []fired
		for _, due := range dues {
			r.add(t, due, due.String())
			want = append(want, fired{due.String(), due}) // to the nanosecond
		}
		r.expect(t, 26*time.Hour, want...)
	})
}

func TestCancelBeforeFire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startQueue(t, nil)
		head := r.add(t, time.Second, "head")
		r.add(t, 2*time.Second, "kept")
		tail := r.add(t, 3*time.Second, "tail")
		if !r.queue.Cancel(head) || !r.queue.Cancel(tail) || r.queue.Cancel(head) {
			t.Error("cancel must work once")
		}
		if r.queue.Len() != 1 {
			t.Errorf("%d timers left, want 1", r.queue.Len())
		}
		r.expect(t, time.Minute, fired{"kept", 2 * time.Second})
	})
}

func TestCancelAfterFire(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startQueue(t, nil)
		spent := r.add(t, time.Second, "first")
		time.Sleep(2 * time.Second)
		r.add(t, 3*time.Second, "second") // takes the slot of first
		if r.queue.Cancel(spent) || r.queue.Reset(spent, r.start) {
			t.Error("the handle of a value that came out did something")
		}
		r.expect(t, time.Minute, fired{"first", time.Second}, fired{"second", 3 * time.Second})
	})
}

func TestBlockedFireLosesNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 3 * maxBatch
		r := startQueue(t, func(batch []string) {
			if len(batch) > maxBatch {
				t.Errorf("batch of %d", len(batch))
			}
			time.Sleep(time.Minute)
		})
		r.add(t, time.Second, "blocks")
		var want []fired
		want = append(want, fired{"blocks", 61 * time.Second})
		for i := range n {
			due := time.Duration(2+i%2) * time.Second
			r.add(t, due, due.String())
		}
		for i := range n {
			value := "2s"
			if i >= n/2 {
				value = "3s"
			}
			batch := time.Duration(i/maxBatch) * time.Minute
			want = append(want, fired{value, 121*time.Second + batch})
		}
		r.expect(t, time.Hour, want...)
	})
}

// rakanalh/scheduler panics when it is stopped during a fire.
func TestRunEndsWhileFiring(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var r *runner
		r = startQueue(t, func([]string) { r.stop() })
		r.add(t, time.Second, "one")
		r.add(t, 2*time.Second, "two")
		r.expect(t, time.Minute, fired{"one", time.Second})
		if r.queue.Len() != 1 {
			t.Fatalf("%d values left, want 1", r.queue.Len())
		}

		ctx, stop := context.WithCancel(t.Context())
		var rest []string
		err := r.queue.Run(ctx, func(batch []string) {
			rest = append(rest, batch...)
			stop()
		})
		if !errors.Is(err, context.Canceled) || !slices.Equal(rest, []string{"two"}) {
			t.Errorf("a later Run gave %v, %v", rest, err)
		}
	})
}

func TestRunRetainsNothing(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	q := NewQueue[*int](Options{})
	add(t, q, time.Now(), new(int))
	var kept []*int // against the rules, to look at the batch afterwards
	err := q.Run(ctx, func(batch []*int) {
		kept = batch
		stop()
	})
	if !errors.Is(err, context.Canceled) || len(kept) != 1 || kept[0] != nil {
		t.Errorf("batch %v after the call, %v", kept, err)
	}
	if *q.timers.values.at(0) != nil {
		t.Error("a value that came out is still held")
	}
}

func TestSecondRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := startQueue(t, nil)
		err := r.queue.Run(t.Context(), func([]string) { t.Error("fired by the second Run") })
		if !errors.Is(err, ErrRunning) {
			t.Errorf("second Run: %v", err)
		}
		if err := r.queue.Run(t.Context(), nil); !errors.Is(err, ErrRunning) {
			t.Errorf("the refused Run ended the first one's claim: %v", err)
		}
		r.add(t, time.Second, "still runs")
		r.expect(t, time.Minute, fired{"still runs", time.Second})
	})
}

func TestLimit(t *testing.T) {
	t.Parallel()
	q := NewQueue[int](Options{Limit: 2})
	now := time.Now()
	first := add(t, q, now, 1)
	add(t, q, now, 2)
	var full *LimitError
	if _, err := q.Add(now, 3); !errors.As(err, &full) || full.Limit != 2 {
		t.Fatalf("third value: %v", err)
	}
	q.Cancel(first)
	add(t, q, now, 3)
	if q.Len() != 2 {
		t.Errorf("%d values", q.Len())
	}
}

// TestConcurrentUse is for the race detector, and counts: every value fires or
// was canceled, exactly once.
func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	const goroutines, each = 8, 500
	q := NewQueue[int](Options{})
	ctx, stop := context.WithCancel(t.Context())
	var counts [goroutines * each]int
	done := make(chan error, 1)
	left := make(chan int, goroutines*each)
	go func() {
		done <- q.Run(ctx, func(batch []int) {
			for _, v := range batch {
				counts[v]++
				left <- v
			}
		})
	}()
	var canceled [goroutines * each]bool
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Go(func() {
			for i := range each {
				v := g*each + i
				timer, err := q.Add(time.Now().Add(time.Duration(i%7)*time.Millisecond), v)
				if err != nil {
					t.Error(err)
				}
				q.Reset(timer, time.Now().Add(time.Duration(i%3)*time.Millisecond))
				if i%5 == 0 && q.Cancel(timer) {
					canceled[v] = true
					left <- v
				}
			}
		})
	}
	wg.Wait()
	for range goroutines * each {
		<-left
	}
	stop()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	for v, n := range counts {
		if canceled[v] != (n == 0) || n > 1 {
			t.Errorf("value %d fired %d times, canceled %v", v, n, canceled[v])
		}
	}
}

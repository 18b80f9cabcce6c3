package scheduler

import (
	"context"
	"slices"
	"testing"
	"time"
)

// scripted is a waker whose clock moves to where it was told to sleep, and which
// notes that.
type scripted struct {
	reading
	slept []int64
	woken int
	stop  func()
}

func (s *scripted) now() reading { return s.reading }

func (s *scripted) sleep(until int64) {
	s.slept = append(s.slept, until)
	if until == never {
		s.stop()
		return
	}
	s.wall = until
}

func (s *scripted) wake()  { s.woken++ }
func (s *scripted) close() {}

// An idle queue sleeps forever, and one with a value until that is due.
func TestIdleQueueIsNotWoken(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	w := &scripted{stop: stop}
	q := NewQueue[int](Options{})
	const year = 365 * 24 * time.Hour
	add(t, q, time.Unix(0, int64(year)), 1)
	add(t, q, time.Unix(0, int64(2*year)), 2)
	q.run(ctx, never, w, func([]int) {})
	if want := []int64{int64(year), int64(2 * year), never}; !slices.Equal(w.slept, want) {
		t.Errorf("slept until %v, want %v", w.slept, want)
	}
}

// Only what comes before all that the owner knows of wakes it, and once.
func TestOwnerIsWokenWhenNeeded(t *testing.T) {
	t.Parallel()
	w := &scripted{}
	q := NewQueue[int](Options{Accuracy: 10})
	q.claim(w)
	add(t, q, time.Unix(0, 75), 1)
	if w.woken != 0 {
		t.Error("an owner that does not sleep was woken")
	}
	q.due(make([]int, 0, 1), 0) // it sleeps until 80
	late := add(t, q, time.Unix(0, 90), 2)
	add(t, q, time.Unix(0, 71), 3) // on the same point of the grid
	q.Reset(late, time.Unix(0, 100))
	if w.woken != 0 {
		t.Error("the owner was woken for nothing")
	}
	q.Reset(late, time.Unix(0, 70))
	add(t, q, time.Unix(0, 60), 4)
	if w.woken != 1 {
		t.Errorf("the owner was woken %d times, want once", w.woken)
	}
	q.release()
	add(t, q, time.Unix(0, 50), 5)
	if w.woken != 1 {
		t.Error("an owner that has gone was woken")
	}
}

// On the machine's own clock and by its own timers, whatever those are. Timing
// wheels fire 27 to 54 % of their timers early.
func TestNeverEarly(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	q := NewQueue[time.Time](Options{})
	const n = 2000
	start := time.Now()
	for i := range n {
		due := start.Add(time.Duration(i*i%n) * 50 * time.Microsecond)
		add(t, q, due, due)
	}
	left := n
	q.Run(ctx, func(batch []time.Time) {
		now := time.Now().UnixNano()
		for _, due := range batch {
			if now < due.UnixNano() {
				t.Errorf("%d ns early", due.UnixNano()-now)
			}
		}
		if left -= len(batch); left == 0 {
			stop()
		}
	})
	if left != 0 {
		t.Errorf("%d of %d did not come out", left, n)
	}
}

// wakers are those for the wall clock that there are on this system.
func wakers(t *testing.T) map[string]func(context.Context) waker {
	t.Helper()
	return map[string]func(context.Context) waker{
		"runtime": func(ctx context.Context) waker { return newTimerWaker(ctx) },
		"system":  newWallWaker,
	}
}

func TestWakers(t *testing.T) {
	t.Parallel()
	for name, start := range wakers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			w := start(ctx)
			defer w.close()

			until := time.Now().Add(3 * time.Millisecond).UnixNano()
			for w.now().wall < until { // it may wake for no reason
				w.sleep(until)
			}
			w.sleep(until) // is past
			w.sleep(-1)

			w.wake()
			w.sleep(never)

			go w.wake()
			w.sleep(never)

			go stop()
			for ctx.Err() == nil {
				w.sleep(never)
			}
		})
	}
}

// What was added while the owner was about to sleep must not wait: a lost wake-up
// would let this test hang.
func TestNoWakeUpIsLost(t *testing.T) {
	t.Parallel()
	for name, start := range wakers(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, stop := context.WithCancel(t.Context())
			q := NewQueue[int](Options{})
			came := make(chan int)
			ended := make(chan error, 1)
			go func() {
				ended <- q.run(ctx, never, start(ctx), func(batch []int) { came <- batch[0] })
			}()
			for i := range 20_000 {
				add(t, q, time.Unix(0, int64(i)), i)
				if got := <-came; got != i {
					t.Fatalf("%d came out, want %d", got, i)
				}
			}
			stop()
			<-ended
		})
	}
}

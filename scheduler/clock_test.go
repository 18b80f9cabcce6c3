package scheduler

import (
	"context"
	"errors"
	"math"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func TestVirtualClock(t *testing.T) {
	t.Parallel()
	c := NewVirtualClock(epoch)
	c.Advance(time.Hour)
	if got := c.Now(); got != epoch.Add(time.Hour) {
		t.Errorf("after an hour it is %v", got)
	}
	c.Set(epoch.AddDate(-1, 0, 0))
	if got := c.Now(); got != epoch.AddDate(-1, 0, 0) {
		t.Errorf("set back a year, it is %v", got)
	}
	c.reach(nanos(epoch))
	c.reach(nanos(epoch) - 1)
	if got := c.Now(); got != epoch {
		t.Errorf("it has reached %v", got)
	}
}

func TestJump(t *testing.T) {
	t.Parallel()
	at := func(wall, elapsed time.Duration) reading { return reading{nanos(epoch) + int64(wall), elapsed} }
	for _, tt := range []struct {
		name string
		now  reading
		want time.Duration
	}{
		{"time passes", at(time.Hour, time.Hour), 0},
		{"set forward", at(time.Hour+5*time.Second, 5*time.Second), time.Hour},
		{"set back", at(-time.Hour+5*time.Second, 5*time.Second), -time.Hour},
		{"slewed for a day", at(24*time.Hour, 24*time.Hour+43*time.Second), 0},
		{"read twice", at(0, 0), 0},
	} {
		if got := tt.now.jump(at(0, 0)); got != tt.want {
			t.Errorf("%s: jumped by %v, want %v", tt.name, got, tt.want)
		}
	}
}

// simulate runs a queue to an instant and notes what comes out, and when by the
// clock.
func simulate(t *testing.T, q *Queue[string], c *VirtualClock, start, end time.Time) []fired {
	t.Helper()
	var got []fired
	err := q.RunUntil(t.Context(), end, func(batch []string) {
		for _, value := range batch {
			got = append(got, fired{value, c.Now().Sub(start)})
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestRunUntil(t *testing.T) {
	t.Parallel()
	c := NewVirtualClock(epoch)
	q := NewQueue[string](Options{Clock: c})
	add(t, q, epoch.Add(72*time.Hour), "at the end")
	add(t, q, epoch.Add(72*time.Hour+1), "after it")
	add(t, q, epoch.Add(time.Nanosecond), "soon")
	add(t, q, epoch.Add(-time.Hour), "past")
	got := simulate(t, q, c, epoch, epoch.Add(72*time.Hour))
	want := []fired{{"past", 0}, {"soon", 1}, {"at the end", 72 * time.Hour}}
	if !slices.Equal(got, want) {
		t.Errorf("came out: %v, want %v", got, want)
	}
	if got := simulate(t, q, c, epoch, epoch); len(got) != 0 || c.Now() != epoch.Add(72*time.Hour) {
		t.Errorf("run to the past: %v, clock at %v", got, c.Now())
	}
}

// A value that is added by what came out comes out in the same simulation.
func TestRunUntilFollowsWhatIsAdded(t *testing.T) {
	t.Parallel()
	c := NewVirtualClock(epoch)
	q := NewQueue[int](Options{Clock: c})
	add(t, q, epoch, 0)
	var last int
	err := q.RunUntil(t.Context(), epoch.Add(100*time.Hour), func(batch []int) {
		last = batch[0]
		add(t, q, c.Now().Add(time.Hour), last+1)
	})
	if err != nil || last != 100 {
		t.Errorf("the last value was %d, %v", last, err)
	}
}

func TestRunUntilOnTheWallClock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		q := NewQueue[string](Options{})
		add(t, q, start.Add(time.Minute), "in time")
		add(t, q, start.Add(time.Hour), "too late")
		var got []string
		err := q.RunUntil(t.Context(), start.Add(2*time.Minute), func(batch []string) { got = append(got, batch...) })
		if err != nil || !slices.Equal(got, []string{"in time"}) || time.Since(start) != 2*time.Minute {
			t.Errorf("came out: %v, %v, after %v", got, err, time.Since(start))
		}
	})
}

func TestRunUntilEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithCancel(t.Context())
	c := NewVirtualClock(epoch)
	q := NewQueue[int](Options{Clock: c})
	add(t, q, epoch.Add(time.Second), 1)
	add(t, q, epoch.Add(time.Hour), 2)
	err := q.RunUntil(ctx, epoch.Add(2*time.Hour), func([]int) { stop() })
	if !errors.Is(err, context.Canceled) || q.Len() != 1 {
		t.Errorf("%v with %d values left", err, q.Len())
	}
}

// 10 000 intervals, each from the one before: no drift at all. carlescere/scheduler
// drifted 752 µs with each.
func TestIntervalsDoNotDrift(t *testing.T) {
	t.Parallel()
	const interval = 250 * time.Millisecond
	every, err := NewEvery(interval, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := NewVirtualClock(epoch)
	q := NewQueue[time.Time](Options{Clock: c})
	add(t, q, epoch, epoch)
	fires := 0
	err = q.RunUntil(t.Context(), epoch.Add(10_000*interval), func(batch []time.Time) {
		for _, nominal := range batch {
			c.Advance(97 * time.Microsecond) // what looking at it takes
			fires++
			next, _ := every.Next(nominal)
			add(t, q, next, next)
		}
	})
	if late := c.Now().Sub(epoch.Add(10_000 * interval)); err != nil || fires != 10_001 || late > time.Millisecond {
		t.Errorf("%d fires, %v late at the end, %v", fires, late, err)
	}
}

// onClock runs a queue on a virtual clock within a bubble of synctest.
func onClock(t *testing.T, o Options) (*Queue[string], *VirtualClock, func() []string) {
	c := NewVirtualClock(epoch)
	o.Clock = c
	q := NewQueue[string](o)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	var got []string
	go func() {
		ended <- q.Run(ctx, func(batch []string) { got = append(got, batch...) })
	}()
	t.Cleanup(func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("Run returned %v", err)
		}
	})
	return q, c, func() []string {
		synctest.Wait()
		defer func() { got = nil }()
		return got
	}
}

// Clocks that are set, by hand, by a late time synchronization or after a suspend
// (robfig/cron#509, #352, PR#480): due times are of the wall clock.
func TestClockIsSet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var jumps []time.Duration
		q, c, came := onClock(t, Options{Jumped: func(by time.Duration) { jumps = append(jumps, by) }})
		for _, hours := range []time.Duration{3, 1, 2, 5} {
			add(t, q, epoch.Add(hours*time.Hour), (hours * time.Hour).String())
		}
		if got := came(); len(got) != 0 {
			t.Fatalf("came out early: %v", got)
		}
		c.Set(epoch.Add(3 * time.Hour))
		if got := came(); !slices.Equal(got, []string{"1h0m0s", "2h0m0s", "3h0m0s"}) {
			t.Errorf("set forward: %v", got)
		}
		c.Set(epoch.Add(-3 * time.Hour))
		if got := came(); len(got) != 0 {
			t.Errorf("set back: %v", got)
		}
		add(t, q, epoch, "new") // before all that the queue knew of
		c.Advance(3*time.Hour - 1)
		if got := came(); len(got) != 0 {
			t.Errorf("a nanosecond early: %v", got)
		}
		c.Advance(1)
		if got := came(); !slices.Equal(got, []string{"new"}) {
			t.Errorf("at its time by the clock as it is: %v", got)
		}
		c.Advance(5 * time.Hour)
		if got := came(); !slices.Equal(got, []string{"5h0m0s"}) {
			t.Errorf("at last: %v", got)
		}
		if want := []time.Duration{3 * time.Hour, -6 * time.Hour}; !slices.Equal(jumps, want) {
			t.Errorf("jumps %v, want %v", jumps, want)
		}
	})
}

func TestAccuracy(t *testing.T) {
	t.Parallel()
	c := NewVirtualClock(epoch)
	q := NewQueue[string](Options{Clock: c, Accuracy: 10 * time.Millisecond})
	for _, due := range []time.Duration{1, 3 * time.Millisecond, 10 * time.Millisecond, 20*time.Millisecond + 1, time.Second - 1} {
		add(t, q, epoch.Add(due), due.String())
	}
	got := simulate(t, q, c, epoch, epoch.Add(time.Hour))
	want := []fired{
		{"1ns", 10 * time.Millisecond}, {"3ms", 10 * time.Millisecond}, {"10ms", 10 * time.Millisecond},
		{"20.000001ms", 30 * time.Millisecond}, {"999.999999ms", time.Second},
	}
	if !slices.Equal(got, want) {
		t.Errorf("came out: %v, want %v", got, want)
	}
}

func TestWakeAtIsNeverEarly(t *testing.T) {
	t.Parallel()
	q := NewQueue[int](Options{Accuracy: 7})
	for _, due := range []int64{math.MinInt64, -8, -7, -1, 0, 1, 6, 7, 8, 1e18, never} {
		timer := add(t, q, time.Unix(0, due), 0)
		if at := q.wakeAt(); at < due || at-due >= 7 || at%7 != 0 && due != never {
			t.Errorf("due at %d, woken at %d", due, at)
		}
		q.Cancel(timer)
	}
	if at := q.wakeAt(); at != never {
		t.Errorf("an empty queue is woken at %d", at)
	}
}

func TestDue(t *testing.T) {
	t.Parallel()
	c := NewVirtualClock(epoch)
	q := NewQueue[string](Options{Clock: c})
	add(t, q, epoch.Add(time.Hour), "second")
	add(t, q, epoch.Add(time.Minute), "first")
	add(t, q, epoch.Add(time.Hour), "third")
	if got := q.Due(); len(got) != 0 {
		t.Errorf("due at the start: %v", got)
	}
	c.Advance(time.Hour)
	if got, want := q.Due(), []string{"first", "second", "third"}; !slices.Equal(got, want) {
		t.Errorf("due after an hour: %v, want %v", got, want)
	}
	if got := q.Due(); len(got) != 0 || q.Len() != 0 {
		t.Errorf("due again: %v", got)
	}
	for range maxBatch + 1 {
		add(t, q, epoch, "late")
	}
	if first, rest := len(q.Due()), len(q.Due()); first != maxBatch || rest != 1 {
		t.Errorf("batches of %d and %d", first, rest)
	}
}

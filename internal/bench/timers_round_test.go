package main

import (
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// round is one measurement under way.
type round struct {
	demand
	start     time.Time      // the first due time; without a reading of the monotonic clock
	late      []atomic.Int64 // nanoseconds, by timer; lost until it fires
	waiting   atomic.Int64
	all       chan struct{} // closed by the last to fire
	processor time.Duration
}

const lost = time.Duration(math.MaxInt64)

// measure has the contender arm everything before the first timer is due, however
// long that takes.
func (d demand) measure(b *testing.B, c contender) *round {
	b.Helper()
	for lead := 500 * time.Millisecond; lead < time.Minute; lead *= 2 {
		if r := d.try(b, c, lead); r != nil {
			return r
		}
	}
	b.Fatal("the timers cannot be armed in time")
	return nil
}

// try gives nil when arming takes more than the lead.
func (d demand) try(b *testing.B, c contender, lead time.Duration) *round {
	b.Helper()
	r := newRound(d)
	a, err := c.open(d.armed, r.fire)
	if err != nil {
		b.Fatal(err)
	}
	defer a.stop()
	inTime, err := r.arm(a, lead)
	if err != nil {
		b.Fatal(err)
	}
	if !inTime {
		return nil
	}
	stop := compute(d.busy)
	defer stop()
	r.wait(b)
	return r
}

func newRound(d demand) *round {
	r := &round{demand: d, late: make([]atomic.Int64, d.fires), all: make(chan struct{})}
	for n := range r.late {
		r.late[n].Store(int64(lost))
	}
	r.waiting.Store(int64(d.fires))
	return r
}

// arm gives up well before the first timer is due: one that becomes due while it is
// being armed hangs gocron v2.21.2 for good.
func (r *round) arm(a alarms, lead time.Duration) (inTime bool, err error) {
	later := hoursAway()
	for n := r.fires; n < r.armed; n++ {
		if err := a.arm(n, later(n)); err != nil {
			return false, err
		}
	}
	runtime.GC() // the garbage of arming is not to be collected while timers fire
	r.start = time.Now().Add(lead).Round(0)
	for n := range r.fires {
		if time.Until(r.start) < lead/4 {
			return false, nil
		}
		if err := a.arm(n, r.due(n)); err != nil {
			return false, err
		}
	}
	a.start()
	return time.Now().Before(r.start), nil
}

func (r *round) due(n int) time.Time {
	if r.rate == 0 {
		return r.start
	}
	return r.start.Add(time.Duration(n) * time.Second / time.Duration(r.rate))
}

func (r *round) fire(n int) {
	r.late[n].Store(int64(time.Since(r.due(n))))
	if r.waiting.Add(-1) == 0 {
		close(r.all)
	}
}

// wait gives up on what has not fired long after the last due time.
func (r *round) wait(b *testing.B) {
	b.Helper()
	const patience = 15 * time.Second
	time.Sleep(time.Until(r.start))
	before := cpuTime(b)
	select {
	case <-r.all:
	case <-time.After(time.Until(r.due(r.fires-1)) + patience):
	}
	r.processor = cpuTime(b) - before
}

// hoursAway gives due times that nobody will wait for, in no order.
func hoursAway() func(n int) time.Time {
	rnd := rand.New(rand.NewPCG(1, 5))
	start := time.Now().Add(time.Hour).Round(0)
	var ahead [1 << 16]time.Duration
	for i := range ahead {
		ahead[i] = time.Duration(rnd.Int64N(int64(time.Hour)))
	}
	return func(n int) time.Time { return start.Add(ahead[n%len(ahead)] + time.Duration(n)) }
}

// compute keeps so many goroutines busy until it is stopped.
func compute(goroutines int) (stop func()) {
	var stopped atomic.Bool
	var busy sync.WaitGroup
	for range goroutines {
		busy.Go(func() {
			for x := uint64(1); !stopped.Load(); {
				for range 1000 {
					x = x*6364136223846793005 + 1442695040888963407
				}
			}
		})
	}
	return func() {
		stopped.Store(true)
		busy.Wait()
	}
}

// leaveNothing fails the benchmark when what it does leaves goroutines behind:
// they would be in the way of the next.
func leaveNothing(b *testing.B, do func()) {
	b.Helper()
	before := runtime.NumGoroutine()
	do()
	for range 500 {
		if runtime.NumGoroutine() <= before {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	b.Fatalf("%d goroutines are left of %d", runtime.NumGoroutine()-before, runtime.NumGoroutine())
}

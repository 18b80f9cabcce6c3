package scheduler

import (
	"context"
	"math"
	"time"
)

// never is when a queue without values wants to be woken.
const never = math.MaxInt64

// maxSleep is how long a wait lasts at most where the system does not report that
// its clock was set: a timer counts elapsed time, due times are wall clock.
const maxSleep = time.Minute

// waker lets the one goroutine that owns a queue sleep.
type waker interface {
	now() reading

	// sleep returns soon after the clock has reached until (UTC nanoseconds), and
	// earlier when wake was called, when the context ends, when the clock is set,
	// or for no reason. It need not notice a context that had ended before the
	// last sleep did.
	sleep(until int64)

	// wake ends the sleep under way; without one, it may end the next. Any
	// goroutine may call it, also after close.
	wake()

	// close waits for what the waker has started.
	close()
}

// timerWaker sleeps by a timer of the Go runtime. It wakes once a minute to
// notice that the clock was set.
type timerWaker struct {
	wallReader
	ctx   context.Context
	timer *time.Timer
	woken chan struct{}
}

func newTimerWaker(ctx context.Context) *timerWaker {
	return &timerWaker{
		wallReader: wallReader{time.Now()},
		ctx:        ctx,
		timer:      time.NewTimer(maxSleep),
		woken:      make(chan struct{}, 1),
	}
}

func (w *timerWaker) sleep(until int64) {
	w.timer.Reset(ahead(until, w.now().wall))
	select {
	case <-w.ctx.Done():
	case <-w.timer.C:
	case <-w.woken:
	}
}

// ahead is how long to sleep, by elapsed time, until a time of the wall clock.
func ahead(until, now int64) time.Duration {
	switch {
	case until <= now:
		return 0
	case uint64(until-now) > uint64(maxSleep): // the difference may be beyond int64
		return maxSleep
	}
	return time.Duration(until - now)
}

func (w *timerWaker) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *timerWaker) close() { w.timer.Stop() }

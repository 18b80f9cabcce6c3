package engine

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// clock is the engine's time: the present, and the timers whose alarms run on the
// loop.
type clock struct {
	source scheduler.Clock
	timers *scheduler.Queue[func()]
	due    chan []func() // alarms for the loop
	fail   func(error)   // ends the loop
}

// now is the present time, UTC.
func (c *clock) now() time.Time { return c.source.Now().UTC() }

// at arms a timer whose alarm runs on the loop once the clock has reached due.
func (c *clock) at(due time.Time, alarm func()) scheduler.Timer {
	timer, err := c.timers.Add(due, alarm)
	if err != nil {
		c.fail(fmt.Errorf("cannot arm a timer: %w", err))
	}
	return timer
}

// countdown is a timer of elapsed time: it keeps counting as before when the clock is
// set.
type countdown struct {
	timer scheduler.Timer
	due   time.Time // by the clock as it is now
}

// countDown arms a countdown whose alarm runs on the loop.
func (c *clock) countDown(d *countdown, due time.Time, alarm func()) {
	d.due = due
	d.timer = c.at(due, func() {
		if c.now().Before(d.due) { // the clock was set after the timer had come out of the heap
			c.countDown(d, d.due, alarm)
			return
		}
		alarm()
	})
}

// stopCountdown takes a countdown out of the heap.
func (c *clock) stopCountdown(d *countdown) { c.timers.Cancel(d.timer) }

// deliver gives due timers to the loop. It blocks while the loop is busy: late timers
// queue in the heap, nowhere else.
func (c *clock) deliver(ctx context.Context) func([]func()) {
	return func(batch []func()) {
		batch = append([]func(){}, batch...)
		select {
		case c.due <- batch:
		case <-ctx.Done():
		}
	}
}

// shift moves a countdown along with the clock.
func (c *clock) shift(d *countdown, by time.Duration) {
	d.due = d.due.Add(by)
	c.timers.Reset(d.timer, d.due)
}

// jumped notifies the loop that the clock was set. The timers wait for it: nothing is
// due by the new clock before the loop knows.
func (e *executor) jumped(by time.Duration) {
	select {
	case e.clock.due <- []func(){func() { e.clockSet(by) }}:
	case <-e.ctx.Done():
	}
}

// clockSet moves what counts elapsed time along with the clock, and lets the schedules
// look at the new time.
func (e *executor) clockSet(by time.Duration) {
	e.log.Warn("the clock was set, or the machine was suspended", "by", by)
	shift := func(d *countdown) { e.clock.shift(d, by) }
	for _, o := range e.open {
		shift(&o.deadline)
		shift(&o.parentDeadline)
		if o.busy() {
			shift(&o.evaluating.deadline)
		}
		for _, a := range o.attempts {
			shift(&a.deadline)
		}
		for _, d := range o.retries {
			shift(d)
		}
		for _, w := range o.waits {
			w.shift(shift)
		}
	}
	e.limits.shift(by)
	for _, s := range e.schedules.byRef {
		e.schedules.correct(s)
		e.schedules.arm(s)
	}
}

// newID makes the id of a run or a backfill.
func (e *executor) newID(at time.Time) run.ID {
	if e.config.Random == nil {
		return run.NewID(at)
	}
	return run.DrawID(at, e.config.Random.Uint64)
}

// random is a random number from 0 to 1, without 1.
func (e *executor) random() float64 {
	if e.config.Random == nil {
		return rand.Float64()
	}
	return e.config.Random.Float64()
}

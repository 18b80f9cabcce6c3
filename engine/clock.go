package engine

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// maxAhead is how far ahead of the clock the watermark of a schedule may be: a
// clock that was set back a little makes nothing due again, but one that was wrong
// by years must not keep schedules waiting for them.
const maxAhead = 24 * time.Hour

// now is the present time, UTC.
func (e *Engine) now() time.Time { return e.config.Clock.Now().UTC() }

// at arms a timer whose alarm runs on the loop once the clock has reached due.
func (e *Engine) at(due time.Time, alarm func()) scheduler.Timer {
	timer, err := e.timers.Add(due, alarm)
	if err != nil {
		e.fail(fmt.Errorf("cannot arm a timer: %w", err))
	}
	return timer
}

// countdown is a timer of elapsed time: when the clock is set, it goes on counting
// as if that had not happened.
type countdown struct {
	timer scheduler.Timer
	due   time.Time // by the clock as it is now
}

// countDown arms a countdown whose alarm runs on the loop.
func (e *Engine) countDown(c *countdown, due time.Time, alarm func()) {
	c.due = due
	c.timer = e.at(due, func() {
		if e.now().Before(c.due) { // the clock was set after it had come out of the heap
			e.countDown(c, c.due, alarm)
			return
		}
		alarm()
	})
}

// stopCountdown takes a countdown out of the heap.
func (e *Engine) stopCountdown(c *countdown) { e.timers.Cancel(c.timer) }

// jumped tells the loop that the clock was set. The timers wait for it: nothing is
// due by the new clock before the loop knows.
func (e *Engine) jumped(by time.Duration) {
	select {
	case e.due <- []func(){func() { e.clockSet(by) }}:
	case <-e.ctx.Done():
	}
}

// newID makes the id of a run or a backfill.
func (e *Engine) newID(at time.Time) run.ID {
	if e.config.Random == nil {
		return run.NewID(at)
	}
	return run.DrawID(at, e.config.Random.Uint64)
}

// luck is a random number from 0 to 1, without 1.
func (e *Engine) luck() float64 {
	if e.config.Random == nil {
		return rand.Float64()
	}
	return e.config.Random.Float64()
}

// clockSet moves what counts elapsed time along with the clock, and lets the
// schedules look at it anew.
func (e *Engine) clockSet(by time.Duration) {
	e.log.Warn("the clock was set, or the machine was suspended", "by", by)
	shift := func(c *countdown) {
		c.due = c.due.Add(by)
		e.timers.Reset(c.timer, c.due)
	}
	for _, o := range e.open {
		shift(&o.deadline)
		shift(&o.patience)
		for _, a := range o.attempts {
			shift(&a.deadline)
		}
		for _, c := range o.retries {
			shift(c)
		}
		for _, w := range o.waits {
			w.shift(shift)
		}
	}
	e.shiftStarts(by)
	for _, s := range e.schedules {
		e.correct(s)
		e.wind(s)
	}
}

// correct begins a schedule anew whose watermark comes from a clock that was
// wrong.
func (e *Engine) correct(s *schedule) {
	known := e.shard.Schedules[s.ref]
	if known == nil || s.spec == nil || known.Decided.Sub(e.now()) <= maxAhead {
		return
	}
	e.log.Error("a schedule had gone on by a clock that was wrong, and begins anew", "flow", s.ref.Flow, "trigger", s.ref.Trigger,
		"decided", known.Decided, "now", e.now())
	e.record(run.Event{At: e.now(), Data: &run.ScheduleSet{ScheduleRef: s.ref, Spec: known.Spec, From: e.now()}})
}

package scheduler

import (
	"context"
	"time"
)

// Entry is what a [Scheduler] was asked to call.
type Entry struct {
	scheduler *Scheduler
	plan      Plan
	fired     time.Time // the last nominal time handed out; Run's

	// Guarded by the scheduler's lock. Only Run changes next.
	next     time.Time
	timer    Timer
	armed    bool // counted among the entries
	canceled bool
	waiting  int // calls that wait for a worker
	running  int
}

// Cancel ends the entry and frees its place. After it returned, no call of the
// entry starts; a call that has started continues. It reports whether there was
// anything left to come.
func (e *Entry) Cancel() bool {
	s := e.scheduler
	s.mu.Lock()
	defer s.mu.Unlock()
	left := e.armed || e.waiting > 0 && !e.canceled
	e.canceled = true
	if e.armed {
		s.queue.Cancel(e.timer)
		s.disarm(e)
	}
	return left
}

// Next is the nominal time that the entry waits for; false means that it waits for
// none any more.
func (e *Entry) Next() (time.Time, bool) {
	e.scheduler.mu.Lock()
	defer e.scheduler.mu.Unlock()
	return e.next, e.armed
}

func (s *Scheduler) disarm(e *Entry) {
	e.armed = false
	s.entries--
}

// armed is an entry's nominal time after the one that is due; false: there is
// none.
type armed struct {
	next time.Time
	ok   bool
}

// after is the first nominal time after the one given that is not past: what was
// missed is left out.
func (e *Entry) after(nominal, now time.Time) armed {
	if e.plan.Schedule == nil {
		return armed{}
	}
	next, ok := e.plan.Schedule.Next(nominal)
	if ok && !next.After(now) {
		next, ok = e.plan.Schedule.Next(now)
	}
	return armed{next, ok}
}

// fire hands entries that are due to the workers. The schedules continue before
// anything else is decided, so that nothing can stall them, and are asked without
// the lock. When too many calls wait it blocks: what is late stays in the queue.
func (s *Scheduler) fire(ctx context.Context, batch []*Entry) {
	now := s.config.Clock.Now()
	s.nexts = s.nexts[:0]
	for _, e := range batch {
		s.nexts = append(s.nexts, e.after(e.next, now))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, e := range batch {
		if e.armed { // not canceled since it came out of the queue
			s.due(e, s.nexts[i])
		}
	}
	s.staff()
	for s.pool.waiting() > maxWaiting && ctx.Err() == nil {
		s.stats.Blocked++
		s.mu.Unlock()
		select {
		case <-s.pool.room:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
}

// due arms an entry for its next time and lets the call for this one wait for a
// worker.
func (s *Scheduler) due(e *Entry, then armed) {
	nominal := e.next
	e.fired = nominal
	if then.ok {
		e.next = then.next
		e.timer = s.queue.AddAgain(e.next, e.timer, e)
	} else {
		s.disarm(e)
	}
	if e.waiting+e.running > 0 && e.plan.Overlap == OverlapSkip {
		s.stats.Skipped++
		return
	}
	e.waiting++
	s.pool.push(call{e, nominal})
}

// jumped computes again what entries wait for when the clock was set backward:
// those that were computed from a time that is not any more. What was handed out
// once is not again.
func (s *Scheduler) jumped(by time.Duration) {
	if by > 0 {
		return
	}
	now := s.config.Clock.Now()
	for _, e := range s.queue.all() {
		if e.plan.Schedule == nil {
			continue
		}
		from := now
		if e.fired.After(now) {
			from = e.fired
		}
		if next, ok := e.plan.Schedule.Next(from); ok {
			s.rearm(e, next)
		}
	}
}

func (s *Scheduler) rearm(e *Entry, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.armed {
		e.next = next
		s.queue.Reset(e.timer, next)
	}
}

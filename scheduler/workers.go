package scheduler

import (
	"context"
	"errors"
	"runtime/debug"
	"sync"
	"time"
)

// maxWaiting is how many calls may wait for a worker when the queue is looked at
// again: enough to keep workers busy meanwhile.
const maxWaiting = maxBatch

// call is an entry's call for one nominal time.
type call struct {
	entry   *Entry
	nominal time.Time
}

// pool is the calls of a [Scheduler] that wait and run. A worker is a goroutine
// that exists while there are calls for it.
type pool struct {
	size    int // workers there may be; negative: as many as calls
	running int // workers there are, each with one call
	calls   sync.WaitGroup
	room    chan struct{} // receives when hardly any call waits any more

	queued []call // from head on
	head   int
}

func newPool(size int) pool { return pool{size: size, room: make(chan struct{}, 1)} }

func (p *pool) waiting() int { return len(p.queued) - p.head }

func (p *pool) push(c call) { p.queued = append(p.queued, c) }

// pop is the call that has waited longest. There is one.
func (p *pool) pop() call {
	c := p.queued[p.head]
	p.queued[p.head] = call{}
	p.head++
	if p.head == len(p.queued) || p.head > maxWaiting {
		kept := copy(p.queued, p.queued[p.head:])
		clear(p.queued[kept:])
		p.queued, p.head = p.queued[:kept], 0
	}
	if p.waiting() == maxWaiting {
		select {
		case p.room <- struct{}{}:
		default:
		}
	}
	return c
}

func (p *pool) drop() { p.queued, p.head = nil, 0 }

// take gives the next call to a worker when there may be one more.
func (s *Scheduler) take() (call, bool) {
	if s.state != stateRunning || s.calls.Err() != nil {
		return call{}, false
	}
	for s.pool.waiting() > 0 && (s.pool.size < 0 || s.pool.running < s.pool.size) {
		c := s.pool.pop()
		c.entry.waiting--
		if c.entry.canceled {
			continue
		}
		c.entry.running++
		s.pool.running++
		s.stats.Fired++
		return c, true
	}
	return call{}, false
}

// staff starts workers for calls that wait.
func (s *Scheduler) staff() {
	for {
		c, ok := s.take()
		if !ok {
			return
		}
		s.pool.calls.Go(func() { s.worker(c) })
	}
}

// worker runs a call and others while they wait.
func (s *Scheduler) worker(c call) {
	more := true
	defer func() {
		if more { // the function ended the goroutine: runtime.Goexit
			s.mu.Lock()
			defer s.mu.Unlock()
			s.finished(c)
			s.staff()
		}
	}()
	for more {
		s.perform(c)
		c, more = s.turn(c)
	}
}

// turn gives a worker that is done with a call another.
func (s *Scheduler) turn(done call) (call, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.finished(done)
	return s.take()
}

func (s *Scheduler) finished(c call) {
	c.entry.running--
	s.pool.running--
}

// perform calls the function and reports what went wrong. Nothing that does ends
// the schedule.
func (s *Scheduler) perform(c call) {
	started := s.config.Clock.Now()
	e := c.entry
	fire := Fire{Entry: e, Name: e.plan.Name, Nominal: c.nominal, Due: c.nominal, Started: started}
	err := s.protect(e.plan.Call, fire)
	late := started.Sub(c.nominal) > lateAfter
	failed := err != nil && !s.gaveUp(err)
	if !failed && !late {
		return
	}
	s.mu.Lock()
	if late {
		s.stats.Late++
	}
	if failed {
		s.stats.Failed++
	}
	s.mu.Unlock()
	if failed {
		s.config.OnError(fire, err)
	}
}

// gaveUp reports whether a call ended because its context did.
func (s *Scheduler) gaveUp(err error) bool {
	return s.calls.Err() != nil && (errors.Is(err, s.calls.Err()) || errors.Is(err, context.Cause(s.calls)))
}

func (s *Scheduler) protect(call Func, fire Fire) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	return call(s.calls, fire)
}

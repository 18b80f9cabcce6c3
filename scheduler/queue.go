package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// DefaultLimit is how many values a [Queue] holds by default.
const DefaultLimit = 1_000_000

// maxBatch bounds how long a batch keeps the lock: about 50 µs.
const maxBatch = 256

// ErrRunning reports that another goroutine is in Run of the same queue.
var ErrRunning = errors.New("the queue is being run already: it hands its values to one owner")

// LimitError reports that a queue is full. Nothing was added.
type LimitError struct {
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the queue holds %d timers, its limit: cancel some or raise the limit", e.Limit)
}

// Options configures a [Queue]. The zero value works.
type Options struct {
	// Limit is how many values the queue holds at most. Default DefaultLimit; more
	// than 2³¹-1 is that.
	Limit int

	// Accuracy is the grid on which the queue wakes: at whole multiples of it since
	// the Unix epoch, for all that became due since the last. Values come out late
	// by less than it, never early, and many of them cost less. Default 0: exact.
	Accuracy time.Duration

	// Clock is what due times are compared with. Default WallClock.
	Clock Clock

	// Jumped is called by Run, before it hands out anything else, when it sees that
	// the clock was set by more than a second, forward or backward. Optional: what
	// the queue holds comes out at its due time by the clock as it is now anyway.
	Jumped func(by time.Duration)
}

// Timer is a handle of one value in the [Queue] that gave it. It stops meaning
// anything when the value has come out or was canceled, even when the queue
// holds others since. The zero value means nothing from the start.
type Timer struct {
	order uint64
	slot  int32
}

// Queue holds values until they are due. It is safe for concurrent use.
type Queue[T any] struct {
	limit  int
	grid   int64 // of waking, in nanoseconds; 1 is exact
	clock  Clock
	jumped func(time.Duration)

	mu      sync.Mutex // guards the fields below
	timers  timers[T]
	added   uint64 // so far
	running bool
	waker   waker // of the owner
	until   int64 // the owner sleeps until then; awake when it does not sleep
}

// awake is before any due time: an owner that does not sleep is never woken.
const awake = math.MinInt64

// NewQueue is an empty queue.
func NewQueue[T any](o Options) *Queue[T] {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	if o.Clock == nil {
		o.Clock = WallClock{}
	}
	return &Queue[T]{
		limit:  min(o.Limit, math.MaxInt32-root),
		grid:   max(1, int64(o.Accuracy)),
		clock:  o.Clock,
		jumped: o.Jumped,
		timers: newTimers[T](),
		until:  awake,
	}
}

// Add puts a value in, to come out at an instant of the clock; at once when that
// is past. Values for the same instant come out in order of addition. It fails
// with *LimitError.
func (q *Queue[T]) Add(due time.Time, value T) (Timer, error) {
	return q.AddPriority(due, 0, value)
}

// AddPriority is Add with a priority: of values for the same instant, those with
// a higher one come out first.
func (q *Queue[T]) AddPriority(due time.Time, priority int8, value T) (Timer, error) {
	q.mu.Lock()
	if q.timers.len >= q.limit {
		q.mu.Unlock()
		return Timer{}, &LimitError{Limit: q.limit}
	}
	t := q.timers.add(nanos(due), q.order(priority), value)
	sleeper := q.sleeper()
	q.mu.Unlock()
	wake(sleeper)
	return t, nil
}

// AddAgain puts back a value that came out or was canceled, for another instant, at
// the place among those of one instant that its timer had: what recurs keeps its
// place. It may exceed the limit by what was put back.
func (q *Queue[T]) AddAgain(due time.Time, t Timer, value T) Timer {
	q.mu.Lock()
	t = q.timers.add(nanos(due), t.order, value)
	sleeper := q.sleeper()
	q.mu.Unlock()
	wake(sleeper)
	return t
}

// all is every value in the queue, in no order.
func (q *Queue[T]) all() []T {
	q.mu.Lock()
	defer q.mu.Unlock()
	values := make([]T, q.timers.len)
	for i := range values {
		values[i] = *q.timers.values.at(int(q.timers.heap.at(root + i).slot))
	}
	return values
}

// order is the place of the next value among those of the same instant: the
// priority in the upper 8 bits, the highest first, the number of the addition in
// the others. At a million additions a second those last 2 284 years.
func (q *Queue[T]) order(priority int8) uint64 {
	q.added++
	return uint64(math.MaxInt8-int(priority))<<56 | q.added
}

// Cancel takes a value out, frees its slot and reports whether it was still in
// the queue.
func (q *Queue[T]) Cancel(t Timer) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	i, ok := q.timers.find(t)
	if ok {
		q.timers.remove(i)
	}
	return ok
}

// Reset gives a value another due time and reports whether it was still in the
// queue. The handle stays good, and so does the value's place among those of the
// same instant.
func (q *Queue[T]) Reset(t Timer, due time.Time) bool {
	q.mu.Lock()
	i, ok := q.timers.find(t)
	if ok {
		q.timers.move(i, nanos(due))
	}
	sleeper := q.sleeper()
	q.mu.Unlock()
	wake(sleeper)
	return ok
}

// Len is how many values the queue holds.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.timers.len
}

// Next is the earliest due time, in UTC, and whether there is one.
func (q *Queue[T]) Next() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.timers.len == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, q.timers.first().due).UTC(), true
}

// Run hands values to fire once they are due, never before, in batches of up to
// 256, until ctx ends, and returns ctx's error. What is due while fire runs
// waits for it. A value that fire was called with is out of the queue; all
// others stay, also for a later Run. The slice is only valid during the call. A
// second Run at the same time returns ErrRunning.
func (q *Queue[T]) Run(ctx context.Context, fire func(batch []T)) error {
	return q.run(ctx, never, q.clock.newWaker(ctx), fire)
}

// RunUntil is Run that returns nil once the clock has reached end and all that is
// due by then was handed out. On a [VirtualClock] it waits for nothing: it moves
// the clock itself, from one due time to the next and then to end.
func (q *Queue[T]) RunUntil(ctx context.Context, end time.Time, fire func(batch []T)) error {
	w := q.clock.newWaker(ctx)
	if v, ok := w.(*virtualWaker); ok {
		w = leaper{v}
	}
	return q.run(ctx, nanos(end), w, fire)
}

// Due takes out what is due now by the clock, in order, up to 256 values: for an
// owner that looks by itself, on a [VirtualClock] that it moves, in place of Run.
func (q *Queue[T]) Due() []T {
	batch, _ := q.due(make([]T, 0, maxBatch), nanos(q.clock.Now()))
	return batch
}

func (q *Queue[T]) run(ctx context.Context, end int64, w waker, fire func(batch []T)) error {
	defer w.close()
	if !q.claim(w) {
		return ErrRunning
	}
	defer q.release()
	batch := make([]T, 0, maxBatch)
	for before := w.now(); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		now := w.now()
		if by := now.jump(before); by != 0 && q.jumped != nil {
			q.jumped(by)
		}
		before = now
		var until int64
		if batch, until = q.due(batch[:0], now.wall); len(batch) > 0 {
			fire(batch)
			clear(batch)
			continue
		}
		if now.wall >= end {
			return nil
		}
		w.sleep(min(until, end))
	}
}

// due takes out what is due now, up to the batch's capacity. When nothing is, it
// returns until when the owner may sleep.
func (q *Queue[T]) due(batch []T, now int64) ([]T, int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.until = awake
	for q.timers.len > 0 && q.timers.first().due <= now && len(batch) < cap(batch) {
		batch = append(batch, q.timers.remove(root))
	}
	if len(batch) == 0 {
		q.until = q.wakeAt()
	}
	return batch, q.until
}

// wakeAt is when to look at the queue again: the due time of the first value,
// rounded up to the grid.
func (q *Queue[T]) wakeAt() int64 {
	if q.timers.len == 0 {
		return never
	}
	due := q.timers.first().due
	past := due % q.grid
	switch {
	case past < 0:
		return due - past
	case past == 0 || due > never-q.grid:
		return due
	}
	return due - past + q.grid
}

// sleeper is the owner's waker when the owner would sleep too long by now.
func (q *Queue[T]) sleeper() waker {
	if q.until == awake || q.wakeAt() >= q.until {
		return nil
	}
	q.until = awake // once is enough
	return q.waker
}

// wake is called without the lock: the owner, woken, wants it.
func wake(w waker) {
	if w != nil {
		w.wake()
	}
}

func (q *Queue[T]) claim(w waker) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running {
		return false
	}
	q.running, q.waker = true, w
	return true
}

func (q *Queue[T]) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running, q.waker, q.until = false, nil, awake
}

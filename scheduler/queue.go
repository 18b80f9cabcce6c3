package scheduler

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"time"
)

// DefaultLimit is how many values a [Queue] holds unless told otherwise.
const DefaultLimit = 1_000_000

// maxBatch bounds how long a batch keeps the lock: about 50 µs.
const maxBatch = 256

// maxSleep is how far ahead the timer is armed at most. Timers count elapsed
// time, due times are wall clock: a jump of that clock is noticed this late.
const maxSleep = time.Minute

// ErrRunning says that another goroutine is in Run of the same queue.
var ErrRunning = errors.New("the queue is being run already: it hands its values to one owner")

// LimitError says that a queue is full. Nothing was added.
type LimitError struct {
	Limit int
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("the queue holds %d timers, its limit: cancel some or raise the limit", e.Limit)
}

// Options configures a [Queue].
type Options struct {
	// Limit is how many values the queue holds at most. Default DefaultLimit; more
	// than 2³¹-1 is that.
	Limit int
}

// Timer is a handle of one value in the [Queue] that gave it. It stops meaning
// anything when the value has come out or was canceled, even when the queue
// holds others since. The zero value means nothing from the start.
type Timer struct {
	slot       int32
	generation uint32
}

// Queue holds values until they are due. It is safe for concurrent use.
type Queue[T any] struct {
	limit int
	wake  chan struct{} // told when something is due before all that Run knew of

	mu      sync.Mutex // guards the fields below
	timers  timers[T]
	running bool
}

// NewQueue is an empty queue.
func NewQueue[T any](o Options) *Queue[T] {
	if o.Limit <= 0 {
		o.Limit = DefaultLimit
	}
	return &Queue[T]{
		limit:  min(o.Limit, math.MaxInt32),
		wake:   make(chan struct{}, 1),
		timers: newTimers[T](),
	}
}

// Add puts a value in, to come out at an instant of the wall clock; at once when
// that is past. Values for the same instant come out in order of addition. It
// fails with *LimitError.
func (q *Queue[T]) Add(due time.Time, value T) (Timer, error) {
	q.mu.Lock()
	if len(q.timers.heap) >= q.limit {
		q.mu.Unlock()
		return Timer{}, &LimitError{Limit: q.limit}
	}
	t := q.timers.add(nanos(due), value)
	first := q.timers.heap[0].slot == t.slot
	q.mu.Unlock()
	if first {
		q.notify()
	}
	return t, nil
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

// Reset gives a value another due time, as if it were added now, and reports
// whether it was still in the queue. The handle stays good.
func (q *Queue[T]) Reset(t Timer, due time.Time) bool {
	q.mu.Lock()
	i, ok := q.timers.find(t)
	if ok {
		q.timers.move(i, nanos(due))
	}
	first := ok && q.timers.heap[0].slot == t.slot
	q.mu.Unlock()
	if first {
		q.notify()
	}
	return ok
}

// Len is how many values the queue holds.
func (q *Queue[T]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.timers.heap)
}

// Next is the earliest due time, in UTC, and whether there is one.
func (q *Queue[T]) Next() (time.Time, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.timers.heap) == 0 {
		return time.Time{}, false
	}
	return time.Unix(0, q.timers.heap[0].due).UTC(), true
}

// Run hands values to fire once they are due, never before, in batches of up to
// 256, until ctx ends, and returns ctx's error. What is due while fire runs
// waits for it. A value that fire was called with is out of the queue; all
// others stay, also for a later Run. The slice is only valid during the call. A
// second Run at the same time returns ErrRunning.
func (q *Queue[T]) Run(ctx context.Context, fire func(batch []T)) error {
	if !q.claim() {
		return ErrRunning
	}
	defer q.release()
	timer := time.NewTimer(maxSleep)
	defer timer.Stop()
	batch := make([]T, 0, maxBatch)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		var sleep time.Duration
		batch, sleep = q.due(batch[:0], time.Now())
		if len(batch) > 0 {
			fire(batch)
			clear(batch)
			continue
		}
		timer.Reset(sleep)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-q.wake:
		}
	}
}

// due takes out what is due now, up to the batch's capacity. When nothing is, it
// gives the time to sleep.
func (q *Queue[T]) due(batch []T, at time.Time) ([]T, time.Duration) {
	now := nanos(at)
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.timers.heap) > 0 && len(batch) < cap(batch) {
		if ahead := q.timers.heap[0].due; ahead > now {
			return batch, min(maxSleep, time.Duration(ahead-now))
		}
		batch = append(batch, q.timers.remove(0))
	}
	return batch, maxSleep
}

func (q *Queue[T]) claim() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	claimed := !q.running
	q.running = true
	return claimed
}

func (q *Queue[T]) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.running = false
}

func (q *Queue[T]) notify() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

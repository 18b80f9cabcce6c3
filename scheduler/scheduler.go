package scheduler

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"runtime"
	"sync"
	"time"
)

// Unlimited, as a number of workers, runs each call on its own goroutine.
const Unlimited = -1

var (
	// ErrClosed reports that a scheduler takes nothing any more.
	ErrClosed = errors.New("the scheduler is closed: make another")

	// ErrPlan reports that a plan cannot be carried out as it is.
	ErrPlan = errors.New("a plan needs a function to call, and either an instant or a schedule")

	// ErrNever reports that a schedule has no time after the present one.
	ErrNever = errors.New("the schedule has no time after now: nothing would ever be called")
)

// Config configures a [Scheduler]. The zero value works.
type Config struct {
	// Workers is how many calls run at the same time, or Unlimited. Default
	// GOMAXPROCS; [Scheduler.SetWorkers] changes it.
	Workers int

	// Limit is how many entries there are at most. Default DefaultLimit.
	Limit int

	// Accuracy is that of the queue: see [Options]. Default 0: exact.
	Accuracy time.Duration

	// Clock is what due times are compared with. Default WallClock.
	Clock Clock

	// OnError receives calls that returned an error or panicked (*PanicError), on
	// the goroutine of the call, but not of those that gave up because their
	// context ended. Default: they are logged with [slog.Default].
	OnError func(Fire, error)
}

// Func is what an entry calls. Its context ends when the scheduler does not wait
// for it any longer.
type Func func(context.Context, Fire) error

// Fire is one call of an entry.
type Fire struct {
	Entry   *Entry    // so that a call can cancel it
	Name    string    // of the entry
	Nominal time.Time // by the schedule, in its zone
	Due     time.Time // by the queue: the nominal time
	Started time.Time
}

// PanicError is what a call that panicked ended with.
type PanicError struct {
	Value any
	Stack []byte // as debug.Stack gives it
}

func (e *PanicError) Error() string { return fmt.Sprintf("the function panicked: %v", e.Value) }

// Overlap is what happens to a nominal time whose entry's last call still waits
// or runs.
type Overlap uint8

const (
	OverlapSkip  Overlap = iota // it is skipped, and counted
	OverlapAllow                // it gets a call beside the other
)

// Plan is what is called and when. Exactly one of At and Schedule is set.
type Plan struct {
	Name     string    // for [Fire]; may be empty
	At       time.Time // one call, at once when that is past
	Schedule Schedule  // a call for each nominal time after now
	Call     Func
	Priority int8    // of calls for the same instant, the higher comes first
	Overlap  Overlap // default OverlapSkip
}

// Scheduler calls functions at instants and on schedules: the parts of this
// package put together, for programs that need no more. [New] makes one. It is
// safe for concurrent use, also from within calls.
//
// A nominal time that is late gets its call, and the schedule continues from now:
// after an hour of suspend, or a clock that was set forward, each entry is called
// once, not for all that it missed. When the clock is set backward, no nominal
// time is called for again.
//
// Goroutines: [Scheduler.Run] is the caller's; it starts one for each call under
// way, at most as many as there are workers, and waits for all of them. Without
// calls there are none.
type Scheduler struct {
	config Config
	queue  *Queue[*Entry]
	ended  chan struct{} // closed by Run

	mu      sync.Mutex // guards the fields below and those of entries; taken before the queue's
	state   state
	stop    context.CancelFunc      // of handing out
	abandon context.CancelCauseFunc // of the calls too
	calls   context.Context         // what the calls get
	entries int
	pool    pool
	stats   Stats

	nexts []armed // of the batch being handed out; Run's
}

type state uint8

const (
	stateNew state = iota
	stateRunning
	stateClosed
)

// Stats is what a [Scheduler] is doing and has done.
type Stats struct {
	Armed   int // entries that wait for their time
	Waiting int // calls that wait for a worker
	Running int // calls

	Fired   uint64 // calls that were started
	Failed  uint64 // calls that returned an error or panicked
	Late    uint64 // calls that were started more than a second after they were due
	Skipped uint64 // nominal times without a call, because the one before still ran
	Blocked uint64 // how often the queue had to wait because too many calls waited
}

// lateAfter is from when on a call counts as late.
const lateAfter = time.Second

// New is a scheduler without entries. It calls nothing before [Scheduler.Run].
func New(c Config) *Scheduler {
	if c.Workers == 0 {
		c.Workers = runtime.GOMAXPROCS(0)
	}
	if c.Limit <= 0 {
		c.Limit = DefaultLimit
	}
	c.Limit = min(c.Limit, math.MaxInt32-root)
	if c.Clock == nil {
		c.Clock = WallClock{}
	}
	if c.OnError == nil {
		c.OnError = logError
	}
	s := &Scheduler{config: c, ended: make(chan struct{}), pool: newPool(c.Workers)}
	// The scheduler counts its entries itself: one whose time is just being handed
	// out is not in the queue, and keeps its place.
	s.queue = NewQueue[*Entry](Options{Limit: math.MaxInt32, Accuracy: c.Accuracy, Clock: c.Clock, Jumped: s.jumped})
	return s
}

func logError(f Fire, err error) {
	slog.Error("a scheduled call failed", "name", f.Name, "nominal", f.Nominal, "error", err)
}

// At calls once, at an instant, at once when that is past. See [Scheduler.Add]
// for errors.
func (s *Scheduler) At(t time.Time, call Func) (*Entry, error) {
	return s.Add(Plan{At: t, Call: call})
}

// Every calls at all multiples of the interval since the Unix epoch. It fails
// with *IntervalError too; see [Scheduler.Add] for the others.
func (s *Scheduler) Every(interval time.Duration, call Func) (*Entry, error) {
	every, err := NewEvery(interval, 0)
	if err != nil {
		return nil, err
	}
	return s.Add(Plan{Schedule: every, Call: call})
}

// Cron calls at the times of a cron expression in a zone. It fails with
// *ParseError too; see [Scheduler.Add] for the others.
func (s *Scheduler) Cron(expr string, zone *time.Location, call Func) (*Entry, error) {
	cron, err := ParseCron(expr, CronOptions{Zone: zone})
	if err != nil {
		return nil, err
	}
	return s.Add(Plan{Schedule: cron, Call: call})
}

// Schedule calls at the times of a schedule. See [Scheduler.Add] for errors.
func (s *Scheduler) Schedule(schedule Schedule, call Func) (*Entry, error) {
	return s.Add(Plan{Schedule: schedule, Call: call})
}

// Add carries out a plan. It fails with ErrPlan, ErrNever, ErrClosed and
// *LimitError, and has done nothing then.
func (s *Scheduler) Add(p Plan) (*Entry, error) {
	if p.Call == nil || p.At.IsZero() == (p.Schedule == nil) {
		return nil, ErrPlan
	}
	e := &Entry{scheduler: s, plan: p, next: p.At, armed: true}
	if p.Schedule != nil {
		next, ok := p.Schedule.Next(s.config.Clock.Now())
		if !ok {
			return nil, ErrNever
		}
		e.next = next
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.state == stateClosed:
		return nil, ErrClosed
	case s.entries >= s.config.Limit:
		return nil, &LimitError{Limit: s.config.Limit}
	}
	timer, err := s.queue.AddPriority(e.next, p.Priority, e)
	if err != nil {
		return nil, err
	}
	e.timer = timer
	s.entries++
	return e, nil
}

// SetWorkers changes how many calls run at the same time, from now on: Unlimited,
// or 0, which pauses. It waits for nothing: calls that are too many run to their
// end. While paused, calls wait in order; nothing is lost.
func (s *Scheduler) SetWorkers(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pool.size = n
	s.staff()
}

// Stats is what the scheduler is doing now and what it has done.
func (s *Scheduler) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := s.stats
	stats.Armed, stats.Waiting, stats.Running = s.queue.Len(), s.pool.waiting(), s.pool.running
	return stats
}

// Run calls what is due until ctx ends, and returns ctx's error, or until Close,
// and returns nil. It returns when all calls have: those under way end soon if
// they heed their context, which ends with ctx; those that wait are dropped. Run
// works once; after that it fails with ErrRunning or ErrClosed.
func (s *Scheduler) Run(ctx context.Context) error {
	calls, abandon := context.WithCancelCause(ctx)
	defer abandon(ErrClosed)
	firing, stop := context.WithCancel(calls)
	defer stop()
	if err := s.begin(calls, abandon, stop); err != nil {
		return err
	}
	defer close(s.ended)
	s.queue.Run(firing, func(batch []*Entry) { s.fire(firing, batch) })
	s.mu.Lock()
	s.state = stateClosed
	s.pool.drop()
	s.mu.Unlock()
	s.pool.calls.Wait()
	return ctx.Err()
}

func (s *Scheduler) begin(calls context.Context, abandon context.CancelCauseFunc, stop context.CancelFunc) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch s.state {
	case stateRunning:
		return ErrRunning
	case stateClosed:
		return ErrClosed
	}
	s.state, s.calls, s.abandon, s.stop = stateRunning, calls, abandon, stop
	return nil
}

// Close ends Run: nothing is called any more, and calls under way are waited for
// until ctx ends. Then their context ends too, with ErrClosed as its cause, and
// Close returns ctx's error. It may be called more than once, and before Run. A
// call that calls Close waits for itself, until ctx ends.
func (s *Scheduler) Close(ctx context.Context) error {
	s.mu.Lock()
	unused := s.stop == nil
	s.state = stateClosed
	s.mu.Unlock()
	if unused {
		return nil
	}
	s.stop()
	select {
	case <-s.ended:
		return nil
	case <-ctx.Done():
	}
	s.abandon(ErrClosed)
	return ctx.Err()
}

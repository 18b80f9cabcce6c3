package virtual

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// DefaultWorkers is more than most flows use, so that dependencies alone decide
// when a task starts.
const DefaultWorkers = 10_000

// Config configures a [Runner]. Start and Script are required; the zero value of
// every other field is its default.
type Config struct {
	Start  time.Time // initial time of the clock
	Script Script
	Seed   uint64 // of ids and of the jitter of retries

	Workers  int           // attempts that compute at once; default DefaultWorkers
	OpenRuns int           // runs that are not finished; default the engine's
	Timeout  time.Duration // of attempts whose task states none; default the engine's

	// Recorded receives each event of a run as it happens, GroupEnded the result of
	// each group. StandsIn reports whether a scripted call replaces the run of a
	// sub-flow; by default none does. They must not call the Runner.
	Recorded   func(run.Event)
	GroupEnded func(of run.ID, group *run.TaskRun)
	StandsIn   func(of run.ID, task string) bool

	// Finished receives the record of each run that ends, in order, while the engine
	// waits. It must not call the Runner.
	Finished func(*run.Record)

	// Ended receives each call that ends, in order, with the time at which it began.
	// The outcome shows whether the call was interrupted. It must not call the Runner.
	Ended func(call *run.Call, began time.Time, result run.Result)

	Log *slog.Logger // of the engine; default: discarded
}

// Script decides what a call that begins now does. It must not call the Runner.
type Script func(call *run.Call, now time.Time) ScriptedCall

// ScriptedCall is the behavior of one call.
type ScriptedCall struct {
	// Takes is how much virtual time passes until the call ends; 0 ends it at the
	// instant at which it began.
	Takes time.Duration

	// Waits is how much of Takes, at its end, the call waits for somebody's answer: it computes
	// nothing then, and others take its place among the workers.
	Waits time.Duration

	// Hangs lets the call end only when it is interrupted: canceled, or timed out.
	Hangs bool

	// Result is the call's result. Its Duration is ignored: Takes is used.
	Result run.Result

	// Call, when set, makes a real call for the Result. The Runner makes it when the
	// call begins, concurrently with others that begin then; it may take any real
	// time. An error makes the attempt lost.
	Call func(ctx context.Context, call run.Call) (run.Result, error)
}

// Runner runs one engine in virtual time. It is not safe for concurrent use.
type Runner struct {
	config Config
	clock  *scheduler.VirtualClock
	engine *engine.Engine
	rests  chan engine.Idle
	stop   context.CancelFunc
	ended  chan struct{} // closed when the engine has ended
	fault  error         // why, once ended is closed

	// The engine's loop owns these until it is idle.
	begun       []*engine.Attempt
	interrupted []interrupt

	pending pendingCalls
}

type interrupt struct {
	attempt *engine.Attempt
	cause   error
}

// ErrClosed is the error of calls on a closed Runner.
var ErrClosed = errors.New("the runner is closed")

// New starts an engine without runs. It runs until Close, or until ctx ends.
func New(ctx context.Context, config Config) *Runner {
	r := &Runner{
		config: config, clock: scheduler.NewVirtualClock(config.Start),
		rests: make(chan engine.Idle), ended: make(chan struct{}),
		pending: pendingCalls{open: map[*engine.Attempt]*pendingCall{}},
	}
	r.engine = engine.New(engine.Config{
		Journal: new(discardJournal), Restore: restore,
		Random:  rand.New(rand.NewPCG(config.Seed, 0)),
		Workers: cmp.Or(max(config.Workers, 0), DefaultWorkers), OpenRuns: config.OpenRuns,
		Timeout: config.Timeout, Log: config.Log,
		Sim: &engine.Sim{
			Clock: r.clock, Finished: config.Finished, Idle: r.rests,
			Recorded: config.Recorded, GroupEnded: config.GroupEnded, StandsIn: config.StandsIn,
			Begin:     func(a *engine.Attempt) { r.begun = append(r.begun, a) },
			Interrupt: func(a *engine.Attempt, cause error) { r.interrupted = append(r.interrupted, interrupt{a, cause}) },
		},
	})
	ctx, r.stop = context.WithCancel(ctx)
	go func() {
		defer close(r.ended)
		r.fault = r.engine.Run(ctx)
	}()
	return r
}

// Close stops the engine at once and waits for it.
func (r *Runner) Close() {
	r.stop()
	<-r.ended
}

// Now is the virtual time.
func (r *Runner) Now() time.Time { return r.clock.Now() }

// Engine is the Runner's engine, for commands at the present instant. Their effects
// happen in Until: a command that waits for an effect never returns.
func (r *Runner) Engine() *engine.Engine { return r.engine }

// Deploy deploys the flows of a set; their schedules start now.
func (r *Runner) Deploy(ctx context.Context, set *flows.Set) error {
	return r.engine.Deploy(ctx, set)
}

// Submit requests a run now.
func (r *Runner) Submit(ctx context.Context, request run.Request) (run.Receipt, error) {
	return r.engine.Submit(ctx, request)
}

// Until lets virtual time pass until end, including everything that happens at that
// instant, or until enough returns true. Until asks enough whenever all work of an
// instant is done. The clock keeps the instant that it has reached.
func (r *Runner) Until(ctx context.Context, end time.Time, enough func() bool) error {
	for {
		rest, err := r.rest(ctx)
		if err != nil {
			return err
		}
		if err := r.begin(ctx); err != nil {
			rest.Leave()
			return err
		}
		now := r.Now()
		next := r.next(rest)
		switch ended, waiting := r.over(now); {
		case len(ended) > 0:
			rest.End(ended)
		case waiting:
			rest.Leave() // others may begin
		case !rest.Next.IsZero() && !rest.Next.After(now):
			rest.Fire()
		case enough != nil && enough():
			rest.Leave()
			return nil
		case next.IsZero() || next.After(end):
			r.pass(end)
			rest.Leave()
			return nil
		default:
			r.pass(next)
			if ended, _ := r.over(next); len(ended) > 0 {
				rest.End(ended)
			} else {
				rest.Fire()
			}
		}
	}
}

// rest waits until the engine has no more work at the present instant.
func (r *Runner) rest(ctx context.Context) (engine.Idle, error) {
	select {
	case rest := <-r.rests:
		return rest, nil
	case <-r.ended:
		return engine.Idle{}, cmp.Or(r.fault, ErrClosed)
	case <-ctx.Done():
		return engine.Idle{}, context.Cause(ctx)
	}
}

// next is the instant of the next event; zero for never.
func (r *Runner) next(rest engine.Idle) time.Time {
	due, ok := r.pending.next()
	if !ok || !rest.Next.IsZero() && rest.Next.Before(due) {
		return rest.Next
	}
	return due
}

// pass moves the clock, never back.
func (r *Runner) pass(to time.Time) {
	if by := to.Sub(r.Now()); by > 0 {
		r.clock.Advance(by)
	}
}

// restore is never called: the journal is empty at each start.
func restore(context.Context, *run.Definition) (*flows.Set, error) {
	return nil, errors.New("a virtual run has no history")
}

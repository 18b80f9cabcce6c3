package rehearsal

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

// DefaultWorkers is more than most flows have use for, so that what waits for what
// is decided by the flows alone.
const DefaultWorkers = 10_000

// Config says what is rehearsed. Start and Play are required; the zero value of
// everything else is its default.
type Config struct {
	Start time.Time // where the clock stands at first
	Play  Play
	Seed  uint64 // of ids and of the jitter of retries

	Workers  int           // attempts at once, of one flow three quarters of them; default DefaultWorkers
	OpenRuns int           // runs that are not finished; default the engine's
	Timeout  time.Duration // of attempts whose task states none; default the engine's

	// Recorded is told of each event of a run as it happens, and GroupEnded what has
	// become of a group. StandsIn tells whether a call is played in place of the run
	// of a sub-flow that a task of a run is; by default none is. They must not call
	// the Director.
	Recorded   func(run.Event)
	GroupEnded func(of run.ID, group *run.TaskRun)
	StandsIn   func(of run.ID, task string) bool

	// Finished is told of each run that ends, in order, while the engine waits. It
	// must not call the Director.
	Finished func(*run.Record)

	// Ended is told of each call that ends, in order, with when it began. What was
	// interrupted says so in its outcome. It must not call the Director.
	Ended func(call *run.Call, began time.Time, result run.Result)

	Log *slog.Logger // of the engine; default: discarded
}

// Play says what a call does that begins now. It must not call the Director.
type Play func(call *run.Call, now time.Time) Turn

// Turn is what one call does.
type Turn struct {
	// Takes is how much virtual time passes until the call ends; 0 ends it at the
	// instant at which it began.
	Takes time.Duration

	// Hangs lets the call end only when it is told to: canceled, or out of time.
	Hangs bool

	// Result is how it ends, but for its Duration, which is Takes.
	Result run.Result

	// Call makes a real call for the Result, where it is set. It is made when the
	// turn begins, beside others that begin then, and may take any real time. An
	// error makes the attempt lost.
	Call func(ctx context.Context, call run.Call) (run.Result, error)
}

// Director directs one engine. It is not safe for concurrent use.
type Director struct {
	config Config
	clock  *scheduler.VirtualClock
	engine *engine.Engine
	rests  chan engine.Idle
	stop   context.CancelFunc
	ended  chan struct{} // closed when the engine has ended
	fault  error         // why, once ended is closed

	// While the engine has no rest, these belong to its loop.
	begun       []*engine.Attempt
	interrupted []interrupt

	turns turns
}

type interrupt struct {
	attempt *engine.Attempt
	cause   error
}

// ErrClosed answers those who go on with a Director that is closed.
var ErrClosed = errors.New("the rehearsal is over")

// New starts an engine that stands at the beginning. It goes on until Close, or
// until ctx ends.
func New(ctx context.Context, config Config) *Director {
	d := &Director{
		config: config, clock: scheduler.NewVirtualClock(config.Start),
		rests: make(chan engine.Idle), ended: make(chan struct{}),
		turns: turns{playing: map[*engine.Attempt]*turn{}},
	}
	d.engine = engine.New(engine.Config{
		Journal: new(forgetful), Restore: restore,
		Random:  rand.New(rand.NewPCG(config.Seed, 0)),
		Workers: cmp.Or(max(config.Workers, 0), DefaultWorkers), OpenRuns: config.OpenRuns,
		Timeout: config.Timeout, Log: config.Log,
		Sim: &engine.Sim{
			Clock: d.clock, Finished: config.Finished, Idle: d.rests,
			Recorded: config.Recorded, GroupEnded: config.GroupEnded, StandsIn: config.StandsIn,
			Begin:     func(a *engine.Attempt) { d.begun = append(d.begun, a) },
			Interrupt: func(a *engine.Attempt, cause error) { d.interrupted = append(d.interrupted, interrupt{a, cause}) },
		},
	})
	ctx, d.stop = context.WithCancel(ctx)
	go func() {
		defer close(d.ended)
		d.fault = d.engine.Run(ctx)
	}()
	return d
}

// Close ends the engine where it stands and waits for it.
func (d *Director) Close() {
	d.stop()
	<-d.ended
}

// Now is where the clock stands.
func (d *Director) Now() time.Time { return d.clock.Now() }

// Engine is what is directed, for commands at the present instant. What they make
// happen, happens in Until: commands that wait for it wait for ever.
func (d *Director) Engine() *engine.Engine { return d.engine }

// Deploy makes the flows of a set known, and lets their schedules begin now.
func (d *Director) Deploy(ctx context.Context, set *flows.Set) error {
	return d.engine.Deploy(ctx, set)
}

// Submit asks for a run now.
func (d *Director) Submit(ctx context.Context, request run.Request) (run.Receipt, error) {
	return d.engine.Submit(ctx, request)
}

// Until lets time pass up to an instant, with all that happens at it, or until
// enough says so; it is asked whenever nothing is left to do at an instant but to
// let the clock go on. The clock stands there afterwards.
func (d *Director) Until(ctx context.Context, end time.Time, enough func() bool) error {
	for {
		rest, err := d.rest(ctx)
		if err != nil {
			return err
		}
		if err := d.begin(ctx); err != nil {
			rest.Leave()
			return err
		}
		now := d.Now()
		next := d.next(rest)
		switch ended := d.over(now); {
		case len(ended) > 0:
			rest.End(ended)
		case !rest.Next.IsZero() && !rest.Next.After(now):
			rest.Fire()
		case enough != nil && enough():
			rest.Leave()
			return nil
		case next.IsZero() || next.After(end):
			d.pass(end)
			rest.Leave()
			return nil
		default:
			d.pass(next)
			if ended := d.over(next); len(ended) > 0 {
				rest.End(ended)
			} else {
				rest.Fire()
			}
		}
	}
}

// rest waits until the engine has nothing more to do at the present instant.
func (d *Director) rest(ctx context.Context) (engine.Idle, error) {
	select {
	case rest := <-d.rests:
		return rest, nil
	case <-d.ended:
		return engine.Idle{}, cmp.Or(d.fault, ErrClosed)
	case <-ctx.Done():
		return engine.Idle{}, context.Cause(ctx)
	}
}

// next is the instant at which something happens next; zero for never.
func (d *Director) next(rest engine.Idle) time.Time {
	due, ok := d.turns.next()
	if !ok || !rest.Next.IsZero() && rest.Next.Before(due) {
		return rest.Next
	}
	return due
}

// pass moves the clock, never back.
func (d *Director) pass(to time.Time) {
	if by := to.Sub(d.Now()); by > 0 {
		d.clock.Advance(by)
	}
}

// restore is never asked: the journal is empty at each start.
func restore(context.Context, *run.Definition) (*flows.Set, error) {
	return nil, errors.New("a rehearsal has no past")
}

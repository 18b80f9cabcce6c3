package engine

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/engine/memory"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// Config is what an engine works with. Journal, Restore, and Invoker or Sim are
// required; the zero value of every other field is its default.
type Config struct {
	Journal   Journal
	Invoker   Invoker
	Observers []Observation

	// Durable is called with the last revision after a start, and then with the revision
	// of each commit after the observers have received it. It must not block. Default:
	// not called.
	Durable func(revision uint64)

	// Published is a revision that may be known outside: a journal that ends before it
	// has lost its end. Default: as far as the observers have been notified.
	Published uint64

	Snapshots Store   // default none: the whole journal is read at each start and never shortened
	Blobs     Store   // for JSON of run.BlobSize or more; default a memory.Store
	History   History // of finished runs; default none

	// Restore loads a recorded definition again, for runs whose flow has changed or was
	// removed since they were accepted.
	Restore func(context.Context, *run.Definition) (*flows.Set, error)

	// Limits are in force until [Engine.Deploy] replaces them, so also for the runs that
	// resume when the journal has been read. Default: the numbers that these runs began
	// with.
	Limits []*flows.Limit

	Workers        int // attempts that compute at once; default four times GOMAXPROCS, negative for none. [Engine.Tune] changes it
	InFlight       int // attempts that compute, or have begun and wait; default 512. [Engine.Tune] changes it
	OpenRuns       int // runs that are not finished; default 100 000
	Definitions    int // kept although no open run needs them, so that finished runs can be repeated with them; default 32, negative for none
	SnapshotEvents int // events after which a snapshot is made; default 50 000

	// CommitHold is how long a commit that nobody waits for takes further events. A short run
	// then needs one commit and not two, the second of which waits for the first. Default:
	// not at all.
	CommitHold time.Duration

	// AcceptLoss resumes with a journal that has lost its end, for which Run otherwise
	// returns a *TruncatedError. A power loss may cause it where commits are acknowledged
	// before they are synced.
	AcceptLoss bool

	Timeout time.Duration // of attempts whose task states none; default 5m. [Engine.Tune] changes it

	Clock scheduler.Clock // default the machine's

	// Random is the source of run ids and of the jitter of retries; default the machine's
	// randomness. Nothing else may use it.
	Random *rand.Rand

	Sim *Sim // for virtual time; default none: time passes, and Invoker makes the calls

	Log *slog.Logger // default: discarded

	suspicious bool // of tests: each turn of the loop is measured
}

// withDefaults gives the configuration with its defaults filled in.
func (c Config) withDefaults() Config {
	tuned := Tuning{c.Workers, c.InFlight, c.Timeout}.withDefaults()
	c.Workers, c.InFlight, c.Timeout = tuned.Workers, tuned.InFlight, tuned.Timeout
	if c.OpenRuns <= 0 {
		c.OpenRuns = 100_000
	}
	if c.Definitions == 0 {
		c.Definitions = 32
	}
	c.Definitions = max(c.Definitions, 0)
	if c.SnapshotEvents <= 0 {
		c.SnapshotEvents = 50_000
	}
	if c.Blobs == nil {
		c.Blobs = memory.NewStore()
	}
	if c.Sim != nil {
		c.Clock = c.Sim.Clock
	}
	if c.Clock == nil {
		c.Clock = scheduler.WallClock{}
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Engine advances the runs of one journal. Its methods are safe for concurrent use;
// they wait for [Engine.Run], bounded by their contexts.
type Engine struct {
	exec     *executor                              // belongs to the loop
	deployed atomic.Pointer[map[string]*flows.Flow] // by name; of the loop, for all

	commands  chan func()
	cleanups  chan func() // from callers that no longer wait for an answer
	drain     chan struct{}
	drainOnce sync.Once
	ready     chan struct{}
	stopped   chan struct{}
	drained   bool // everything recorded is durable; read it once stopped is closed
}

// New makes an engine that does nothing until Run is called.
func New(config Config) *Engine {
	return &Engine{
		exec:     newExecutor(config.withDefaults()),
		commands: make(chan func()),
		cleanups: make(chan func()),
		drain:    make(chan struct{}),
		ready:    make(chan struct{}),
		stopped:  make(chan struct{}),
	}
}

// Ready is closed once the journal has been replayed and the engine accepts commands.
func (e *Engine) Ready() <-chan struct{} { return e.ready }

// Drain requests a graceful stop: the engine accepts no new run and starts no attempt,
// waits for running attempts to end, commits everything and notifies the observers;
// then Run returns nil. Whatever has not started resumes when the journal is opened
// again.
func (e *Engine) Drain() {
	e.drainOnce.Do(func() { close(e.drain) })
}

// Run replays the journal and advances runs until it is drained (nil), until ctx ends
// (its cause) or until another writer has taken the journal (run.ErrFenced). When ctx
// ends, running attempts are abandoned: they are repeated when the journal is opened
// next. Run may be called once.
func (e *Engine) Run(ctx context.Context) error {
	defer close(e.stopped)
	ctx, stop := context.WithCancelCause(ctx)
	x := e.exec
	var running, notifying sync.WaitGroup
	defer running.Wait()
	for _, pool := range []interface {
		Close()
		Wait()
	}{x.workers, x.evaluations.pool} {
		defer pool.Wait()
		defer pool.Close()
	}
	defer stop(ErrStopped)

	x.ctx = ctx
	x.limits.deploy(x.config.Limits)
	inline := x.evaluations.inline
	x.evaluations.inline = true // what was under way must be settled before anything begins
	recovered, err := x.recover(ctx)
	if err != nil {
		return err
	}
	x.evaluations.inline = inline
	if x.config.Sim == nil {
		running.Go(func() { x.clock.timers.Run(ctx, x.clock.deliver(ctx)) })
	}
	running.Go(func() { x.commits.committer(ctx, recovered.last) })
	running.Go(func() { x.commits.compactor(ctx, recovered.archive) })
	x.commits.durable(x.commits.revision)
	notifying.Go(func() { x.commits.notifier(ctx) })
	x.commits.snapshotAt = time.Now().Add(-x.commits.pause()) // after a long journal make a snapshot soon, so that it is not read again
	if x.config.Snapshots != nil {
		x.tick()
	}
	x.count()
	close(e.ready)
	err = e.loop(ctx)
	if err != nil {
		stop(err)
	}
	close(x.commits.toNotifier) // after a graceful stop the notifier still delivers what it has received
	notifying.Wait()
	e.drained = err == nil
	return err
}

// loop owns the executor. A nil channel is a closed gate.
func (e *Engine) loop(ctx context.Context) error {
	x, drain := e.exec, e.drain
	for {
		x.dispatch()
		if !x.draining && x.commits.snapshotDue() {
			x.forgetDefinitions()
			x.commits.beginSnapshot()
		}
		commits, commit := x.commits.nextCommit()
		notices, notice := x.commits.nextNotice()
		idles, idle := x.nextIdle()
		commands, results, due, evaluated := e.commands, x.workers.Results(), x.clock.due, x.evaluations.results()
		if x.commits.congested() {
			commands, results, due, evaluated = nil, nil, nil, nil
		}
		freed := x.freed // each channel that select looks at costs something
		if x.runnable.Len() == 0 && len(x.pieces) == 0 {
			freed = nil
		}
		if x.fault != nil {
			return x.fault
		}
		x.watchdog.End()
		if x.draining && x.drained() {
			return nil
		}
		select {
		case command := <-commands:
			x.watchdog.Begin("commands")
			each(command, commands, func(f func()) { f() })
		case cleanup := <-e.cleanups:
			cleanup()
		case r := <-results:
			x.watchdog.Begin("the ends of attempts")
			each(r, results, func(r result) {
				x.workers.Returned()
				x.attemptEnded(r)
			})
		case <-freed:
			x.watchdog.Begin("what may start")
		case v := <-evaluated:
			x.watchdog.Begin("what follows from evaluations")
			each(v, evaluated, func(v *evaluation) {
				x.evaluations.ended(v)
				v.then()
			})
		case batch := <-due:
			x.watchdog.Begin("timers")
			for _, alarm := range batch {
				alarm()
			}
		case commits <- commit:
			x.commits.sent(commit)
		case <-x.commits.holding():
			x.commits.holdOver = true
		case b := <-x.commits.fromCommitter:
			x.watchdog.Begin("what waits for a commit")
			x.commits.committed(b)
			if x.fault == nil {
				x.count()
			}
		case notices <- notice:
			x.commits.noticed(notice)
		case idles <- idle:
			x.watchdog.Begin("a simulation")
			x.resumeIdle()
		case <-x.commits.writing():
			x.watchdog.Begin("a snapshot")
			x.commits.continueSnapshot()
		case <-x.commits.compacted:
			x.commits.compacting = false
		case <-drain:
			drain, x.draining = nil, true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// maxTurn is how many commands or results one turn of the loop handles.
const maxTurn = 64

// each handles the value that was just received and some of those that wait behind it:
// receiving from one channel is cheaper than selecting among all.
func each[T any](first T, more <-chan T, handle func(T)) {
	handle(first)
	for range maxTurn - 1 {
		select {
		case next := <-more:
			handle(next)
		default:
			return
		}
	}
}

// dispatch starts what may start.
func (e *executor) dispatch() {
	if len(e.pieces) > 0 && !e.commits.congested() && e.fault == nil {
		e.watchdog.Doing("a piece of large work", "")
		if next := e.pieces[0]; next() {
			e.pieces = e.pieces[1:]
		} else {
			e.freed.send()
		}
	}
	if e.schedules.backfillsDue && !e.commits.congested() && e.fault == nil {
		e.schedules.advanceBackfills()
	}
	for n := len(e.starting); n > 0 && !e.draining && e.fault == nil; n-- {
		o := e.starting[0]
		e.starting[0] = nil // only the executor's maps keep a run in memory
		e.starting = e.starting[1:]
		if o.run.State == run.Pending && !o.busy() { // a busy one was canceled, and its end is decided
			e.enter(o)
		}
	}
	if e.shard.Pause != nil {
		return
	}
	e.children.start()
	for e.runnable.Len() > 0 && !e.draining && !e.commits.congested() && e.fault == nil {
		t, place, ok := fairq.Admit(e.places, &e.runnable)
		if !ok {
			return
		}
		e.begin(t, place)
	}
}

// Tuning is the part of a [Config] that may change while the engine runs. Its fields and
// their defaults are those of the same names there.
type Tuning struct {
	Workers  int
	InFlight int
	Timeout  time.Duration
}

// Tune replaces the tuning. Attempts in flight are not affected.
func (e *Engine) Tune(t Tuning) {
	t = t.withDefaults()
	e.exec.timeout.Store(int64(t.Timeout))
	e.exec.places.Set(max(t.Workers, 0), t.InFlight)
}

func (t Tuning) withDefaults() Tuning {
	if t.Workers == 0 {
		t.Workers = 4 * runtime.GOMAXPROCS(0)
	}
	if t.InFlight <= 0 {
		t.InFlight = max(512, t.Workers)
	}
	if t.Timeout <= 0 {
		t.Timeout = 5 * time.Minute
	}
	return t
}

// command runs f on the loop and waits for it.
func (e *Engine) command(ctx context.Context, f func()) error {
	done := make(chan struct{})
	select {
	case e.commands <- func() { f(); close(done) }:
	case <-e.stopped:
		return ErrStopped
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	<-done
	return nil
}

// cleanUp runs f on the loop, also while the loop accepts no commands. f records
// nothing.
func (e *Engine) cleanUp(f func()) {
	select {
	case e.cleanups <- f:
	case <-e.stopped:
	}
}

// await gives the answer that the loop sends later, once it is durable.
func await[T any](ctx context.Context, e *Engine, answers <-chan T) (T, error) {
	var none T
	select {
	case answer := <-answers:
		return answer, nil
	case <-ctx.Done():
		return none, context.Cause(ctx)
	case <-e.stopped:
	}
	select {
	case answer := <-answers:
		return answer, nil
	default:
		return none, ErrStopped
	}
}

// errInternal is returned for a mistake of the engine, which also ends the loop.
var errInternal = errors.New("internal error")

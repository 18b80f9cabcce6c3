package engine

import (
	"context"
	"errors"
	"log/slog"
	"math"
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

// Config says what an engine works with. Journal, Restore, and Invoker or Stage are
// required; the zero value of everything else is its default.
type Config struct {
	Journal   Journal
	Invoker   Invoker
	Observers []Observation

	// Durable is told of the last revision after a start, and then of each commit when
	// the observers were told of it. It must not block. Default: nobody is told.
	Durable func(revision uint64)

	// Told is a revision of which others may know: a journal that ends before it has
	// lost its end. Default: as far as the observers were told.
	Published uint64

	Snapshots Store   // default none: the journal is read as a whole at each start and never shortened
	Blobs     Store   // of JSON from run.BlobSize on; default a memory.Store
	History   History // of finished runs; default none

	// Restore loads a recorded definition again, for runs whose flow has changed
	// or gone since they were accepted.
	Restore func(context.Context, *run.Definition) (*flows.Set, error)

	// Limits hold until [Engine.Deploy] brings others, and so already for the runs that
	// go on when the journal has been read. Default: the numbers that these began with.
	Limits []*flows.Limit

	Workers        int // attempts at once; default four times GOMAXPROCS. One flow has three quarters of them at most
	OpenRuns       int // runs that are not finished; default 100 000
	Definitions    int // that no open run needs and that are kept, so that finished runs can be made again with them; default 32, negative for none
	SnapshotEvents int // events after which a snapshot is made; default 50 000

	// AcceptLoss goes on with a journal that has lost its end, which is otherwise
	// answered with a *LostEndError: power losses do that where commits are not
	// synced before they are acknowledged.
	AcceptLoss bool

	Timeout time.Duration // of attempts whose task states none; default 5m

	Clock scheduler.Clock // default the machine's

	// Random is what ids of runs and the jitter of retries come from; default the
	// machine's randomness. Nothing else may use it.
	Random *rand.Rand

	Sim *Sim // for virtual time; default none: time passes, and Invoker makes the calls

	Log *slog.Logger // default: discarded
}

// maxTurn is how many commands or results one turn of the loop handles.
const maxTurn = 64

// maxTimers is out of reach: open runs, their tasks and the deployed schedules
// bound the timers, a few for each.
const maxTimers = math.MaxInt32

// Engine advances the runs of one journal. Its methods are safe for concurrent
// use; they wait for [Engine.Run], bounded by their contexts.
type Engine struct {
	config Config
	log    *slog.Logger

	commands chan func()
	cleanups chan func() // from those who wait for nothing any more
	answers  chan answer // to rests
	drain    chan struct{}
	ready    chan struct{}
	stopped  chan struct{}
	clock    *clock

	drainOnce sync.Once
	stats     atomic.Pointer[Stats]
	messages  messageWaits // for those who read messages

	// What follows belongs to the loop.
	ctx         context.Context // of the loop; attempts and restores end with it
	commits     *commitLog
	shard       *run.Shard                  // of commits
	flows       map[string]*flows.Flow      // deployed, by name
	sets        map[string]*flows.Set       // by digest of their definition
	chains      map[string][]flows.Follower // by the flow that they start after; nil before flows are deployed
	used        map[string]time.Time        // by digest of a definition: by the last run since the start
	schedules   *schedules
	workers     workers
	runLimits   runLimits
	watchers    watchers
	open        map[run.ID]*openRun // not finished
	limits      *limits
	starting    []*openRun        // have got their slot, or were accepted with the end of another one, and start next
	runnable    fairq.Queue[task] // may start as soon as a worker is free
	childStarts []task            // may start: those that run a flow, which takes no worker
	finished    finishedRuns
	draining    bool
	fault       error // ends the loop
}

// New makes an engine that does nothing until Run is called.
func New(config Config) *Engine {
	if config.Workers <= 0 {
		config.Workers = 4 * runtime.GOMAXPROCS(0)
	}
	if config.OpenRuns <= 0 {
		config.OpenRuns = 100_000
	}
	if config.Definitions == 0 {
		config.Definitions = 32
	}
	config.Definitions = max(config.Definitions, 0)
	if config.SnapshotEvents <= 0 {
		config.SnapshotEvents = 50_000
	}
	if config.Blobs == nil {
		config.Blobs = memory.NewStore()
	}
	if config.Timeout <= 0 {
		config.Timeout = 5 * time.Minute
	}
	if config.Sim != nil {
		config.Clock = config.Sim.Clock
	}
	if config.Clock == nil {
		config.Clock = scheduler.WallClock{}
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	places := config.Workers
	if config.Sim != nil {
		places = 0
	}
	e := &Engine{
		config:   config,
		log:      config.Log,
		commands: make(chan func()),
		cleanups: make(chan func()),
		answers:  make(chan answer, 1),
		drain:    make(chan struct{}),
		ready:    make(chan struct{}),
		stopped:  make(chan struct{}),
		flows:    map[string]*flows.Flow{},
		sets:     map[string]*flows.Set{},
		used:     map[string]time.Time{},
		open:     map[run.ID]*openRun{},
	}
	e.clock = &clock{source: config.Clock, due: make(chan []func()), fail: e.fail}
	e.clock.timers = scheduler.NewQueue[func()](scheduler.Options{Limit: maxTimers, Clock: config.Clock, Jumped: e.jumped})
	e.commits = newCommitLog(&e.config)
	e.commits.applied, e.commits.recordOf, e.commits.fail = e.applied, e.recordOf, e.fail
	e.shard = e.commits.shard
	e.workers.invoker, e.workers.log = config.Invoker, config.Log
	e.workers.work, e.workers.results = make(chan *attempt, places), make(chan result, places)
	e.workers.idle, e.workers.share = config.Workers, config.Workers-config.Workers/4
	e.runLimits = runLimits{byKey: map[runLimitKey]*runLimiter{}, open: e.open, start: func(o *openRun) { e.starting = append(e.starting, o) }}
	e.watchers = watchers{clock: e.clock, commits: e.commits, open: e.open, byRun: map[run.ID][]watcher{}}
	e.schedules = &schedules{engine: e, byRef: map[run.ScheduleRef]*schedule{}}
	e.limits = &limits{clock: e.clock, byName: map[string]*limitState{}}
	e.finished.limit = maxFinishedBytes
	if config.History != nil {
		e.finished.limit = maxFinishedBytes / 8
	}
	e.messages = messageWaits{begun: map[waitKey]run.OpenWait{}, ended: map[waitKey]run.OpenWait{}, changed: make(chan struct{}, 1)}
	return e
}

// Ready is closed once the journal has been replayed and commands are taken.
func (e *Engine) Ready() <-chan struct{} { return e.ready }

// Drain asks for a soft stop: no new run is accepted, no attempt starts, those
// under way end, everything is committed and told to the observers, and Run
// returns nil. What has not started yet goes on when the journal is opened again.
func (e *Engine) Drain() {
	e.drainOnce.Do(func() { close(e.drain) })
}

// Run replays the journal and advances runs until it is drained (nil), until ctx
// ends (its cause) or until the journal is lost to another writer
// (run.ErrFenced). When ctx ends, attempts under way are abandoned: they are
// made again when the journal is opened next. Run may be called once.
func (e *Engine) Run(ctx context.Context) error {
	defer close(e.stopped)
	ctx, stop := context.WithCancelCause(ctx)
	var running, notifying sync.WaitGroup
	defer running.Wait()
	defer stop(ErrStopped)

	e.ctx = ctx
	e.limits.deploy(e.config.Limits)
	recovered, err := e.recover(ctx)
	if err != nil {
		return err
	}
	e.workers.drop = running.Done
	e.workers.start = func() {
		running.Add(1)
		go func() {
			if replaced := e.workers.worker(); !replaced {
				running.Done()
			}
		}()
	}
	if e.config.Sim != nil {
		e.workers.start, e.workers.drop = func() {}, func() {}
	} else {
		running.Go(func() { e.clock.timers.Run(ctx, e.hand(ctx)) })
	}
	for range e.config.Workers {
		e.workers.start()
	}
	running.Go(func() { e.commits.committer(ctx, recovered.last) })
	running.Go(func() { e.commits.compactor(ctx, recovered.archive) })
	e.commits.durable(e.commits.revision)
	notifying.Go(func() { e.commits.notifier(ctx) })
	e.commits.snapshotAt = time.Now().Add(-e.commits.pause()) // a long journal was read: do not read it again
	if e.config.Snapshots != nil {
		e.tick()
	}
	e.count()
	close(e.ready)
	err = e.loop(ctx)
	if err != nil {
		stop(err)
	}
	close(e.workers.work)
	close(e.commits.toNotifier) // what the notifier has taken is told to the end after a soft stop
	notifying.Wait()
	return err
}

// hand gives due timers to the loop. It blocks while the loop is busy: late
// timers queue in the heap, nowhere else.
func (e *Engine) hand(ctx context.Context) func([]func()) {
	return func(batch []func()) {
		batch = append([]func(){}, batch...)
		select {
		case e.clock.due <- batch:
		case <-ctx.Done():
		}
	}
}

// loop owns everything. A nil channel is a closed gate.
func (e *Engine) loop(ctx context.Context) error {
	drain := e.drain
	for {
		e.dispatch()
		if !e.draining && e.commits.snapshotDue() {
			e.forgetDefinitions()
			e.commits.beginSnapshot()
		}
		commits, commit := e.commits.nextCommit()
		notices, notice := e.commits.nextNotice()
		rests, rest := e.nextIdle()
		commands, results, due := e.commands, e.workers.results, e.clock.due
		if e.commits.congested() {
			commands, results, due = nil, nil, nil
		}
		if e.fault != nil {
			return e.fault
		}
		if e.draining && e.drained() {
			return nil
		}
		select {
		case command := <-commands:
			each(command, commands, func(f func()) { f() })
		case leave := <-e.cleanups:
			leave()
		case r := <-results:
			each(r, results, e.attemptEnded)
		case batch := <-due:
			for _, alarm := range batch {
				alarm()
			}
		case commits <- commit:
			e.commits.sent(commit)
		case b := <-e.commits.fromCommitter:
			e.commits.committed(b)
			if e.fault == nil {
				e.count()
			}
		case notices <- notice:
			e.commits.noticed(notice)
		case rests <- rest:
			e.resumeIdle()
		case <-e.commits.writing():
			e.commits.continueSnapshot()
		case <-e.commits.compacted:
			e.commits.compacting = false
		case <-drain:
			drain, e.draining = nil, true
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// each handles what has just been received and some of what else waits: receiving
// from one channel is cheaper than selecting among all.
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

// dispatch starts what may start while workers are free.
func (e *Engine) dispatch() {
	if e.schedules.backfillsDue && !e.commits.congested() && e.fault == nil {
		e.schedules.advanceBackfills()
	}
	for n := len(e.starting); n > 0 && !e.draining && e.fault == nil; n-- {
		o := e.starting[0]
		e.starting[0] = nil // nothing but the engine's maps holds a run
		e.starting = e.starting[1:]
		if o.run.State == run.Pending {
			e.enter(o)
		}
	}
	e.startChildren()
	for e.workers.idle > 0 && e.runnable.Len() > 0 && !e.draining && !e.commits.congested() && e.fault == nil {
		t, ok := e.runnable.Pop(e.workers.share)
		if !ok {
			return
		}
		e.begin(t)
	}
}

// tick lets the loop look at the clock, also when nothing happens.
func (e *Engine) tick() {
	e.commits.ticked = true
	e.clock.at(e.clock.now().Add(snapshotAge), e.tick)
}

// drained reports whether a soft stop has nothing left to wait for.
func (e *Engine) drained() bool {
	return e.workers.idle == e.config.Workers && e.commits.inFlight == nil && len(e.commits.pending) == 0 && len(e.commits.outbox) == 0
}

// fail ends the loop with an error that it cannot go on after.
func (e *Engine) fail(err error) {
	if e.fault == nil {
		e.fault = err
	}
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

// forgo runs f on the loop, also while that takes no commands. f records
// nothing.
func (e *Engine) cleanUp(f func()) {
	select {
	case e.cleanups <- f:
	case <-e.stopped:
	}
}

// await gives what the loop answers later, once it is durable.
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

var errInternal = errors.New("internal error")

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

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/wire"
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
	Told uint64

	Snapshots Store   // default none: the journal is read as a whole at each start and never shortened
	Blobs     Store   // of JSON from run.BlobSize on; default a MemoryStore
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

	Stage *Stage // for virtual time; default none: time passes, and Invoker makes the calls

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

	commands  chan func()
	leaving   chan func() // from those who wait for nothing any more
	results   chan result
	work      chan *attempt
	due       chan []func()
	commits   chan *batch           // to the committer
	written   chan *batch           // from the committer
	notices   chan *batch           // to the notifier
	answers   chan answer           // to rests
	sweeps    chan sweep            // to the committer
	snapshots chan finishedSnapshot // to the archivist
	archived  chan struct{}         // from the archivist
	drain     chan struct{}
	ready     chan struct{}
	stopped   chan struct{}
	timers    *scheduler.Queue[func()]

	drainOnce sync.Once
	told      atomic.Uint64 // the revision up to which the observers were told
	stats     atomic.Pointer[Stats]
	stuck     atomic.Int32 // attempts that were given up and have not ended yet
	blobs     blobs        // of the committer
	messages  messageWaits // for those who read messages

	taskObservers bool // somebody is told of events of tasks

	// What follows belongs to the loop.
	ctx        context.Context // of the loop; attempts and restores end with it
	shard      *run.Shard
	flows      map[string]*flows.Flow      // deployed, by name
	sets       map[string]*flows.Set       // by digest of their definition
	chains     map[string][]flows.Follower // by the flow that they start after; nil before flows are deployed
	used       map[string]time.Time        // by digest of a definition: by the last run since the start
	schedules  map[run.ScheduleRef]*schedule
	fired      uint64              // nominal times of schedules that made a run, since the start
	dropped    uint64              // those that made none
	open       map[run.ID]*openRun // not finished
	gates      map[gateKey]*gate   // concurrency limits in use
	quotas     map[string]*quota   // limits that are deployed, or that open runs refer to
	starting   []*openRun          // have got their slot, or were accepted with the end of another one, and start next
	runnable   readyQueue          // may start as soon as a worker is free
	calling    []task              // may start: those that run a flow, which takes no worker
	idle       int                 // workers without an attempt
	share      int                 // workers that one flow may have
	hire       func()              // starts a worker
	release    func()              // stops waiting for one that hangs
	pending    []*batch            // not given to the committer yet; the last one is still growing
	outbox     []*batch            // durable, not given to the notifier yet
	untold     int                 // events in outbox
	inFlight   *batch              // at the committer
	unsaved    int                 // bytes in pending and inFlight
	spare      []*wire.Commit      // emptied
	revision   uint64              // of the last durable commit
	finished   finishedRuns
	watched    map[run.ID][]watcher
	snapshot   *snapshot // being written
	archiving  bool      // the archivist has one
	generation int       // of the snapshot that was begun last
	snapshotAt time.Time // when
	events     int       // since then
	ticked     bool      // it may be old enough for another one
	filling    bool      // a timer lets backfills go on when there may be room
	unfilled   bool      // backfills may go on
	draining   bool
	fault      error // ends the loop
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
		config.Blobs = NewMemoryStore()
	}
	if config.Timeout <= 0 {
		config.Timeout = 5 * time.Minute
	}
	if config.Stage != nil {
		config.Clock = config.Stage.Clock
	}
	if config.Clock == nil {
		config.Clock = scheduler.WallClock{}
	}
	if config.Log == nil {
		config.Log = slog.New(slog.DiscardHandler)
	}
	places := config.Workers
	if config.Stage != nil {
		places = 0
	}
	e := &Engine{
		config:     config,
		log:        config.Log,
		commands:   make(chan func()),
		leaving:    make(chan func()),
		results:    make(chan result, places),
		work:       make(chan *attempt, places),
		due:        make(chan []func()),
		commits:    make(chan *batch, 1),
		written:    make(chan *batch, 1),
		notices:    make(chan *batch),
		answers:    make(chan answer, 1),
		sweeps:     make(chan sweep),
		snapshots:  make(chan finishedSnapshot, 1),
		archived:   make(chan struct{}),
		drain:      make(chan struct{}),
		ready:      make(chan struct{}),
		stopped:    make(chan struct{}),
		shard:      run.NewShard(),
		flows:      map[string]*flows.Flow{},
		sets:       map[string]*flows.Set{},
		used:       map[string]time.Time{},
		schedules:  map[run.ScheduleRef]*schedule{},
		open:       map[run.ID]*openRun{},
		gates:      map[gateKey]*gate{},
		quotas:     map[string]*quota{},
		watched:    map[run.ID][]watcher{},
		idle:       config.Workers,
		share:      config.Workers - config.Workers/4,
		generation: firstGeneration,
	}
	e.timers = scheduler.NewQueue[func()](scheduler.Options{Limit: maxTimers, Clock: config.Clock, Jumped: e.jumped})
	for _, o := range config.Observers {
		e.taskObservers = e.taskObservers || !o.RunsOnly
	}
	e.finished.limit = maxFinishedBytes
	if config.History != nil {
		e.finished.limit = maxFinishedBytes / 8
	}
	e.messages = messageWaits{begun: map[waitKey]run.OpenWait{}, ended: map[waitKey]run.OpenWait{}, changed: make(chan struct{}, 1)}
	e.blobs = blobs{store: config.Blobs, log: config.Log, insist: e.insist, stored: map[string]int{}}
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
	e.deployLimits(e.config.Limits)
	recovered, err := e.recover(ctx)
	if err != nil {
		return err
	}
	e.release = running.Done
	e.hire = func() {
		running.Add(1)
		go func() {
			if replaced := e.worker(); !replaced {
				running.Done()
			}
		}()
	}
	if e.config.Stage != nil {
		e.hire, e.release = func() {}, func() {}
	} else {
		running.Go(func() { e.timers.Run(ctx, e.hand(ctx)) })
	}
	for range e.config.Workers {
		e.hire()
	}
	running.Go(func() { e.committer(ctx, recovered.last) })
	running.Go(func() { e.archivist(ctx, recovered.archive) })
	e.durable(e.revision)
	notifying.Go(func() { e.notifier(ctx) })
	e.snapshotAt = time.Now().Add(-e.pause()) // a long journal was read: do not read it again
	if e.config.Snapshots != nil {
		e.tick()
	}
	e.count()
	close(e.ready)
	err = e.loop(ctx)
	if err != nil {
		stop(err)
	}
	close(e.work)
	close(e.notices) // what the notifier has taken is told to the end after a soft stop
	notifying.Wait()
	return err
}

// hand gives due timers to the loop. It blocks while the loop is busy: late
// timers queue in the heap, nowhere else.
func (e *Engine) hand(ctx context.Context) func([]func()) {
	return func(batch []func()) {
		batch = append([]func(){}, batch...)
		select {
		case e.due <- batch:
		case <-ctx.Done():
		}
	}
}

// loop owns everything. A nil channel is a closed gate.
func (e *Engine) loop(ctx context.Context) error {
	drain := e.drain
	for {
		e.dispatch()
		if e.snapshotDue() {
			e.beginSnapshot()
		}
		commits, commit := e.nextCommit()
		notices, notice := e.nextNotice()
		rests, rest := e.rest()
		commands, results, due := e.commands, e.results, e.due
		if e.congested() {
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
		case leave := <-e.leaving:
			leave()
		case r := <-results:
			each(r, results, e.attemptEnded)
		case batch := <-due:
			for _, alarm := range batch {
				alarm()
			}
		case commits <- commit:
			e.sent(commit)
		case b := <-e.written:
			e.committed(b)
		case notices <- notice:
			e.noticed(notice)
		case rests <- rest:
			e.rested()
		case <-e.writing():
			e.continueSnapshot()
		case <-e.archived:
			e.archiving = false
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

// tick lets the loop look at the clock, also when nothing happens.
func (e *Engine) tick() {
	e.ticked = true
	e.at(e.now().Add(snapshotAge), e.tick)
}

// drained reports whether a soft stop has nothing left to wait for.
func (e *Engine) drained() bool {
	return e.idle == e.config.Workers && e.inFlight == nil && len(e.pending) == 0 && len(e.outbox) == 0
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
func (e *Engine) forgo(f func()) {
	select {
	case e.leaving <- f:
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

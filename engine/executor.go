package engine

import (
	"context"
	"log/slog"
	"math"
	"strings"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/engine/internal/watchdog"
	"github.com/flowhost/flowhost/engine/internal/workers"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// executor is the state machine of all runs. It belongs to the loop: only the loop
// calls its methods, and [Engine] is the way there.
type executor struct {
	config  Config
	log     *slog.Logger
	ctx     context.Context // of the loop; attempts and restores end with it
	clock   *clock
	commits *commitLog
	shard   *run.Shard // the recorded state, of commits

	flows     map[string]*flows.Flow // deployed, by name
	sets      map[string]*flows.Set  // by digest of their definition
	chains    *chains
	used      map[string]time.Time // by digest of a definition: when a run last used it, since the start
	schedules *schedules

	open      map[run.ID]*openRun  // runs that are not finished
	pieces    []func() (done bool) // of large work, one for each turn of the loop
	starting  []*openRun           // runs that start next: they have a slot, or another run's end has started them
	runLimits runLimits

	runnable fairq.Queue[task] // tasks that may start as soon as a worker is idle
	children *children
	limits   *limits
	places   *fairq.Places // shared with the goroutines of attempts
	freed    wakeup        // an attempt may be admitted that could not be before, or a piece of work is left
	timeout  atomic.Int64  // of attempts whose task states none, in nanoseconds; [Engine.Tune] stores it
	workers  *workers.Pool[*attempt, result]
	inFlight int // attempts
	calls    invocations

	evaluations *evaluations
	watchdog    *watchdog.Watchdog

	finished finishedRuns
	watchers watchers
	messages messageWaits
	answers  chan answer // to idles
	stats    atomic.Pointer[Stats]
	draining bool
	fault    error // ends the loop
}

// longTurn is the processor time from which a turn of the loop is reported.
const longTurn = 50 * time.Millisecond

// maxTimers is out of reach: open runs, their tasks and the deployed schedules have a
// few timers each.
const maxTimers = math.MaxInt32

func newExecutor(config Config) *executor {
	e := &executor{
		config: config, log: config.Log,
		flows: map[string]*flows.Flow{}, sets: map[string]*flows.Set{}, used: map[string]time.Time{},
		open: map[run.ID]*openRun{}, answers: make(chan answer, 1),
	}
	e.clock = &clock{source: config.Clock, due: make(chan []func()), fail: e.fail}
	e.clock.timers = scheduler.NewQueue[func()](scheduler.Options{Limit: maxTimers, Clock: config.Clock, Jumped: e.jumped})
	e.commits = newCommitLog(&e.config)
	e.commits.applied, e.commits.recordOf, e.commits.fail = e.applied, e.recordOf, e.fail
	e.shard = e.commits.shard
	e.timeout.Store(int64(config.Timeout))
	e.freed = make(wakeup, 1)
	e.places = fairq.NewPlaces(max(config.Workers, 0), config.InFlight, e.freed.send)
	e.calls.invoker, e.calls.log = config.Invoker, config.Log
	e.workers = workers.New(e.calls.make, maxTurn)
	e.watchdog = watchdog.New(longTurn, config.suspicious, func(t watchdog.Turn) {
		e.log.Warn("the engine's loop took long for one turn; all flows waited for it", "cpu", t.Took, "doing", t.What, "of", t.Of)
	})
	e.chains, e.children = &chains{exec: e}, &children{exec: e}
	e.evaluations = newEvaluations(e, config.Sim != nil)
	e.limits = &limits{clock: e.clock, byName: map[string]*limitState{}}
	e.runLimits = runLimits{byKey: map[runLimitKey]*runLimiter{}, open: e.open, start: func(o *openRun) { e.starting = append(e.starting, o) }}
	e.schedules = &schedules{exec: e, byRef: map[run.ScheduleRef]*schedule{}, backfilled: map[run.ID]*scheduledAdmission{}}
	e.watchers = watchers{clock: e.clock, commits: e.commits, open: e.open, byRun: map[run.ID][]watcher{}, explain: func(o *openRun, r *run.Record) { explainWaits(e, o, r) }}
	e.messages = messageWaits{begun: map[waitKey]run.OpenWait{}, ended: map[waitKey]run.OpenWait{}, changed: make(chan struct{}, 1)}
	e.finished.limit = maxFinishedBytes
	if config.History != nil {
		e.finished.limit = maxFinishedBytes / 8
	}
	return e
}

// tick makes the loop look at the clock even when nothing happens.
func (e *executor) tick() {
	e.commits.ticked = true
	e.clock.at(e.clock.now().Add(snapshotAge), e.tick)
}

// drained reports whether a graceful stop has nothing left to wait for.
func (e *executor) drained() bool {
	return e.inFlight == 0 && !e.busy()
}

// busy reports whether something is under way that takes no virtual time and that a
// graceful stop waits for.
func (e *executor) busy() bool {
	return len(e.pieces) > 0 || e.evaluations.out > 0 || e.commits.inFlight != nil || len(e.commits.pending) > 0 || len(e.commits.outbox) > 0
}

// wakeup lets the loop look, from any goroutine, at what may start.
type wakeup chan struct{}

func (w wakeup) send() {
	select {
	case w <- struct{}{}:
	default:
	}
}

// fail ends the loop with an error from which the engine cannot continue.
func (e *executor) fail(err error) {
	if e.fault == nil {
		e.fault = err
	}
}

// Stats is how much an engine has to do, as of its last commit.
type Stats struct {
	Open       int    `json:"open_runs"`
	Ready      int    `json:"ready_tasks"` // waiting for a worker
	Running    int    `json:"running_attempts"`
	Waiting    int    `json:"waiting_attempts"` // of the running ones: for memory, a module, a worker, or asleep
	Stuck      int    `json:"stuck_attempts"`   // given up, and not ended yet
	Evaluating int    `json:"evaluations"`      // of expressions, beside the loop
	Timers     int    `json:"timers"`           // fires, retries and deadlines
	Fired      uint64 `json:"fired"`            // nominal times of schedules that made a run, since the start
	Dropped    uint64 `json:"dropped_fires"`    // nominal times that made none, since the start
	Revision   uint64 `json:"revision"`         // of the journal
	Tail       int    `json:"events_since_snapshot"`

	LongTurns   int64         `json:"long_turns"`                 // of the loop, of more than 50 ms of a processor
	LongestTurn time.Duration `json:"longest_turn_ns,omitempty"`  // of these
	LongestWas  string        `json:"longest_turn_was,omitempty"` // what it did

	Workers  int        `json:"workers"`         // attempts that may compute at once
	InFlight int        `json:"in_flight"`       // attempts that may compute, or have begun and wait
	Pause    *run.Pause `json:"pause,omitempty"` // of the host; nil while attempts start
}

// Stats returns how much the engine has to do, as of the last commit, and the present
// bounds of attempts.
func (e *Engine) Stats() Stats {
	var s Stats
	if counted := e.exec.stats.Load(); counted != nil {
		s = *counted
	}
	s.Workers, s.InFlight = e.exec.places.Bounds()
	return s
}

func (e *executor) count() {
	_, waiting := e.places.Count()
	long, longest := e.watchdog.Report()
	e.stats.Store(&Stats{
		Open: len(e.open), Ready: e.runnable.Len(), Running: e.inFlight, Waiting: waiting, Stuck: int(e.calls.stuck.Load()), Evaluating: e.evaluations.out,
		Timers: e.clock.timers.Len(), Fired: e.schedules.fired, Dropped: e.schedules.dropped, Revision: e.commits.revision, Tail: e.commits.events,
		LongTurns: long, LongestTurn: longest.Took, LongestWas: strings.TrimSpace(longest.What + " " + longest.Of), Pause: e.shard.Pause,
	})
}

package engine

import (
	"runtime"
	"slices"
	"time"

	"github.com/flowhost/flowhost/engine/internal/workers"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
)

// What users write is evaluated with a small budget first, on the loop. What needs more
// is evaluated again, with its whole budget, on another goroutine. Meanwhile its run is
// busy: whatever happens to the run waits in its inbox, so that nothing changes while the
// evaluation reads it, and no run has more than one evaluation out. In between, the loop
// serves the others.
//
// Nothing of what follows from an evaluation is recorded before it has ended.

const (
	// trialUnits is what an evaluation may cost on the loop, some 2 ms at the worst. It
	// suffices for 16 KiB of JSON and ordinary expressions.
	trialUnits = 2000

	// maxTrialTasks is how many task runs a run may have whose evaluations are tried on
	// the loop: the outputs of its fan-outs are gathered for an expression at no charge.
	maxTrialTasks = 2000

	// maxEvaluation is how long an evaluation may take. The budget decides outcomes; this
	// is for a mistake in what it charges.
	maxEvaluation = 10 * time.Second
)

// evaluation is one that is out.
type evaluation struct {
	scope *flows.Scope // nil when it cannot be interrupted
	flow  string
	work  func() // on another goroutine
	then  func() // afterwards, on the loop
	again func() // instead of then, when it was interrupted

	urgent []func() // that have interrupted it
	ended  bool

	place    fairq.Place
	deadline countdown
}

// evaluations are those that are out. As many compute as there are processors, and one of
// each flow beyond.
type evaluations struct {
	exec    *executor
	clock   *clock
	around  func(work func()) // of tests: lets an evaluation take its time
	inline  bool              // all of them: in a simulation, and before the loop begins
	trial   int               // units, see trialUnits
	pool    *workers.Pool[*evaluation, *evaluation]
	places  *fairq.Places
	waiting fairq.Queue[*evaluation]
	out     int // that compute or wait
}

func newEvaluations(e *executor, inline bool) *evaluations {
	processors := runtime.GOMAXPROCS(0)
	vs := &evaluations{
		exec: e, clock: e.clock, inline: inline, trial: trialUnits, around: func(work func()) { work() },
		places: fairq.NewPlaces(processors, 2*processors, nil),
	}
	vs.pool = workers.New(func(v *evaluation) (*evaluation, bool) {
		vs.around(v.work)
		return v, true
	}, maxTurn)
	return vs
}

// try evaluates on the loop, unless that takes long. try gets the units that it may use, 0
// for as many as it needs, and reports whether they were enough.
func (vs *evaluations) try(try func(units int) bool) bool {
	return try(vs.units())
}

// results are the evaluations that have ended; nil while none is out.
func (vs *evaluations) results() <-chan *evaluation {
	if vs.out == 0 {
		return nil
	}
	return vs.pool.Results()
}

// tries reports whether evaluations of a run are tried on the loop.
func (vs *evaluations) tries(o *openRun) bool { return vs.inline || len(o.run.Tasks) <= maxTrialTasks }

// units is what an evaluation on the loop may use, 0 for as many as it needs.
func (vs *evaluations) units() int {
	if vs.inline {
		return 0
	}
	return vs.trial
}

// begin lets an evaluation compute as soon as it is its turn.
func (vs *evaluations) begin(v *evaluation) {
	vs.out++
	vs.waiting.Push(v, v.flow, 0, nil)
	vs.admit()
}

func (vs *evaluations) admit() {
	for {
		v, place, ok := fairq.Admit(vs.places, &vs.waiting)
		if !ok {
			return
		}
		v.place = place
		if v.scope != nil {
			vs.clock.countDown(&v.deadline, vs.clock.now().Add(maxEvaluation), func() {
				if !v.ended {
					v.scope.Interrupt()
				}
			})
		}
		vs.pool.Begin(v)
	}
}

// ended notes the end of an evaluation, and begins others.
func (vs *evaluations) ended(v *evaluation) {
	v.ended = true
	vs.pool.Returned()
	vs.out--
	vs.places.Exit(&v.place)
	vs.waiting.Done(v.flow, nil)
	vs.clock.stopCountdown(&v.deadline)
	vs.admit()
}

// busy reports whether a run has an evaluation out.
func (o *openRun) busy() bool { return o.evaluating != nil }

// whenIdle calls f once the run has no evaluation out.
func (o *openRun) whenIdle(f func()) {
	if o.busy() {
		o.inbox = append(o.inbox, f)
		return
	}
	f()
}

// interrupt ends the run's evaluation early, for f, which is called before the evaluation
// is made again. Without an evaluation that can be interrupted it is whenIdle.
func (o *openRun) interrupt(f func()) {
	v := o.evaluating
	if v == nil || v.again == nil {
		o.whenIdle(f)
		return
	}
	v.scope.Interrupt()
	v.urgent = append(v.urgent, f)
}

// evaluate evaluates something of a run, as [evaluations.try] does, and calls then. If it
// is interrupted, it calls again instead; without again it cannot be interrupted.
func (vs *evaluations) evaluate(o *openRun, try func(units int) bool, then, again func()) {
	if vs.tries(o) && vs.try(try) {
		then()
		return
	}
	vs.evaluateBeside(o, func() { try(0) }, then, again)
}

// evaluateBeside evaluates something of a run beside the loop, as evaluate does.
func (vs *evaluations) evaluateBeside(o *openRun, work, then, again func()) {
	v := &evaluation{flow: o.run.Flow, work: work, then: then, again: again}
	if again != nil {
		v.scope = o.scope
	}
	o.evaluating = v
	v.then = func() { vs.evaluated(o, v, then) }
	vs.begin(v)
}

// evaluated continues a run whose evaluation has ended.
func (vs *evaluations) evaluated(o *openRun, v *evaluation, then func()) {
	o.evaluating = nil
	if v.scope != nil {
		v.scope.Continue()
	}
	if len(v.urgent) > 0 {
		o.inbox = slices.Concat(v.urgent, []func(){v.again}, o.inbox)
		vs.readInbox(o, len(v.urgent)+1)
	} else {
		then()
	}
	vs.settleRun(o)
}

// settleRun advances a run as far as it goes, and does what has waited for that.
func (vs *evaluations) settleRun(o *openRun) {
	for vs.exec.fault == nil {
		vs.exec.advance(o)
		if o.busy() || len(o.inbox) == 0 {
			return
		}
		vs.readInbox(o, 1)
	}
}

// readInbox does the first things of a run's inbox, as long as it is idle.
func (vs *evaluations) readInbox(o *openRun, n int) {
	for ; n > 0 && len(o.inbox) > 0 && !o.busy() && vs.exec.fault == nil; n-- {
		next := o.inbox[0]
		o.inbox[0] = nil
		o.inbox = o.inbox[1:]
		next()
	}
}

// evaluateTask evaluates something of a task in the scope of its run.
func evaluateTask[T any](e *executor, t task, f func(*flows.Scope) (T, *run.Failure), then func(T, *run.Failure), again func()) {
	var value T
	var failure *run.Failure
	e.evaluations.evaluate(t.openRun, func(units int) bool {
		defer t.lookAt()()
		return t.scope.Try(units, func() { value, failure = f(t.scope) })
	}, func() { then(value, failure) }, again)
}

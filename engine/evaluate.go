package engine

import (
	"runtime"
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

	place       fairq.Place
	deadline    countdown
	interrupted bool
}

// evaluations are those that are out. As many compute as there are processors, and one of
// each flow beyond.
type evaluations struct {
	clock   *clock
	inline  bool // all of them, in a simulation
	trial   int  // units, see trialUnits
	pool    *workers.Pool[*evaluation, *evaluation]
	places  *fairq.Places
	waiting fairq.Queue[*evaluation]
	out     int // that compute or wait
}

func newEvaluations(c *clock, inline bool) evaluations {
	processors := runtime.GOMAXPROCS(0)
	return evaluations{
		clock: c, inline: inline, trial: trialUnits,
		places: fairq.NewPlaces(processors, 2*processors, nil),
		pool: workers.New(func(v *evaluation) (*evaluation, bool) {
			v.work()
			return v, true
		}, maxTurn),
	}
}

// try evaluates on the loop, unless that takes long. try gets the units that it may use, 0
// for as many as it needs, and reports whether they were enough.
func (vs *evaluations) try(try func(units int) bool) bool {
	if vs.inline {
		return try(0)
	}
	return try(vs.trial)
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
			vs.clock.countDown(&v.deadline, vs.clock.now().Add(maxEvaluation), v.scope.Interrupt)
		}
		vs.pool.Begin(v)
	}
}

// ended notes the end of an evaluation, and begins others.
func (vs *evaluations) ended(v *evaluation) {
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
// is made again.
func (o *openRun) interrupt(f func()) {
	if v := o.evaluating; v != nil && v.again != nil && !v.interrupted {
		v.interrupted = true
		v.scope.Interrupt()
	}
	o.whenIdle(f)
}

// evaluate evaluates something of a run, as [evaluations.try] does, and calls then. If it
// is interrupted, it calls again instead; without again it cannot be interrupted.
func (e *executor) evaluate(o *openRun, try func(units int) bool, then, again func()) {
	if (e.evaluations.inline || len(o.run.Tasks) <= maxTrialTasks) && e.evaluations.try(try) {
		then()
		return
	}
	v := &evaluation{flow: o.run.Flow, work: func() { try(0) }, then: then, again: again}
	if again != nil {
		v.scope = o.scope
	}
	o.evaluating = v
	v.then = func() { e.evaluated(o, v, then) }
	e.evaluations.begin(v)
}

// evaluated continues a run whose evaluation has ended.
func (e *executor) evaluated(o *openRun, v *evaluation, then func()) {
	o.evaluating = nil
	if v.scope != nil {
		v.scope.Continue()
	}
	if v.interrupted {
		o.inbox = append(o.inbox, v.again)
	} else {
		then()
	}
	e.readInbox(o)
}

// readInbox does what has waited for a run to be idle, and advances the run.
func (e *executor) readInbox(o *openRun) {
	for len(o.inbox) > 0 && !o.busy() && e.fault == nil {
		next := o.inbox[0]
		o.inbox[0] = nil
		o.inbox = o.inbox[1:]
		next()
	}
	e.advance(o)
}

// evaluateTask evaluates something of a task in the scope of its run.
func evaluateTask[T any](e *executor, t task, f func(*flows.Scope) (T, *run.Failure), then func(T, *run.Failure), again func()) {
	var value T
	var failure *run.Failure
	e.evaluate(t.openRun, func(units int) bool {
		defer t.lookAt()()
		return t.scope.Try(units, func() { value, failure = f(t.scope) })
	}, func() { then(value, failure) }, again)
}

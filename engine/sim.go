package engine

import (
	"context"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// Stage is where an engine goes through virtual time: workers and timers do
// nothing by themselves, and whoever directs it is told of each attempt and of
// each rest. The same attempts, ended in the same order at the same instants of
// the same clock, give the same runs. Its functions are called on the engine's
// loop: they must not block, and must not call the engine.
type Sim struct {
	// Clock is that of the engine, in place of [Config.Clock].
	Clock *scheduler.VirtualClock

	// Begin is told of an attempt that starts, in place of [Config.Invoker]. The
	// attempt goes on until it is given to [Rest.End].
	Begin func(*Attempt)

	// Interrupt is told that an attempt is to end at this instant, for the cause
	// run.ErrDeadline or one that is run.ErrCanceled.
	Interrupt func(a *Attempt, cause error)

	// Finished is told of each run that has ended; optional.
	Finished func(*run.Record)

	// Recorded is told of each event of a run as it happens; optional.
	Recorded func(run.Event)

	// GroupEnded is told what has become of a group, which no event says; optional.
	GroupEnded func(of run.ID, group *run.TaskRun)

	// StandsIn reports whether a call takes the place of the run of a sub-flow that
	// a task of a run is; optional: it never does.
	StandsIn func(of run.ID, task string) bool

	// Rests takes the engine's rests. While one has been taken and not been
	// answered, the engine does nothing at all.
	Idle chan Idle
}

// Attempt is one call on a [Stage].
type Attempt struct {
	Call    run.Call
	Context context.Context // ends when the attempt is interrupted, and with the engine
	of      *attempt
}

// Ended is how an attempt on a [Stage] ended. An error makes it lost.
type CallResult struct {
	Attempt *Attempt
	Result  run.Result
	Err     error
}

// Rest is an engine that has nothing more to do at the present instant, but for
// timers that are due: all that it has recorded is durable. It is answered once. The
// clock may be moved between a rest and its answer only.
type Idle struct {
	Next    time.Time // when the first timer is due, which may be past; zero without one
	answers chan<- answer
}

type answer struct {
	ended []CallResult
	fire  bool
}

// End ends attempts, in this order.
func (r Idle) End(ended []CallResult) { r.answers <- answer{ended: ended} }

// Fire lets the timers go off that are due by now.
func (r Idle) Fire() { r.answers <- answer{fire: true} }

// Leave changes nothing: the engine takes commands, and rests again.
func (r Idle) Leave() { r.answers <- answer{} }

// rest is the channel of the stage and what to send on it; nil while there is
// something to do.
func (e *Engine) nextIdle() (chan<- Idle, Idle) {
	busy := e.commits.inFlight != nil || len(e.commits.pending) > 0 || len(e.commits.outbox) > 0 || len(e.starting) > 0 || e.schedules.backfillsDue
	if e.config.Sim == nil || busy {
		return nil, Idle{}
	}
	next, _ := e.clock.timers.Next()
	return e.config.Sim.Idle, Idle{Next: next, answers: e.answers}
}

// rested does what the answer to a rest says.
func (e *Engine) resumeIdle() {
	var a answer
	select {
	case a = <-e.answers:
	case <-e.ctx.Done():
	}
	for _, ended := range a.ended {
		if given := &ended.Attempt.of.decided; !given.CompareAndSwap(false, true) {
			e.workers.stuck.Add(-1) // it was given up before
			continue
		}
		e.attemptEnded(result{attempt: ended.Attempt.of, Result: ended.Result, err: ended.Err})
	}
	if !a.fire {
		return
	}
	for _, alarm := range e.clock.timers.Due() {
		alarm()
	}
}

// replacesChild reports whether a call takes the place of the run of a task's sub-flow.
func (s *Sim) replacesChild(t task) bool {
	return s != nil && s.StandsIn != nil && s.StandsIn(t.run.ID, t.spec.Name)
}

// tellRecorded tells the stage of an event, and of the record of a run that ends
// with it.
func (e *Engine) simRecorded(r *run.Run, event run.Event) {
	stage := e.config.Sim
	if stage == nil {
		return
	}
	if stage.Recorded != nil {
		stage.Recorded(event)
	}
	if _, finished := event.Data.(*run.Finished); finished && stage.Finished != nil && e.open[r.ID] != nil {
		stage.Finished(e.recordOf(r))
	}
}

// groupEnded reports the end of a group, which no event contains.
func (s *Sim) groupEnded(o *openRun, end *run.TaskRun) {
	if s != nil && s.GroupEnded != nil {
		s.GroupEnded(o.run.ID, end)
	}
}

// stage puts an attempt on the stage.
func (e *Engine) simulate(a *attempt) {
	stage := e.config.Sim
	staged := &Attempt{Call: a.call, Context: a.ctx, of: a}
	cancel := a.cancel
	a.cancel = func(cause error) {
		cancel(cause)
		if cause != nil { // it has not ended yet
			stage.Interrupt(staged, cause)
		}
	}
	stage.Begin(staged)
}

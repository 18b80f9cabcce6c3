package engine

import (
	"context"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/scheduler"
)

// Sim runs an engine in virtual time: workers and timers do nothing by themselves, and
// the simulation receives each attempt and each idle point. The same attempts, ended in
// the same order at the same instants of the same clock, give the same runs. The engine
// calls the functions on its loop: they must not block and must not call the engine.
type Sim struct {
	// Clock is the clock of the engine, in place of [Config.Clock].
	Clock *scheduler.VirtualClock

	// Begin receives an attempt that starts, in place of [Config.Invoker]. The attempt
	// runs until it is passed to [Idle.End].
	Begin func(*Attempt)

	// Interrupt asks an attempt to end at this instant, for the cause run.ErrDeadline or
	// a cause that is run.ErrCanceled.
	Interrupt func(a *Attempt, cause error)

	// Finished receives the record of each run that has ended; optional.
	Finished func(*run.Record)

	// Recorded receives each event of a run as it happens; optional.
	Recorded func(run.Event)

	// GroupEnded receives the state in which a group ended, which no event contains;
	// optional.
	GroupEnded func(of run.ID, group *run.TaskRun)

	// StandsIn reports whether a call takes the place of the run of a task's sub-flow;
	// default: it never does.
	StandsIn func(of run.ID, task string) bool

	// Idle receives the engine's idle points. From then until it is answered, the engine
	// does nothing at all.
	Idle chan Idle
}

// Attempt is one call in a [Sim].
type Attempt struct {
	Call    run.Call
	Context context.Context // ends when the attempt is interrupted, and with the engine
	of      *attempt
}

// Wait has the attempt compute nothing from now to its end, as one that waits for the answer to
// an operation: others may take its place among the workers. It is called at an idle point.
func (a *Attempt) Wait() { a.of.place.Leave(run.WaitOperation) }

// CallResult is how an attempt in a [Sim] ended. With an error, it is lost.
type CallResult struct {
	Attempt *Attempt
	Result  run.Result
	Err     error
}

// Idle is a point at which the engine has nothing more to do at the present instant,
// except for timers that are due: everything that it has recorded is durable. It is
// answered once. The clock may be moved only before the answer.
type Idle struct {
	Next    time.Time // when the first timer is due, which may be past; zero for none
	answers chan<- answer
}

type answer struct {
	ended []CallResult
	fire  bool
}

// End ends attempts, in this order.
func (i Idle) End(ended []CallResult) { i.answers <- answer{ended: ended} }

// Fire runs the timers that are due by now.
func (i Idle) Fire() { i.answers <- answer{fire: true} }

// Leave changes nothing: the engine accepts commands, and is idle again.
func (i Idle) Leave() { i.answers <- answer{} }

// nextIdle is the channel for idle points and the value to send; nil while there is
// something to do.
func (e *executor) nextIdle() (chan<- Idle, Idle) {
	if e.config.Sim == nil || e.busy() || len(e.starting) > 0 || e.schedules.backfillsDue {
		return nil, Idle{}
	}
	next, _ := e.clock.timers.Next()
	return e.config.Sim.Idle, Idle{Next: next, answers: e.answers}
}

// resumeIdle follows the answer to an idle point.
func (e *executor) resumeIdle() {
	var a answer
	select {
	case a = <-e.answers:
	case <-e.ctx.Done():
	}
	for _, ended := range a.ended {
		if decided := &ended.Attempt.of.decided; !decided.CompareAndSwap(false, true) {
			e.calls.stuck.Add(-1) // it was given up before
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

// simRecorded passes an event to the simulation, and the record of a run that ends
// with it.
func (e *executor) simRecorded(r *run.Run, event run.Event) {
	sim := e.config.Sim
	if sim == nil {
		return
	}
	if sim.Recorded != nil {
		sim.Recorded(event)
	}
	if _, finished := event.Data.(*run.Finished); finished && sim.Finished != nil && e.open[r.ID] != nil {
		sim.Finished(e.recordOf(r))
	}
}

// groupEnded reports the end of a group, which no event contains.
func (s *Sim) groupEnded(o *openRun, end *run.TaskRun) {
	if s != nil && s.GroupEnded != nil {
		s.GroupEnded(o.run.ID, end)
	}
}

// simulate passes an attempt to the simulation.
func (e *executor) simulate(a *attempt) {
	sim := e.config.Sim
	simulated := &Attempt{Call: a.call, Context: a.ctx, of: a}
	cancel := a.cancel
	a.cancel = func(cause error) {
		cancel(cause)
		if cause != nil { // it has not ended yet
			sim.Interrupt(simulated, cause)
		}
	}
	sim.Begin(simulated)
}

package engine

import (
	"errors"

	"github.com/flowhost/flowhost/run"
)

// A run and what it takes over from another one are recorded in one commit. Where
// that would be too large, as with the items of a large fan-out, the run's Submitted
// says how many events belong to it, and they are in as many commits as it takes: all
// are recorded in one turn of the loop, and the receipt waits for the last of them. So
// only the end of the process comes in between, and then nobody was promised the run.

// maxTogether is the number of events from which on one commit is not tried.
const maxTogether = 4096

// recordNew records a run's Submitted with what there is to say about it. When that is
// too large there is no such run, or none that was accepted.
func (e *Engine) recordNew(events []run.Event) error {
	submitted := events[0].Data.(*run.Submitted)
	if len(events) <= maxTogether || submitted.RetryOf == "" {
		err := e.record(events...)
		if size := (*SizeError)(nil); submitted.RetryOf == "" || !errors.As(err, &size) {
			return err
		}
	}
	submitted.Awaits = len(events) - 1
	for i, event := range events {
		if err := e.record(event); err != nil {
			if i > 0 && e.fault == nil {
				e.turnAway(e.shard.Runs[event.Run], "what it takes over is more than the journal takes")
			}
			return err
		}
	}
	return nil
}

// turnAway ends a run that was not accepted.
func (e *Engine) turnAway(r *run.Run, why string) {
	e.log.Warn("a run was not accepted", "run", r.ID, "flow", r.Flow, "reason", why)
	failure := canceled(why)
	for _, t := range r.Tasks {
		if !t.State.Done() {
			e.record(run.Event{Run: r.ID, At: e.now(), Data: &run.TaskEnded{TaskRef: t.TaskRef, State: run.Canceled, Failure: failure}})
		}
	}
	e.record(run.Event{Run: r.ID, At: e.now(), Data: &run.Finished{State: run.Canceled, Failure: failure}})
	e.shard.Forget(r.ID)
}

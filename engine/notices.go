package engine

import (
	"context"

	"github.com/flowhost/flowhost/run"
)

// notice makes what observers are told of an event that has just been applied.
// The record is taken now, while the run is in the state that the event made.
func (e *Engine) notice(r *run.Run, event run.Event, index int) run.Notice {
	n := run.Notice{Index: index, Event: event}
	if r == nil {
		return n
	}
	n.Flow = r.Flow
	if _, finished := event.Data.(*run.Finished); finished {
		n.Record = r.Record(e.taskOrder(r))
	}
	return n
}

func (e *Engine) nextNotice() (chan<- *batch, *batch) {
	if len(e.outbox) == 0 {
		return nil, nil
	}
	return e.notices, e.outbox[0]
}

// notifier tells the observers, one event after the other.
func (e *Engine) notifier(ctx context.Context) {
	for b := range e.notices {
		for _, n := range b.notices {
			e.tell(ctx, n)
		}
	}
}

func (e *Engine) tell(ctx context.Context, n run.Notice) {
	for _, o := range e.config.Observers {
		if err := o.Committed(ctx, n); err != nil && ctx.Err() == nil {
			e.log.Error("an observer was not told of an event", "event", n.Event.Data.Kind(), "run", n.Event.Run, "error", err)
		}
	}
}

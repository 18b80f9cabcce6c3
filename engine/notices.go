package engine

import (
	"context"
	"math"
	"slices"

	"github.com/flowhost/flowhost/run"
)

// Observation is an observer and its progress.
type Observation struct {
	Observer Observer

	// RunsOnly limits the observer to the events about runs as a whole, which saves the
	// engine the notices of tasks.
	RunsOnly bool

	// CatchUp notifies the observer of everything after Seen while the journal is read:
	// events that were durable when the process ended and that it has not received.
	CatchUp bool
	Seen    Place

	// Published is the revision of the last event that the observer received if the
	// journal no longer holds it: Seen is before it then. Default: the revision of Seen.
	Published uint64
}

// Place is the place of an event in the journal.
type Place struct {
	Revision uint64
	Index    int
}

// wants reports whether the observer receives such an event.
func (o Observation) wants(data run.EventData) bool { return !o.RunsOnly || !run.OfTask(data) }

// unseen reports whether the observer has yet to receive an event of the past.
func (o Observation) unseen(at Place) bool {
	return o.CatchUp && (at.Revision > o.Seen.Revision || at.Revision == o.Seen.Revision && at.Index > o.Seen.Index)
}

// notice makes the notice of an event that has just been applied.
func (l *commitLog) notice(r *run.Run, event run.Event, index int) run.Notice {
	n := run.Notice{Index: index, Event: event}
	if r == nil {
		return n
	}
	n.Flow = r.Flow
	n.Hops, _ = r.Trigger.Hops() // it has started
	if _, finished := event.Data.(*run.Finished); finished {
		n.Record = l.recordOf(r)
	}
	return n
}

func (l *commitLog) nextNotice() (chan<- *batch, *batch) {
	if len(l.outbox) == 0 {
		return nil, nil
	}
	return l.toNotifier, l.outbox[0]
}

// noticed removes the first commit, which the notifier has received, from the outbox.
func (l *commitLog) noticed(b *batch) {
	l.outbox = slices.Delete(l.outbox, 0, 1)
	l.unnotified -= len(b.notices)
}

// usualRecord is how much memory the JSON of a record is given at once at most.
const usualRecord = 64 << 10

// notifier notifies the observers, one event after the other.
func (l *commitLog) notifier(ctx context.Context) {
	usual := 0 // bytes of a record
	for b := range l.toNotifier {
		for _, n := range b.notices {
			n.Revision, n.Sum = b.revision, b.sum
			if n.Record != nil {
				n.RecordJSON, _ = n.Record.AppendJSON(make([]byte, 0, min(usual+usual/8, usualRecord))) // who needs it meets the error again
				usual = len(n.RecordJSON)
			}
			for _, o := range l.config.Observers {
				if o.wants(n.Event.Data) {
					l.notify(ctx, o.Observer, n)
				}
			}
		}
		l.notified.Store(b.revision)
		l.durable(b.revision)
		clear(b.notices)
		select {
		case l.fromNotifier <- b.notices[:0]:
		default:
		}
	}
}

// spareNotices is memory for the notices of a batch: growing it for each costs more than
// making the notices.
func (l *commitLog) spareNotices() []run.Notice {
	select {
	case spare := <-l.fromNotifier:
		return spare
	default:
		return make([]run.Notice, 0, 16)
	}
}

// hasListeners reports whether anything is notified of commits.
func (l *commitLog) hasListeners() bool {
	return len(l.config.Observers) > 0 || l.config.Durable != nil
}

// notifiedUpTo is the revision up to which all observers have been notified.
func (l *commitLog) notifiedUpTo() uint64 {
	if !l.hasListeners() {
		return math.MaxUint64
	}
	return l.notified.Load()
}

func (l *commitLog) durable(revision uint64) {
	if l.config.Durable != nil {
		l.config.Durable(revision)
	}
}

func (l *commitLog) notify(ctx context.Context, o Observer, n run.Notice) {
	if err := o.Committed(ctx, n); err != nil && ctx.Err() == nil {
		l.log.Error("an observer refused an event", "event", n.Event.Data.Kind(), "run", n.Event.Run, "error", err)
	}
}

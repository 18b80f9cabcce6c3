package engine

import (
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// tooLate is how late a fire may be and still count. A schedule that is further
// behind, after a suspend or a jump of the clock, goes on from now.
const tooLate = time.Minute

// fireKey names an armed schedule.
type fireKey struct {
	flow, trigger string
}

// arm sets the schedules of a flow, in place of those that it had before.
func (e *Engine) arm(f *flows.Flow) {
	for key, timer := range e.fires {
		if key.flow == f.Name {
			e.timers.Cancel(timer)
			delete(e.fires, key)
		}
	}
	for _, t := range f.Triggers {
		if t.Kind == run.TriggerSchedule && t.Enabled {
			decided := time.Unix(0, int64(e.shard.Watermarks[fireSource(f, t)]))
			e.armNext(f, t, latest(now(), decided))
		}
	}
}

// armNext arms a schedule's first fire after the given time.
func (e *Engine) armNext(f *flows.Flow, t *flows.Trigger, after time.Time) {
	nominal, ok := t.Schedule.Next(after)
	if !ok {
		delete(e.fires, fireKey{f.Name, t.Name})
		e.log.Info("a schedule has come to its end", "flow", f.Name, "trigger", t.Name)
		return
	}
	e.fires[fireKey{f.Name, t.Name}] = e.at(nominal, func() { e.fire(f, t, nominal) })
}

// fire asks for the run of one nominal time, exactly once in the journal's life.
// The schedule goes on whatever becomes of it.
func (e *Engine) fire(f *flows.Flow, t *flows.Trigger, nominal time.Time) {
	if e.draining {
		return // the next start arms it again
	}
	after := nominal
	if late := now().Sub(nominal); late > tooLate {
		after = now()
		e.log.Warn("a schedule fires late and goes on from now", "flow", f.Name, "trigger", t.Name, "nominal", nominal, "late", late)
	}
	_, err := e.submit(run.Request{
		Flow:     f.Name,
		Trigger:  run.Trigger{Kind: run.TriggerSchedule, Name: t.Name, Time: nominal.UTC()},
		Position: run.Position{Source: fireSource(f, t), Seq: uint64(nominal.UnixNano())},
	})
	if err != nil {
		e.log.Error("a scheduled run was not started", "flow", f.Name, "trigger", t.Name, "nominal", nominal, "error", err)
	}
	e.armNext(f, t, after)
}

func fireSource(f *flows.Flow, t *flows.Trigger) string {
	return "schedule/" + f.Name + "/" + t.Name
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

package engine

import (
	"slices"

	"github.com/flowhost/flowhost/flows"
)

// Where the runs of a schedule overlap by node, a task of a run starts once all earlier
// open runs of the schedule have ended the same task.

// earlierRun is the earlier run that has yet to end a task before this one may start,
// nil for none.
func (t task) earlierRun() *openRun {
	if t.phase.hook() {
		return nil
	}
	for _, earlier := range t.schedule.open {
		if earlier == t.openRun {
			break
		}
		if !earlier.knows(t.ref()) {
			continue
		}
		if state := earlier.run.Task(t.ref()); state == nil || !state.State.Done() {
			return earlier
		}
	}
	return nil
}

// waitFor lets a task wait for an earlier run.
func (t task) waitFor(earlier *openRun) { earlier.waiters = append(earlier.waiters, t) }

// releaseWaitersOf continues the tasks of later runs that waited for a task to end.
func (e *executor) releaseWaitersOf(t task) {
	if !t.phase.hook() {
		e.releaseWaiters(t.removeWaiters(func(waiting task) bool { return waiting.ref() == t.ref() }))
	}
}

// releaseWaiters decides the tasks again that have waited for an earlier run.
func (e *executor) releaseWaiters(waiting []task) {
	for _, t := range waiting {
		t.whenIdle(func() {
			e.decide(t)
			e.advance(t.openRun)
		})
	}
}

// removeWaiters removes the matching tasks from those that wait for a run.
func (o *openRun) removeWaiters(match func(task) bool) []task {
	var out []task
	o.waiters = slices.DeleteFunc(o.waiters, func(t task) bool {
		if match(t) {
			out = append(out, t)
			return true
		}
		return false
	})
	return out
}

// withdraw removes the tasks of a run that match and have not started from all queues.
func (e *executor) withdraw(o *openRun, match func(task) bool) []task {
	own := func(t task) bool { return t.openRun == o && match(t) }
	out := append(e.runnable.Withdraw(own), e.children.withdraw(own)...)
	for _, b := range slices.Clone(o.beginning) {
		if match(b.task) {
			if place := b.task.begun(); b.task.spec.Child == nil || e.config.Sim.replacesChild(b.task) {
				e.giveBack(b.task, place)
			}
			out = append(out, b.task)
		}
	}
	for _, s := range o.phase.groupLimiters {
		s.waiting = slices.DeleteFunc(s.waiting, func(t task) bool {
			gone := own(t)
			if gone {
				out = append(out, t)
			}
			return gone
		})
	}
	if o.overlap == flows.OverlapNode {
		for _, earlier := range o.schedule.open {
			out = append(out, earlier.removeWaiters(own)...)
		}
	}
	return out
}

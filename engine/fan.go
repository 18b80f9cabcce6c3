package engine

import (
	"encoding/json"
	"slices"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// A task with for_each is fanned out: each item is a separate task run, and only some
// of them run at once. Items that have not begun cost nothing but their value.

// fan is a task that is fanned out.
type fan struct {
	items   []run.Item
	next    int              // index of the first item that has not begun
	active  map[string]*item // items that have begun and are not done, by key
	busy    int              // active items that are ready or running, not waiting for another attempt
	failed  *run.TaskRun     // the first item that did not succeed
	feeding bool             // feed is on the stack
}

// item is an item that has begun.
type item struct {
	run.Item
	state *run.TaskRun // nil before something has happened
	busy  bool
}

// expand records the items of a task, and begins with them.
func (e *executor) expand(t task) {
	evaluateTask(e, t, itemsOf(t.spec), func(items *fanItems, failure *run.Failure) {
		if failure != nil {
			e.end(t, run.Failed, failure)
			return
		}
		e.watchdog.Doing("beginning a fan-out", string(t.run.ID))
		if e.commits.record(t.event(&run.TaskExpanded{TaskRef: t.ref(), Items: items.recorded})) == nil {
			t.newFan(items.each)
			e.feed(t)
		}
	}, func() { e.decide(t) })
}

// fanItems are the items of a fan-out.
type fanItems struct {
	recorded json.RawMessage
	each     []run.Item
}

// itemsOf evaluates the items of a task.
func itemsOf(spec *flows.Task) func(*flows.Scope) (*fanItems, *run.Failure) {
	return func(s *flows.Scope) (*fanItems, *run.Failure) {
		recorded, failure := spec.Items(s)
		if failure != nil {
			return nil, failure
		}
		if err := fits(recorded); err != nil {
			return nil, &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeInputSize, Message: "for_each: " + err.Error()}
		}
		each, err := run.Items(recorded)
		if err != nil {
			return nil, &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeExpression, Message: err.Error()}
		}
		return &fanItems{recorded, each}, nil
	}
}

// resumeFan continues a task that was fanned out before a restart, or in the run that
// this one continues.
func (e *executor) resumeFan(t task) {
	recorded, err := t.recordedItems()
	if err != nil {
		e.end(t, run.Failed, &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeExpression, Message: err.Error()})
		return
	}
	delete(t.items, t.spec.Name)
	f := t.newFan(recorded)
	var begun []*item
	var asked *item
	items := f.items
	f.items = make([]run.Item, 0, len(items))
	for _, i := range items {
		ref := run.TaskRef{Task: t.spec.Name, Key: i.Key}
		switch state := t.run.Task(ref); {
		case state == nil && ref == t.askedFor:
			asked = &item{Item: i}
		case state == nil || state.State == run.Waiting:
			f.items = append(f.items, i)
		case state.State.Done():
			f.note(state)
		default:
			known := &item{Item: i, state: state}
			f.active[i.Key] = known
			begun = append(begun, known)
		}
	}
	f.feeding = true // not before all items that had begun are active again
	for _, known := range begun {
		e.resumeTask(task{t.openRun, t.spec, t.node, known})
	}
	if asked != nil && t.stopped() == nil {
		e.beginItem(t, asked)
	}
	f.feeding = false
	e.feed(t)
}

// newFan begins a fan-out with its items.
func (t task) newFan(items []run.Item) *fan {
	if t.phase.fans == nil {
		t.openRun.phase.fans = map[int]*fan{}
	}
	f := &fan{items: items, active: map[string]*item{}}
	t.phase.fans[t.node] = f
	return f
}

// recordedItems are the items of a fan-out that began earlier. They are decoded once.
func (t task) recordedItems() ([]run.Item, error) {
	if known, ok := t.items[t.spec.Name]; ok {
		return known, nil
	}
	items, err := run.Items(t.state().Items)
	if err == nil {
		t.keepItems(t.spec.Name, items)
	}
	return items, err
}

func (o *openRun) keepItems(task string, items []run.Item) {
	if o.items == nil {
		o.items = map[string][]run.Item{}
	}
	o.items[task] = items
}

// decodeItems decodes the items of all fan-outs that began earlier, if there are units for
// that.
func (o *openRun) decodeItems(units int) bool {
	if units > 0 {
		return false
	}
	for _, t := range o.run.Tasks {
		if t.Items != nil && !t.State.Done() {
			if items, err := run.Items(t.Items); err == nil { // an error is found again by its task
				o.keepItems(t.Task, items)
			}
		}
	}
	return true
}

// tookAll reports whether all items of a fan-out were carried over from the run that
// this one continues. Then there is nothing to decide.
func (t task) tookAll() bool {
	items, err := t.recordedItems()
	return err == nil && !slices.ContainsFunc(items, func(i run.Item) bool {
		state := t.run.Task(run.TaskRef{Task: t.spec.Name, Key: i.Key})
		return state == nil || !state.Reused
	})
}

func (f *fan) note(state *run.TaskRun) {
	if state.State != run.Succeeded && (f.failed == nil || state.FinishedAt.Before(f.failed.FinishedAt)) {
		f.failed = state
	}
}

// fanTask is the task that an item belongs to.
func (t task) fanTask() task { return task{openRun: t.openRun, spec: t.spec, node: t.node} }

// fan is the fan-out of the task, or of the task that the item belongs to.
func (t task) fan() *fan { return t.phase.fans[t.node] }

// feed begins as many items as may run at once, and ends the task when there is
// nothing left to wait for.
func (e *executor) feed(t task) {
	f := t.fan()
	if f.feeding || t.state().State.Done() {
		return
	}
	f.feeding = true
	for e.hasRoom(t, f) && !f.exhausted(t) && e.fault == nil {
		next := &item{Item: f.items[f.next]}
		f.next++
		e.beginItem(t, next)
	}
	f.feeding = false
	if len(f.active) == 0 && e.fault == nil {
		e.endFan(t, f)
	}
}

func (e *executor) beginItem(t task, i *item) {
	f := t.fan()
	f.active[i.Key] = i
	f.activate(i)
	e.queue(task{t.openRun, t.spec, t.node, i})
}

// exhausted reports whether no further item begins.
func (f *fan) exhausted(t task) bool {
	return f.next == len(f.items) || f.failed != nil && !t.spec.Continue || t.stopped() != nil
}

// hasRoom reports whether another item may begin. Without a bound in the task, more items
// begin than can be in flight.
func (e *executor) hasRoom(t task, f *fan) bool {
	if t.spec.MaxParallel > 0 {
		return len(f.active) < t.spec.MaxParallel
	}
	_, inFlight := e.places.Bounds()
	return f.busy < 2*inFlight
}

// activate and deactivate count the items that are ready or running.
func (f *fan) activate(i *item) {
	if !i.busy {
		i.busy = true
		f.busy++
	}
}

func (f *fan) deactivate(i *item) {
	if i.busy {
		i.busy = false
		f.busy--
	}
}

// itemSettled lets the next item begin.
func (e *executor) itemSettled(t task) {
	f := t.fan()
	delete(f.active, t.item.Key)
	f.deactivate(t.item)
	well := f.failed == nil
	if f.note(t.state()); well && f.failed != nil && !t.spec.Continue {
		e.recallItems(t.fanTask())
	}
	e.feed(t.fanTask())
}

// recallItems withdraws the items that are queued and have not begun, when the first
// item has failed: from then on no item is queued. An item that is being taken out of
// its queue at this moment is checked by isRecalled.
func (e *executor) recallItems(t task) {
	if t.fan().busy == 0 {
		return
	}
	unbegun := func(other task) bool { return other.node == t.node && other.isRecalled() }
	for _, other := range e.withdraw(t.openRun, unbegun) {
		e.forgetItem(other)
	}
}

// isRecalled reports whether a queued item is not to begin any more. The item that was
// requested by name begins whatever the state of the others.
func (t task) isRecalled() bool {
	return t.item != nil && t.state() == nil && t.fan().failed != nil && !t.spec.Continue && t.ref() != t.askedFor
}

// forgetItem forgets an item that has not begun.
func (e *executor) forgetItem(t task) {
	f := t.fan()
	delete(f.active, t.item.Key)
	f.deactivate(t.item)
	e.freeSlots(t)
}

// endFan ends a task whose items that have begun are all done.
func (e *executor) endFan(t task, f *fan) {
	switch why := t.stopped(); {
	case f.next == len(f.items) && (f.failed == nil || t.spec.Continue && why == nil):
		e.end(t, run.Succeeded, nil)
	case why != nil:
		e.end(t, run.Canceled, why)
	default:
		failure := failureIn(f.failed)
		failure.Task, failure.Key = t.spec.Name, f.failed.Key
		e.end(t, f.failed.State, failure)
	}
}

package engine

import (
	"slices"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
)

// Why something waits follows from what the executor keeps of an open run, whenever
// somebody asks: nothing of it is recorded. A task that is not done, whose upstream tasks
// are, and that waits nowhere else is in the queue of runnable tasks. So no queue has to be
// searched.

// waitReasons finds what the task runs of one record wait for. Those with the same reason
// share it: a run may have 100 000 of them.
type waitReasons struct {
	exec     *executor
	open     *openRun
	now      time.Time
	known    []nodeWait                       // by node of the phase; nil before the first is needed
	inFlight map[run.TaskRef]run.WaitReason   // of the attempts that do not compute; nil for none
	admitted map[*flows.Task]*run.WaitsFor    // of the queued ones; nil before the first
	plain    map[run.WaitReason]*run.WaitsFor // those without details
}

// explainWaits adds to the record of an open run what it waits for, or what its tasks do.
func explainWaits(e *executor, o *openRun, record *run.Record) {
	if o.run.State == run.Pending {
		record.WaitsFor = o.waitsForRuns(e)
		return
	}
	w := waitReasons{exec: e, open: o, now: e.clock.now(), plain: map[run.WaitReason]*run.WaitsFor{}}
	for _, a := range o.attempts {
		if reason := a.place.waitsFor(); reason != "" {
			if w.inFlight == nil {
				w.inFlight = map[run.TaskRef]run.WaitReason{}
			}
			w.inFlight[a.task.ref()] = reason
		}
	}
	var spec *flows.Task
	for i := range record.Tasks {
		t := &record.Tasks[i]
		if t.State.Done() {
			continue
		}
		if spec == nil || spec.Name != t.Task {
			spec = o.flow.Task(t.Task)
		}
		if o.phase.holds(spec) {
			t.WaitsFor = w.of(o.leaf(spec.Node), t)
		}
	}
}

// of is what a task run of the phase waits for that is not done; nil for nothing.
func (w *waitReasons) of(t task, shown *run.TaskRecord) *run.WaitsFor {
	switch {
	case shown.State == run.Ready && w.retries(shown):
		return w.just(run.WaitRetry)
	case shown.State == run.Ready:
		return w.admission(t)
	case shown.State == run.Running && (shown.Key != nil || shown.Attempts > 0):
		return w.ofAttempt(shown.Ref())
	case shown.State == run.Running && t.fan() != nil:
		return w.ofItems(t)
	case shown.Key != nil || t.state() != nil && t.state().Waits():
		return nil // the record of an open wait shows what it waits for
	}
	why := w.ofUnbegun(t)
	if why == nil && w.open.busy() {
		return w.just(run.WaitExpression)
	}
	return why
}

// retries reports whether the time of a task's next attempt has not come. The comparison
// of times is what makes that cheap for 100 000 items.
func (w *waitReasons) retries(shown *run.TaskRecord) bool {
	return shown.Due != nil && shown.Due.After(w.now) || w.open.retries[shown.Ref()] != nil
}

// just is a reason without details.
func (w *waitReasons) just(reason run.WaitReason) *run.WaitsFor {
	if w.plain[reason] == nil {
		w.plain[reason] = &run.WaitsFor{Reason: reason}
	}
	return w.plain[reason]
}

// ofAttempt is what an attempt in flight waits for. The run of a sub-flow has reasons of
// its own.
func (w *waitReasons) ofAttempt(ref run.TaskRef) *run.WaitsFor {
	switch reason := w.inFlight[ref]; reason {
	case "":
		return nil
	case run.WaitWorker:
		computing, _ := w.exec.places.Count()
		workers, _ := w.exec.places.Bounds()
		return &run.WaitsFor{Reason: reason, InUse: computing, Max: max(workers, 1)} // of 0 workers, one still serves those in flight
	default:
		return w.just(reason)
	}
}

// ofUnbegun is what a task waits for to which nothing has happened yet.
func (w *waitReasons) ofUnbegun(t task) *run.WaitsFor {
	upstream := run.WaitsFor{Reason: run.WaitUpstream}
	if w.addUpstream(&upstream, t.node, t.node); len(upstream.Tasks) > 0 {
		return &upstream
	}
	if t.overlap == flows.OverlapNode {
		if earlier := t.earlierRun(); earlier != nil {
			return &run.WaitsFor{Reason: run.WaitEarlierRun, Run: earlier.run.ID}
		}
	}
	if t.spec.Wait != nil || t.spec.FanOut || t.stopped() != nil {
		return nil // it begins or ends at once
	}
	if s := t.fullGroup(); s != nil && !t.phase.holding[t.ref()] {
		return s.waitsFor()
	}
	return w.admission(t)
}

// maxUpstream is how many tasks a reason names.
const maxUpstream = 3

// addUpstream adds the tasks, waits and groups upstream of a node that are not done: those
// before the task itself first, then those before the groups around it.
func (w *waitReasons) addUpstream(why *run.WaitsFor, of, node int) {
	for _, up := range w.open.flow.Section(w.open.phase.part).Graph.Upstream(node) {
		known := &w.nodes()[up]
		if known.settled || known.namedFor == of+1 {
			continue
		}
		known.namedFor = of + 1
		switch n := &w.open.phase.nodes[up]; {
		case n.Group != nil && !n.End:
			w.addUpstream(why, of, up)
		case len(why.Tasks) == maxUpstream:
			why.More++
		case n.Group != nil:
			why.Tasks = append(why.Tasks, groupRef(n.Group).Task)
		default:
			why.Tasks = append(why.Tasks, n.Task.Name)
		}
	}
}

// nodeWait is what the reasons of one record need of a node: a graph has many more edges
// than nodes.
type nodeWait struct {
	settled  bool
	namedFor int // the last node, plus 1, in whose reason it is
}

func (w *waitReasons) nodes() []nodeWait {
	if w.known == nil {
		w.known = make([]nodeWait, len(w.open.phase.nodes))
		for node := range w.known {
			state := w.open.stateOf(node)
			w.known[node].settled = state != nil && (w.open.phase.nodes[node].Group != nil || state.State.Done())
		}
	}
	return w.known
}

// ofItems is what those items of a fan-out wait for that have not begun an attempt; nil
// when there are none. Those that are queued come before those that follow them.
func (w *waitReasons) ofItems(t task) *run.WaitsFor {
	f := t.fan()
	if queued := len(f.active) - t.state().Open(); queued > 0 {
		s := t.fullGroup()
		if s != nil && s.holdsBack(t) >= queued {
			return s.waitsFor()
		}
		if why := w.admission(t); why != nil {
			return why
		}
	}
	switch _, inFlight := w.exec.places.Bounds(); {
	case f.exhausted(t):
		return nil
	case t.spec.MaxParallel > 0 && len(f.active) >= t.spec.MaxParallel:
		return &run.WaitsFor{Reason: run.WaitMaxParallel, InUse: len(f.active), Max: t.spec.MaxParallel}
	case t.spec.MaxParallel == 0 && f.busy >= 2*inFlight:
		return &run.WaitsFor{Reason: run.WaitInFlight, InUse: f.busy, Max: 2 * inFlight}
	}
	return nil
}

// holdsBack counts the items of a fan-out that wait for a slot of the group.
func (s *groupLimiter) holdsBack(t task) int {
	n := 0
	for _, waiting := range s.waiting {
		if waiting.node == t.node {
			n++
		}
	}
	return n
}

func (s *groupLimiter) waitsFor() *run.WaitsFor {
	return &run.WaitsFor{Reason: run.WaitGroup, Group: s.group.Name, InUse: s.used, Max: s.group.MaxParallel}
}

// admission is what a queued task waits for, or its items; nil when it starts at once.
func (w *waitReasons) admission(t task) *run.WaitsFor {
	why, known := w.admitted[t.spec]
	if !known {
		why = w.findAdmission(t)
		if w.admitted == nil {
			w.admitted = map[*flows.Task]*run.WaitsFor{}
		}
		w.admitted[t.spec] = why
	}
	return why
}

func (w *waitReasons) findAdmission(t task) *run.WaitsFor {
	e := w.exec
	switch {
	case e.draining:
		return &run.WaitsFor{Reason: run.WaitStopping}
	case e.shard.Pause != nil:
		return &run.WaitsFor{Reason: run.WaitPaused}
	}
	if t.spec.Child != nil && !e.config.Sim.replacesChild(t) {
		return nil // it needs no worker
	}
	refusal, present, bound := e.places.Refusal(t.run.Flow)
	if refusal == fairq.NoWorker && bound == 0 {
		return &run.WaitsFor{Reason: run.WaitPaused}
	}
	for _, spec := range t.spec.LimitedBy {
		if why := e.limits.byName[spec.Name].waitsFor(); why != nil {
			return why
		}
	}
	switch refusal {
	case fairq.HeldBack:
		return &run.WaitsFor{Reason: run.WaitMemory}
	case fairq.NoWorker:
		return &run.WaitsFor{Reason: run.WaitWorker, InUse: present, Max: bound}
	case fairq.InFlightFull:
		return &run.WaitsFor{Reason: run.WaitInFlight, InUse: present, Max: bound}
	}
	return nil
}

// waitsFor is why no attempt starts under the limit; nil when one may.
func (s *limitState) waitsFor() *run.WaitsFor {
	switch status := s.status(); {
	case s.slots.Paused:
		return &run.WaitsFor{Reason: run.WaitRate, Limit: status.Limit, Rate: status.Rate, Next: status.Next}
	case status.Concurrency > 0 && status.InUse >= status.Concurrency:
		return &run.WaitsFor{Reason: run.WaitLimit, Limit: status.Limit, InUse: status.InUse, Max: status.Concurrency}
	}
	return nil
}

// waitsForRuns is why a run is pending, with its place in the line; nil when it starts at
// once.
func (o *openRun) waitsForRuns(e *executor) *run.WaitsFor {
	why := o.waitsForSlot(e)
	if why == nil || why.Reason == run.WaitStopping {
		return why
	}
	line := e.runLimits.byKey[o.runLimits()[o.held].key].waiting
	place := slices.Index(line, o.run.ID)
	if place < 0 {
		return nil // it has just got its slot
	}
	why.Position = 1
	for _, id := range line[:place] {
		if e.open[id] == nil {
			continue // it was canceled
		}
		why.Position++
		if why.Reason == run.WaitConcurrency {
			why.Run = id
		}
	}
	return why
}

// waitsForSlot is the limit of runs that a pending run waits for.
func (o *openRun) waitsForSlot(e *executor) *run.WaitsFor {
	if e.draining {
		return &run.WaitsFor{Reason: run.WaitStopping}
	}
	limits := o.runLimits()
	if o.held == len(limits) {
		return nil
	}
	l := limits[o.held]
	g := e.runLimits.byKey[l.key]
	switch {
	case g == nil:
		return nil
	case l.key.schedule == "":
		return &run.WaitsFor{Reason: run.WaitConcurrency, Key: l.key.key, InUse: g.started, Max: l.max}
	}
	why := &run.WaitsFor{Reason: run.WaitEarlierRun}
	for _, earlier := range o.schedule.open {
		if earlier.held > 0 && earlier.runLimits()[0].key == l.key {
			why.Run = earlier.run.ID
			break
		}
	}
	return why
}

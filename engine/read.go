package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/flowhost/flowhost/run"
)

// watchers are those who wait for open runs to change.
type watchers struct {
	clock   *clock
	commits *commitLog
	open    map[run.ID]*openRun // of the engine
	byRun   map[run.ID][]watcher
	explain func(*openRun, *run.Record) // adds what the run and its tasks wait for
}

// watcher waits for a run to change.
type watcher chan<- update

// update is the state of a run for those who watch it.
type update struct {
	record  *run.Record
	version uint64
}

// Watch returns a run's record and its version, the number of events so far, as soon
// as that is above seen: at once for 0. The record of a finished run changes no more;
// its version is above any other.
func (e *Engine) Watch(ctx context.Context, id run.ID, seen uint64) (*run.Record, uint64, error) {
	answers := make(chan update, 1)
	err := e.command(ctx, func() { e.exec.watchers.watch(id, seen, answers) })
	if err != nil {
		return nil, 0, err
	}
	s, err := await(ctx, e, answers)
	if err != nil {
		e.cleanUp(func() { e.exec.watchers.unwatch(id, answers) })
		return nil, 0, err
	}
	if s.record == nil {
		s.record, err = e.finishedRecord(ctx, id)
		s.version = seen + 1
	}
	return s.record, s.version, err
}

// watch answers now, or leaves the answer to the run's next event. An update without a
// record means that the run is not open.
func (w *watchers) watch(id run.ID, seen uint64, to watcher) {
	if o := w.open[id]; o == nil {
		to <- update{}
	} else if o.run.Version > seen && (seen == 0 || !w.throttled(o)) {
		s := w.updateOf(o)
		w.commits.afterCommit(func() { to <- s })
	} else {
		w.byRun[id] = append(w.byRun[id], to)
		if o.run.Version > seen {
			w.showLater(o)
		}
	}
}

// throttled reports whether a large run was shown a moment ago. Building a record of
// 100 000 items for each of their changes would leave no time for the changes.
func (w *watchers) throttled(o *openRun) bool { return w.clock.now().Before(o.nextShown()) }

// nextShown is when a run may be shown again: at once while it is small, after a
// second with 100 000 task runs.
func (o *openRun) nextShown() time.Time {
	n := len(o.run.Tasks)
	if n < 1000 {
		return time.Time{}
	}
	return o.shown.Add(time.Duration(n) * 10 * time.Microsecond)
}

// showLater answers the watchers of a large run once it may be shown again.
func (w *watchers) showLater(o *openRun) {
	if o.showing {
		return
	}
	o.showing = true
	w.clock.at(o.nextShown(), func() {
		o.showing = false
		if w.open[o.run.ID] == o {
			w.changed(o.run)
		}
	})
}

func (w *watchers) unwatch(id run.ID, to watcher) {
	waiting := w.byRun[id]
	for i, other := range waiting {
		if other == to {
			waiting = append(waiting[:i:i], waiting[i+1:]...)
			break
		}
	}
	if len(waiting) == 0 {
		delete(w.byRun, id)
		return
	}
	w.byRun[id] = waiting
}

// changed answers the watchers of a run.
func (w *watchers) changed(r *run.Run) {
	waiting := w.byRun[r.ID]
	o := w.open[r.ID]
	if len(waiting) == 0 || o == nil {
		return
	}
	if !r.State.Done() && w.throttled(o) {
		w.showLater(o)
		return
	}
	delete(w.byRun, r.ID)
	s := w.updateOf(o)
	w.commits.afterCommit(func() {
		for _, to := range waiting {
			to <- s
		}
	})
}

func (w *watchers) updateOf(o *openRun) update {
	o.shown = w.clock.now()
	record := o.newRecord(o.shownTasks())
	if !o.run.State.Done() {
		w.explain(o, record)
	}
	return update{record: record, version: o.run.Version}
}

// shownTasks are the tasks of a record of an open run, in order: those of hooks once
// something has happened to them, or when it is their turn.
func (o *openRun) shownTasks() []string {
	names := taskNames(o.flow)
	for _, s := range o.flow.Sections[1:] {
		for _, t := range s.Tasks {
			if o.phase.of(s) || o.run.Task(run.TaskRef{Task: t.Name}) != nil {
				names = append(names, t.Name)
			}
		}
	}
	return names
}

// Get returns a run's present record.
func (e *Engine) Get(ctx context.Context, id run.ID) (*run.Record, error) {
	record, _, err := e.Watch(ctx, id, 0)
	return record, err
}

// FlowsOf returns the flows of those runs that are open or ended recently.
func (e *Engine) FlowsOf(ctx context.Context, ids []run.ID) (map[run.ID]string, error) {
	answers := make(chan map[run.ID]string, 1)
	err := e.command(ctx, func() {
		flows := make(map[run.ID]string, len(ids))
		for _, id := range ids {
			if o := e.exec.open[id]; o != nil {
				flows[id] = o.run.Flow
			} else if end := e.exec.finished.get(id); end != nil {
				flows[id] = end.record.Flow
			}
		}
		answers <- flows
	})
	if err != nil {
		return nil, err
	}
	return await(ctx, e, answers)
}

// List gives a page of runs, open and finished, newest first.
func (e *Engine) List(ctx context.Context, q run.Query) (run.Page, error) {
	var present []run.Summary
	answers := make(chan struct{}, 1)
	err := e.command(ctx, func() {
		present = e.exec.present(q)
		e.exec.commits.afterCommit(func() { answers <- struct{}{} })
	})
	if err == nil {
		_, err = await(ctx, e, answers)
	}
	if err != nil {
		return run.Page{}, err
	}
	var page run.Page
	if e.exec.config.History != nil {
		if page, err = e.exec.config.History.List(ctx, q); err != nil {
			return run.Page{}, err
		}
	}
	return merge(page, present, q.Size()), nil
}

// present gives the matching runs that are open or ended recently, newest first, at
// most a page and one more.
func (e *executor) present(q run.Query) []run.Summary {
	var found []run.Summary
	for _, o := range e.open {
		if s := o.summary(); q.Matches(&s) {
			found = append(found, s)
		}
	}
	for _, end := range e.finished.completions {
		if s := end.record.Summary(); q.Matches(&s) {
			found = append(found, s)
		}
	}
	slices.SortFunc(found, newestFirst)
	found = found[:min(len(found), q.Size()+1)]
	for i := range found {
		if o := e.open[found[i].Run]; o != nil && found[i].State == run.Pending {
			found[i].WaitsFor = o.waitsForSlot(e)
		}
	}
	return found
}

func (o *openRun) summary() run.Summary {
	t := &o.run.Trigger
	s := run.Summary{
		Run: o.run.ID, Flow: o.run.Flow, State: o.run.State, CreatedAt: o.run.CreatedAt,
		Trigger: run.TriggerSummary{Kind: t.Kind, Name: t.Name, Time: t.Time},
	}
	if o.run.Parent != nil {
		s.Parent = o.run.Parent.Run
	}
	return s
}

func newestFirst(a, b run.Summary) int { return cmp.Compare(b.Run, a.Run) }

// merge puts past and present runs on one page. A run in both has just become history.
func merge(past run.Page, present []run.Summary, size int) run.Page {
	all := append(slices.Clip(past.Runs), present...)
	slices.SortStableFunc(all, newestFirst)
	all = slices.CompactFunc(all, func(a, b run.Summary) bool { return a.Run == b.Run })
	page := run.Page{Runs: all[:min(len(all), size)]}
	if len(all) > size || past.Next != "" && len(page.Runs) > 0 {
		page.Next = page.Runs[len(page.Runs)-1].Run
	}
	return page
}

// maxVisited is how many task runs are visited in one turn of the loop.
const maxVisited = 1000

// Payloads calls visit, on the caller's goroutine, with the JSON that open runs hold and
// with that of runs that ended recently: at least those that were accepted before the call
// and whose records the observers have not received when it returns. visit does not change
// it.
func (e *Engine) Payloads(ctx context.Context, visit func(json.RawMessage)) error {
	var v visitor
	if err := e.command(ctx, func() { v.list(e.exec) }); err != nil {
		return err
	}
	for len(v.runs) > 0 {
		if err := e.command(ctx, func() { v.next(e.exec) }); err != nil {
			return err
		}
		for _, payload := range v.found {
			visit(payload)
		}
	}
	return nil
}

// visitor collects the payloads of runs, some in each turn of the loop.
type visitor struct {
	runs  []run.ID // still to be visited
	tasks int      // of the first of these, how many have been
	ended bool     // these were of its record, where they have another order
	found []json.RawMessage
}

func (v *visitor) list(e *executor) {
	v.runs = make([]run.ID, 0, len(e.open)+len(e.finished.completions))
	for id := range e.open {
		v.runs = append(v.runs, id)
	}
	for id := range e.finished.completions {
		v.runs = append(v.runs, id)
	}
}

// next collects the payloads of the next task runs. A run that has ended meanwhile is
// visited as a finished one, unless it is in the history.
func (v *visitor) next(e *executor) {
	v.found = v.found[:0]
	for room := maxVisited; room > 0 && len(v.runs) > 0; room-- {
		id := v.runs[0]
		o, end := e.open[id], e.finished.get(id)
		visited, whole := 0, true
		switch {
		case o != nil:
			visited, whole = v.open(o.run, room)
		case end != nil:
			if !v.ended {
				v.tasks, v.ended = 0, true
			}
			visited, whole = v.record(end.record, room)
		}
		room -= visited
		if v.tasks += visited; whole {
			v.runs, v.tasks, v.ended = v.runs[1:], 0, false
		}
	}
}

// open collects those of an open run, from where it was left on. It reports how many task
// runs it has visited, and whether none is left.
func (v *visitor) open(r *run.Run, room int) (visited int, whole bool) {
	if v.tasks == 0 {
		v.add(r.Trigger.Payload, r.Continuation, r.Output)
		v.params(r.Params)
		v.failure(r.Failure)
	}
	tasks := r.Tasks[min(v.tasks, len(r.Tasks)):]
	visited = min(len(tasks), room)
	for _, t := range tasks[:visited] {
		v.add(t.Input, t.Config, t.Output, t.Items)
		v.failure(t.Failure)
	}
	return visited, visited == len(tasks)
}

// record does the same for a finished run.
func (v *visitor) record(r *run.Record, room int) (visited int, whole bool) {
	if v.tasks == 0 {
		v.add(r.Trigger.Payload, r.Output)
		v.params(r.Params)
		v.failure(r.Error)
	}
	tasks := r.Tasks[min(v.tasks, len(r.Tasks)):]
	visited = min(len(tasks), room)
	for i := range tasks[:visited] {
		t := &tasks[i]
		v.add(t.Input, t.Output, t.Items)
		v.failure(t.Error)
	}
	return visited, visited == len(tasks)
}

func (v *visitor) add(all ...json.RawMessage) {
	for _, payload := range all {
		if len(payload) > 0 {
			v.found = append(v.found, payload)
		}
	}
}

func (v *visitor) params(all map[string]json.RawMessage) {
	for _, value := range all {
		v.add(value)
	}
}

func (v *visitor) failure(f *run.Failure) {
	if f != nil {
		v.add(f.Details)
	}
}

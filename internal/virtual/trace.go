package virtual

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// Trace keeps what the events of open runs contain, and calls do not. Its methods
// may be called in a Runner's callbacks, and between them.
type Trace struct {
	runs   map[run.ID]*traced                 // that are not finished
	groups map[run.ID]map[string]*run.TaskRun // of runs that are no sub-flow's: those that have ended, by name
}

// traced is an open run.
type traced struct {
	root    run.ID                         // the run that is no sub-flow's
	within  string                         // before the names of its tasks: "release/"
	items   map[string]map[string]run.Item // by task that is fanned out, and key
	waiting map[string]bool                // open waits, by path
}

// NewTrace makes an empty trace.
func NewTrace() *Trace {
	return &Trace{runs: map[run.ID]*traced{}, groups: map[run.ID]map[string]*run.TaskRun{}}
}

// Recorded is for [Config.Recorded].
func (t *Trace) Recorded(e run.Event) {
	switch d := e.Data.(type) {
	case *run.Submitted:
		r := &traced{root: e.Run, items: map[string]map[string]run.Item{}, waiting: map[string]bool{}}
		if d.Parent != nil {
			r.root, r.within = t.runs[d.Parent.Run].root, t.Path(d.Parent.Run, d.Parent.Task)+"/"
		}
		t.runs[e.Run] = r
	case *run.TaskExpanded:
		t.runs[e.Run].items[d.Task] = itemsOf(d.Items)
	case *run.WaitStarted:
		t.runs[e.Run].waiting[t.Path(e.Run, d.Task)] = true
	case *run.WaitEnded:
		delete(t.runs[e.Run].waiting, t.Path(e.Run, d.Task))
	case *run.Finished:
		delete(t.runs, e.Run)
	}
}

// itemsOf are the items by key; none if they cannot be decoded, which the engine
// reports.
func itemsOf(all json.RawMessage) map[string]run.Item {
	items, _ := run.Items(all)
	byKey := make(map[string]run.Item, len(items))
	for _, item := range items {
		byKey[item.Key] = item
	}
	return byKey
}

// GroupEnded is for [Config.GroupEnded].
func (t *Trace) GroupEnded(of run.ID, group *run.TaskRun) {
	if r := t.runs[of]; r == nil || r.root != of {
		return
	}
	if t.groups[of] == nil {
		t.groups[of] = map[string]*run.TaskRun{}
	}
	t.groups[of][strings.TrimPrefix(group.Task, "group.")] = group
}

// Groups are those of a run that have ended, by name; none for the run of a
// sub-flow.
func (t *Trace) Groups(of run.ID) map[string]*run.TaskRun { return t.groups[of] }

// Path names a task or a wait of an open run as tests do: in a sub-flow after the
// tasks that run it, "release/build".
func (t *Trace) Path(of run.ID, task string) string {
	return t.runs[of].within + strings.TrimPrefix(task, flows.WaitPrefix)
}

// Called is a call of an open run as tests see it.
func (t *Trace) Called(call *run.Call) flows.Called {
	c := flows.Called{Call: call, Path: t.Path(call.Run, call.Task)}
	if item, ok := t.runs[call.Run].items[call.Task][call.Key]; ok {
		c.Item = &item
	}
	return c
}

// Outermost reports whether a run is open and no sub-flow's.
func (t *Trace) Outermost(id run.ID) bool { return t.runs[id] != nil && t.runs[id].root == id }

// Waiting are the runs whose wait at a path is open, of a run and of the sub-flows
// within it, in the order in which they were accepted.
func (t *Trace) Waiting(root run.ID, path string) []run.ID {
	var found []run.ID
	for _, id := range slices.Sorted(maps.Keys(t.runs)) {
		if r := t.runs[id]; r.root == root && r.waiting[path] {
			found = append(found, id)
		}
	}
	return found
}

// Waits are the paths of all open waits, sorted.
func (t *Trace) Waits() []string {
	var paths []string
	for _, r := range t.runs {
		paths = slices.AppendSeq(paths, maps.Keys(r.waiting))
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}

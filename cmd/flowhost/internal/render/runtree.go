package render

import "github.com/flowhost/flowhost/run"

// runTree are the known runs of sub-flows within one run. The zero value is empty.
type runTree struct {
	paths  map[run.ID]string  // the tasks above a run, "call/again/"
	runs   map[callKey]run.ID // the last attempt of a task
	failed map[run.ID]callKey // the task that made a run fail
}

func (t *runTree) has(id run.ID) bool { return t.paths[id] != "" }

// path is the prefix of the names of a run's tasks, empty for the outermost run.
func (t *runTree) path(id run.ID) string { return t.paths[id] }

// note adds an event of the run, or of one within it.
func (t *runTree) note(e run.Event) {
	if t.paths == nil {
		t.paths, t.runs, t.failed = map[run.ID]string{}, map[callKey]run.ID{}, map[run.ID]callKey{}
	}
	switch data := e.Data.(type) {
	case *run.ChildStarted:
		t.paths[data.Child] = t.paths[e.Run] + data.TaskRef.Label() + "/"
		t.runs[callKey{e.Run, data.TaskRef}] = data.Child
	case *run.Finished:
		if data.Failure != nil {
			t.failed[e.Run] = callKey{e.Run, run.TaskRef{Task: data.Failure.Task, Key: data.Failure.Key}}
		}
	}
}

// culprit is the task within a task's run that made it fail, or the task itself.
func (t *runTree) culprit(task callKey) callKey {
	for range len(t.runs) {
		inner, ok := t.failed[t.runs[task]]
		if !ok {
			break
		}
		task = inner
	}
	return task
}

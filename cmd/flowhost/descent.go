package main

import "github.com/flowhost/flowhost/run"

// descent is what is known of the runs of sub-flows within one run. The zero value
// is empty.
type descent struct {
	paths  map[run.ID]string  // the tasks above a run, "call/again/"
	runs   map[callKey]run.ID // the last attempt of a task
	failed map[run.ID]callKey // the task that made a run fail
}

func (d *descent) has(id run.ID) bool { return d.paths[id] != "" }

// path is what comes before the names of a run's tasks, nothing for the outermost.
func (d *descent) path(id run.ID) string { return d.paths[id] }

// note takes in what an event of the run, or of one within it, says.
func (d *descent) note(e run.Event) {
	if d.paths == nil {
		d.paths, d.runs, d.failed = map[run.ID]string{}, map[callKey]run.ID{}, map[run.ID]callKey{}
	}
	switch data := e.Data.(type) {
	case *run.ChildStarted:
		d.paths[data.Child] = d.paths[e.Run] + data.TaskRef.Label() + "/"
		d.runs[callKey{e.Run, data.TaskRef}] = data.Child
	case *run.Finished:
		if data.Failure != nil {
			d.failed[e.Run] = callKey{e.Run, run.TaskRef{Task: data.Failure.Task, Key: data.Failure.Key}}
		}
	}
}

// culprit is the task inside of a task's run that made it fail, or the task itself.
func (d *descent) culprit(task callKey) callKey {
	for range len(d.runs) {
		inner, ok := d.failed[d.runs[task]]
		if !ok {
			break
		}
		task = inner
	}
	return task
}

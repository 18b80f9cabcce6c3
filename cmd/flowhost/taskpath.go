package main

import (
	"context"
	"slices"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// findTask follows a path of tasks from a run into the runs within it, and gives the
// one that the last task belongs to. It refuses what is not there; with begun, also an
// item at the end of the path that has not begun.
func findTask(ctx context.Context, client *api.Client, id run.ID, path []run.TaskRef, begun bool) (run.ID, error) {
	for i, ref := range path {
		record, _, err := client.Watch(ctx, id, 0, 0)
		if err == nil {
			err = checkTask(record, ref.Task)
		}
		last := i == len(path)-1
		if err == nil && last && begun {
			err = checkItem(record, ref)
		}
		if err != nil || last {
			return id, err
		}
		if id, err = childOf(record, ref, path[i+1]); err != nil {
			return "", err
		}
	}
	return id, nil
}

// checkTask refuses a task that a run does not have.
func checkTask(record *run.Record, task string) error {
	var names []string
	for _, t := range record.Tasks {
		if t.Task == task {
			return nil
		}
		names = append(names, t.Task)
	}
	return exitf(exitInvalid, "run %s of flow %s has no task %q%s", record.Run, record.Flow, task, suggest(task, slices.Compact(names)))
}

// checkItem refuses an item of a task that the run has not begun.
func checkItem(record *run.Record, ref run.TaskRef) error {
	if ref.Key == "" {
		return nil
	}
	var keys []string
	for _, t := range record.Tasks {
		if t.Task != ref.Task || t.Key == nil {
			continue
		}
		if *t.Key == ref.Key {
			return nil
		}
		keys = append(keys, *t.Key)
	}
	return exitf(exitInvalid, "task %s of run %s has no item %q that has begun%s", ref.Task, record.Run, ref.Key, suggest(ref.Key, keys))
}

// childOf is the run that a task, or an item of it, was.
func childOf(record *run.Record, ref, inner run.TaskRef) (run.ID, error) {
	if err := checkItem(record, ref); err != nil {
		return "", err
	}
	for _, t := range record.Tasks {
		switch {
		case t.Task != ref.Task:
		case t.Child != "" && t.Ref() == ref:
			return t.Child, nil
		case t.Key != nil && ref.Key == "":
			return "", exitf(exitInvalid, "task %s of run %s is fanned out: say in which item, %s[KEY]/%s", ref.Task, record.Run, ref.Task, inner.Label())
		}
	}
	return "", exitf(exitInvalid, "task %s of run %s did not run a flow", ref.Label(), record.Run)
}

// taskPath reads the task that an argument names, empty for none.
func taskPath(text string) ([]run.TaskRef, error) {
	if text == "" {
		return nil, nil
	}
	return run.ParseTaskPath(text)
}

// lastOf is the task at the end of a path, the zero TaskRef when it is empty.
func lastOf(path []run.TaskRef) run.TaskRef {
	if len(path) == 0 {
		return run.TaskRef{}
	}
	return path[len(path)-1]
}

package remote

import (
	"context"
	"slices"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/run"
)

// FindTask follows a path of tasks from a run into the runs within it, and returns the
// run of the last task. It is an error if a task does not exist; with begun, also if an
// item at the end of the path has not started.
func FindTask(ctx context.Context, client *api.Client, id run.ID, path []run.TaskRef, begun bool) (run.ID, error) {
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

// checkTask is an error if a run does not have a task.
func checkTask(record *run.Record, task string) error {
	var names []string
	for _, t := range record.Tasks {
		if t.Task == task {
			return nil
		}
		names = append(names, t.Task)
	}
	return cli.Exitf(cli.ExitInvalid, "run %s of flow %s has no task %q%s", record.Run, record.Flow, task, cli.Suggest(task, slices.Compact(names)))
}

// checkItem is an error if the run has not started an item of a task.
func checkItem(record *run.Record, ref run.TaskRef) error {
	if ref.Key == "" {
		return nil
	}
	var keys []string
	begun := 0
	for _, t := range record.Tasks {
		if t.Task == ref.Task && t.Counts != nil {
			begun = t.Counts.Total - t.Counts.Waiting
		}
		if t.Task != ref.Task || t.Key == nil {
			continue
		}
		if *t.Key == ref.Key {
			return nil
		}
		keys = append(keys, *t.Key)
	}
	if len(keys) == 0 && begun > 0 {
		return cli.Exitf(cli.ExitInvalid, "the record of run %s is too large for one message: it lacks the items of task %s", record.Run, ref.Task)
	}
	return cli.Exitf(cli.ExitInvalid, "task %s of run %s has no started item %q%s", ref.Task, record.Run, ref.Key, cli.Suggest(ref.Key, keys))
}

// childOf is the run that a task, or an item of it, started.
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
			return "", cli.Exitf(cli.ExitInvalid, "task %s of run %s is fanned out: name the item, %s[KEY]/%s", ref.Task, record.Run, ref.Task, inner.Label())
		}
	}
	return "", cli.Exitf(cli.ExitInvalid, "task %s of run %s did not run a flow", ref.Label(), record.Run)
}

// TaskPath parses the path of a task, empty for none.
func TaskPath(text string) ([]run.TaskRef, error) {
	if text == "" {
		return nil, nil
	}
	return run.ParseTaskPath(text)
}

// LastOf is the task at the end of a path, the zero TaskRef when it is empty.
func LastOf(path []run.TaskRef) run.TaskRef {
	if len(path) == 0 {
		return run.TaskRef{}
	}
	return path[len(path)-1]
}

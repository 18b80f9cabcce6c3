package render

import (
	"fmt"

	"github.com/flowhost/flowhost/run"
)

// maxItems is how many items of a fan-out are shown one by one; a fan-out with more of
// them is summed up.
const maxItems = 10

// Selection is which tasks of a run are shown. The zero value is all of them, with large
// fan-outs summed up.
type Selection struct {
	Task   run.TaskRef // only this task with all of its items, or only this item
	Failed bool        // only tasks and items that failed
}

// taskGroup is a task of a record with its items, those that have begun.
type taskGroup struct {
	task  *run.TaskRecord
	items []*run.TaskRecord
}

// taskGroups are the tasks of a record. Its items follow their task.
func taskGroups(r *run.Record) []taskGroup {
	var all []taskGroup
	for i := range r.Tasks {
		t := &r.Tasks[i]
		if last := len(all) - 1; t.Key != nil && last >= 0 && all[last].task.Task == t.Task {
			all[last].items = append(all[last].items, t)
			continue
		}
		all = append(all, taskGroup{task: t})
	}
	return all
}

// of are the task runs of a group that are shown, in their order.
func (s Selection) of(g *taskGroup) []*run.TaskRecord {
	if s.Task.Task != "" && s.Task.Task != g.task.Task {
		return nil
	}
	var shown []*run.TaskRecord
	if s.Task.Key == "" && (!s.Failed || hasFailed(g.task)) {
		shown = append(shown, g.task)
	}
	few := len(g.items) <= maxItems
	bound := maxItems // of the failed items of a large fan-out
	for _, item := range g.items {
		switch {
		case s.Task.Key != "" && *item.Key != s.Task.Key, s.Failed && !hasFailed(item):
		case few, s.Failed, s.Task.Task != "":
			shown = append(shown, item)
		case hasFailed(item) && bound > 0:
			bound--
			shown = append(shown, item)
		}
	}
	return shown
}

// hides counts the items of a group that are not shown, and names the commands that show
// them; empty for none.
func (s Selection) hides(r *run.Record, g *taskGroup, shown []*run.TaskRecord) string {
	if s != (Selection{}) || len(g.items) == len(shown)-1 {
		return ""
	}
	failed := 0
	for _, item := range g.items {
		if hasFailed(item) {
			failed++
		}
	}
	text := Count(len(g.items)-(len(shown)-1), "more item")
	if failed -= len(shown) - 1; failed > 0 {
		text += fmt.Sprintf(", %d of them failed", failed)
	}
	return fmt.Sprintf("… %s: 'flowhost show %s --task %s' lists all, with --failed those that failed", text, r.Run, g.task.Task)
}

// FailedTasks names the tasks and items of a record that failed; of a fan-out whose items
// are missing in the record, the task.
func FailedTasks(r *run.Record) []string {
	var names []string
	for _, g := range taskGroups(r) {
		counts := g.task.Counts
		if hasFailed(g.task) && counts == nil || counts != nil && counts.Failed > 0 && len(g.items) == 0 {
			names = append(names, g.task.Task)
		}
		for _, item := range g.items {
			if hasFailed(item) {
				names = append(names, Printable(item.Ref().Label()))
			}
		}
	}
	return names
}

func hasFailed(t *run.TaskRecord) bool { return t.State == run.Failed }

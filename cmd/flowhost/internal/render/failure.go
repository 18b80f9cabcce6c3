package render

import (
	"bufio"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// ShowFailure explains why a run did not succeed: for each failed task its place in
// the flow file, the message and its last log lines.
func (t *Terminal) ShowFailure(record *run.Record, f *flows.Flow, p *Progress) {
	failed, known := failures(record)
	shown := bounded(failed)
	for _, task := range shown {
		t.showTask(f, task)
		t.showLog(task, p.log(record.Run, task.Ref()))
	}
	if more := len(failed) - len(shown); more > 0 {
		t.Say("%s failed, too", Count(more, "more item"))
	}
	if !known && record.Error != nil {
		t.Say("%s run %s: %s", t.Paint(Red, "Error:"), record.State, describe(record.Error))
	}
}

// failures are the failed tasks, first the one that caused the run's error; known
// reports whether there is one. Of a fan-out, these are the failed items, unless the
// fan-out succeeded without them.
func failures(record *run.Record) (failed []*run.TaskRecord, known bool) {
	var task *run.TaskRecord // that the items belong to which come after it
	for i := range record.Tasks {
		t := &record.Tasks[i]
		if t.Key == nil {
			task = t
		}
		forgiven := t.Key != nil && task != nil && task.Task == t.Task && task.State == run.Succeeded
		ofItem := t.Key == nil && t.Error != nil && t.Error.Key != ""
		if t.State == run.Failed && t.Error != nil && !forgiven && !ofItem {
			failed = append(failed, t)
		}
	}
	if record.Error == nil {
		return failed, false
	}
	culprit := run.TaskRef{Task: record.Error.Task, Key: record.Error.Key}
	first := slices.IndexFunc(failed, func(t *run.TaskRecord) bool { return t.Ref() == culprit })
	if first > 0 {
		t := failed[first]
		failed = slices.Insert(slices.Delete(failed, first, first+1), 0, t)
	}
	return failed, first >= 0
}

// bounded leaves the first failed items of each fan-out, and all failed tasks.
func bounded(failed []*run.TaskRecord) []*run.TaskRecord {
	items := map[string]int{}
	return slices.DeleteFunc(slices.Clone(failed), func(t *run.TaskRecord) bool {
		if t.Key != nil {
			items[t.Task]++
		}
		return items[t.Task] > maxItems
	})
}

// showTask writes a task's failure as a diagnostic, with the line that it refers to.
func (t *Terminal) showTask(f *flows.Flow, task *run.TaskRecord) {
	d := &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  sentence(taskName(task)) + " " + OutcomeVerb(task.Error.Outcome),
		Detail:   Printable(task.Error.Error()),
	}
	if task.Attempts > 1 {
		d.Detail += fmt.Sprintf(" (attempt %d)", task.Attempts)
	}
	for _, spec := range f.AllTasks() {
		if spec.Name == task.Task {
			d.Subject = spot(f, &spec.Range, task.Error.At)
		}
	}
	t.Diagnostics(sources(f, d.Subject), hcl.Diagnostics{d})
}

// spot is the line of the flow's files that a failure refers to: that of an expression,
// or that of the task.
func spot(f *flows.Flow, task *hcl.Range, at string) *hcl.Range {
	name, _, _ := strings.Cut(at, ":")
	dir := task.Filename[:strings.LastIndexAny(task.Filename, `/\`)+1]
	lines := hcl.NewRangeScanner(f.Definition.Files[name], dir+name, bufio.ScanLines)
	for lines.Scan() {
		line := lines.Range()
		if line.Start.Line != task.Start.Line && at == fmt.Sprintf("%s:%d", name, line.Start.Line) {
			return &line
		}
	}
	return task
}

// sources are the flow's files under the name that a range has.
func sources(f *flows.Flow, at *hcl.Range) map[string]*hcl.File {
	if at == nil {
		return nil
	}
	name := at.Filename[strings.LastIndexAny(at.Filename, `/\`)+1:]
	return map[string]*hcl.File{at.Filename: {Bytes: f.Definition.Files[name]}}
}

// describe is a failure as a string, with its place.
func describe(f *run.Failure) string {
	text := Printable(f.Error())
	if f.At != "" {
		text = f.At + ": " + text
	}
	return text
}

// OutcomeVerb is the verb for an outcome.
func OutcomeVerb(o run.Outcome) string {
	switch o {
	case run.OutcomeTimedOut:
		return "timed out"
	case run.OutcomeRejected, run.OutcomeDenied, run.OutcomeCanceled:
		return "was " + string(o)
	case run.OutcomeLost:
		return "was lost"
	}
	return string(o)
}

// shownLines is how much of a failed task's log is shown.
const shownLines = 20

func (t *Terminal) showLog(task *run.TaskRecord, log run.Log) {
	lines := log.Lines[max(0, len(log.Lines)-shownLines):]
	if len(lines) == 0 {
		return
	}
	t.Say("  last log lines of %s:", Printable(task.Ref().Label()))
	for _, l := range lines {
		t.Say("    %s", t.LogLine(l))
	}
	t.Say("")
}

// ShowRemoteFailure explains why a run of a host did not succeed, with the commands
// that show more.
func (t *Terminal) ShowRemoteFailure(record *run.Record) {
	failed, known := failures(record)
	shown := bounded(failed)
	for _, task := range shown {
		t.Say("%s %s %s: %s", t.Paint(Red, "Error:"), taskName(task), OutcomeVerb(task.Error.Outcome), failureText(task.Error))
		if task.Child != "" {
			t.Say("'flowhost show %s' shows its run", task.Child)
		} else if task.Attempts > 0 {
			t.Say("'flowhost logs %s %s' shows its log", record.Run, task.Task)
		}
	}
	if more := len(failed) - len(shown); more > 0 {
		t.Say("%s failed, too: 'flowhost show %s --failed' shows them", Count(more, "more item"), record.Run)
	}
	switch {
	case known || record.Error == nil:
	case record.State == run.Canceled:
		t.Say("run %s is canceled: %s", record.Run, Printable(record.Error.Message))
	default:
		t.Say("%s run %s: %s", t.Paint(Red, "Error:"), record.State, failureText(record.Error))
	}
}

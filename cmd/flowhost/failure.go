package main

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// showFailure says why a run did not succeed: for each task that failed its
// place in the flow file, the message and its last log lines.
func (a *app) showFailure(record *run.Record, f *flows.Flow, p *progress) {
	told := false
	for i := range record.Tasks {
		if t := &record.Tasks[i]; t.State == run.Failed && t.Error != nil {
			a.showTask(f, t)
			a.showLog(t, p.log(record.Run, t.Task))
			told = told || record.Error != nil && record.Error.Task == t.Task
		}
	}
	if !told && record.Error != nil {
		a.say("%s run %s: %s", a.errout.paint(red, "Error:"), record.State, describe(record.Error))
	}
}

// showTask writes a task's failure like a diagnostic, with the lines of its block.
func (a *app) showTask(f *flows.Flow, t *run.TaskRecord) {
	d := &hcl.Diagnostic{
		Severity: hcl.DiagError,
		Summary:  sentence(called(t.Task)) + " " + ended(t.Error.Outcome),
		Detail:   printable(t.Error.Error()),
	}
	if t.Attempts > 1 {
		d.Detail += fmt.Sprintf(" (attempt %d)", t.Attempts)
	}
	for _, spec := range f.AllTasks() {
		if spec.Name == t.Task {
			d.Subject = &spec.Range
		}
	}
	a.showDiagnostics(sources(f, d.Subject), hcl.Diagnostics{d})
}

// sources are the flow's files under the name that a range has.
func sources(f *flows.Flow, at *hcl.Range) map[string]*hcl.File {
	if at == nil {
		return nil
	}
	name := at.Filename[strings.LastIndexAny(at.Filename, `/\`)+1:]
	return map[string]*hcl.File{at.Filename: {Bytes: f.Definition.Files[name]}}
}

// describe is a failure in words.
func describe(f *run.Failure) string {
	text := printable(f.Error())
	if f.At != "" {
		text = f.At + ": " + text
	}
	return text
}

// ended is the verb for an outcome.
func ended(o run.Outcome) string {
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

func (a *app) showLog(t *run.TaskRecord, log run.Log) {
	lines := log.Lines[max(0, len(log.Lines)-shownLines):]
	if len(lines) == 0 {
		return
	}
	a.say("  last log lines of %s:", t.Task)
	for _, l := range lines {
		a.say("    %s", a.logLine(l))
	}
	a.say("")
}

// logLine is one entry of a guest's log; what follows its first line is indented.
func (a *app) logLine(l run.LogLine) string {
	text := strings.ToUpper(l.Level)
	for i, line := range strings.Split(l.Message, "\n") {
		if i > 0 {
			text += "\n       "
		}
		text += " " + printable(line)
	}
	if len(l.Fields) > 0 {
		text += " " + printable(string(l.Fields))
	}
	switch l.Level {
	case "error":
		return a.errout.paint(red, text)
	case "warn":
		return a.errout.paint(yellow, text)
	case "debug":
		return a.errout.paint(dim, text)
	}
	return text
}

package render

import (
	"strings"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// TaskLabel is the name of a task or a wait for people.
func TaskLabel(task string) string {
	if name, ok := strings.CutPrefix(task, flows.WaitPrefix); ok {
		return "wait " + name
	}
	return "task " + task
}

// sentence capitalizes the first letter.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func isWait(t *run.TaskRecord) bool { return strings.HasPrefix(t.Task, flows.WaitPrefix) }

// waitBegun is the start of a wait, from its record.
func waitBegun(t *run.TaskRecord) *run.WaitStarted {
	begun := &run.WaitStarted{TaskRef: run.TaskRef{Task: t.Task}, Subject: t.Subject, Approval: t.Approval}
	if t.Due != nil {
		begun.Due = *t.Due
	}
	if t.Deadline != nil {
		begun.Deadline = *t.Deadline
	}
	return begun
}

// waitsFor describes what a wait waits for.
func waitsFor(w *run.WaitStarted) string {
	text := "for a signal"
	switch {
	case w.Subject != "":
		text = "for a message on " + Printable(w.Subject)
	case w.Approval != "":
		text = "for an approval: " + cut(Printable(w.Approval), 2000)
	case !w.Due.IsZero():
		text = "until " + LocalTime(w.Due)
	}
	if !w.Deadline.IsZero() {
		text += ", until " + LocalTime(w.Deadline) + " at most"
	}
	return text
}

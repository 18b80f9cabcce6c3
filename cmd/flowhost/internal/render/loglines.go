package render

import (
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// LogEntry writes one entry of a run's log, with its time and its task.
func (t *Terminal) LogEntry(e run.LogEntry) error {
	who := e.Task
	if e.Key != "" {
		who += "[" + Printable(e.Key) + "]"
	}
	if e.Attempt > 1 {
		who += fmt.Sprintf("#%d", e.Attempt)
	}
	text := t.Paint(dim, e.At.Local().Format("2006-01-02T15:04:05.000Z07:00")) + " " + who + " " + t.Paint(levelColor(e.Level), strings.ToUpper(e.Level))
	for i, part := range strings.Split(e.Message, "\n") {
		if i > 0 {
			text += "\n "
		}
		text += " " + Printable(part)
	}
	if len(e.Fields) > 0 {
		text += " " + t.Paint(dim, Printable(string(e.Fields)))
	}
	_, err := fmt.Fprintln(t, text)
	return err
}

func levelColor(level string) string {
	switch level {
	case "error":
		return Red
	case "warn":
		return Yellow
	case "debug":
		return dim
	}
	return Bold
}

// LogLine is one entry of a guest's log; what follows its first line is indented.
func (t *Terminal) LogLine(l run.LogLine) string {
	text := strings.ToUpper(l.Level)
	for i, line := range strings.Split(l.Message, "\n") {
		if i > 0 {
			text += "\n       "
		}
		text += " " + Printable(line)
	}
	if len(l.Fields) > 0 {
		text += " " + Printable(string(l.Fields))
	}
	switch l.Level {
	case "error":
		return t.Paint(Red, text)
	case "warn":
		return t.Paint(Yellow, text)
	case "debug":
		return t.Paint(dim, text)
	}
	return text
}

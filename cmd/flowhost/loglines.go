package main

import (
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// logEntry writes one entry of a run's log, with its time and its task.
func (t *terminal) logEntry(e run.LogEntry) error {
	who := e.Task
	if e.Key != "" {
		who += "[" + printable(e.Key) + "]"
	}
	if e.Attempt > 1 {
		who += fmt.Sprintf("#%d", e.Attempt)
	}
	text := t.paint(dim, e.At.Local().Format("15:04:05.000")) + " " + who + " " + t.paint(levelColor(e.Level), strings.ToUpper(e.Level))
	for i, part := range strings.Split(e.Message, "\n") {
		if i > 0 {
			text += "\n "
		}
		text += " " + printable(part)
	}
	if len(e.Fields) > 0 {
		text += " " + t.paint(dim, printable(string(e.Fields)))
	}
	_, err := fmt.Fprintln(t, text)
	return err
}

func levelColor(level string) string {
	switch level {
	case "error":
		return red
	case "warn":
		return yellow
	case "debug":
		return dim
	}
	return bold
}

// logLine is one entry of a guest's log; what follows its first line is indented.
func (t *terminal) logLine(l run.LogLine) string {
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
		return t.paint(red, text)
	case "warn":
		return t.paint(yellow, text)
	case "debug":
		return t.paint(dim, text)
	}
	return text
}

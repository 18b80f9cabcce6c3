package serve

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/buildinfo"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
	"github.com/flowhost/flowhost/cmd/flowhost/internal/render"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// reportStart writes the address of the host, the subjects for requests, and the
// triggers of each flow.
func reportStart(w io.Writer, l *Link, set *flows.Set, schedules []run.ScheduleStatus, pause *run.Pause) {
	at := l.url
	if l.context != "" {
		at += ", credentials in " + cli.Relative(l.context)
	}
	fmt.Fprintf(w, "flowhost %s serves %s\n", buildinfo.This().Version, render.Count(len(set.Flows), "flow"))
	fmt.Fprintf(w, "  nats     %s\n%s", at, subjectLines())
	if pause != nil {
		fmt.Fprintf(w, "  paused   since %s: %s; no attempt starts until 'flowhost resume --host'\n", pause.At.Format(time.RFC3339), render.Printable(pause.Reason))
	}
	fmt.Fprintln(w)
	writeTriggers(w, set, pauses(schedules), time.Now())
}

// subjectLines says which subjects serve requests; README.md and docs/nats.md show them.
func subjectLines() string {
	events := strings.TrimSuffix(bus.EventSubject("<flow>", ">", ""), ".")
	return fmt.Sprintf("  request  %s: starts a run; the reply is its id or, with %s, its result\n", bus.RunSubject("<flow>"), bus.HeaderWait) +
		fmt.Sprintf("  publish  %s: a JetStream message that starts exactly one run\n", bus.TriggerSubject("<flow>")) +
		fmt.Sprintf("  follow   %s: events and results\n", events)
}

// pauses are the paused schedules.
func pauses(all []run.ScheduleStatus) map[run.ScheduleRef]*run.Pause {
	paused := map[run.ScheduleRef]*run.Pause{}
	for _, s := range all {
		if s.Pause != nil {
			paused[s.ScheduleRef] = s.Pause
		}
	}
	return paused
}

// writeTriggers lists the flows with their triggers, one per line.
func writeTriggers(w io.Writer, set *flows.Set, paused map[run.ScheduleRef]*run.Pause, now time.Time) {
	width := 0
	for _, f := range set.Flows {
		width = max(width, len(f.Name))
	}
	for _, f := range set.Flows {
		if len(f.Triggers) == 0 {
			fmt.Fprintf(w, "  %s\n", f.Name)
		}
		for i, t := range f.Triggers {
			name := f.Name
			if i > 0 {
				name = ""
			}
			fmt.Fprintf(w, "  %-*s  %s\n", width, name, triggerLine(t, paused[run.ScheduleRef{Flow: f.Name, Trigger: t.Name}], now))
		}
	}
}

// orOf joins states: "succeeded or failed".
func orOf(states []run.State) string {
	words := make([]string, len(states))
	for i, s := range states {
		words[i] = string(s)
	}
	return strings.Join(words, " or ")
}

func triggerLine(t *flows.Trigger, pause *run.Pause, now time.Time) string {
	line := string(t.Kind) + " " + t.Name + ": "
	switch {
	case t.Kind == run.TriggerSchedule:
		line += t.Expression()
		if t.Zone != "UTC" {
			line += " " + t.Zone
		}
		if pause != nil {
			line += ", paused since " + pause.At.Format(time.RFC3339) + ": " + render.Printable(pause.Reason)
		} else if next, ok := t.Schedule.Next(now); ok && t.Enabled {
			line += ", next " + next.Format(time.RFC3339)
		}
	case t.Kind == run.TriggerFlow:
		line += "after " + t.After + " has " + orOf(t.On)
	case t.Stream != "":
		line += strings.TrimSpace("stream " + t.Stream + " " + t.Subject)
	default:
		line += t.Subject
	}
	if !t.Enabled {
		line += " (disabled)"
	}
	return line
}

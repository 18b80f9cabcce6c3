package render

import (
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/run"
)

// TaskWaits is why a task of an open run does not compute; empty when it does.
func TaskWaits(t *run.TaskRecord) string {
	w := t.WaitsFor
	switch {
	case w == nil:
		return ""
	case w.Reason == run.WaitRetry && t.Due != nil:
		return "next attempt at " + LocalTime(*t.Due)
	case w.Reason == run.WaitSleep:
		return "asleep"
	case w.Reason == run.WaitOperation:
		return "waits for the answer to a request of its own"
	case t.Counts != nil:
		return "items wait " + waitsForText(w)
	case t.State == run.Waiting: // which the line states
		return waitsForText(w)
	}
	return "waits " + waitsForText(w)
}

// RunWaits is why a run is pending; empty when there is no reason.
func RunWaits(w *run.WaitsFor) string {
	if w == nil {
		return ""
	}
	text, behind := "waits "+waitsForText(w), ""
	switch {
	case w.Reason == run.WaitEarlierRun:
		text = fmt.Sprintf("waits for run %s, an earlier one of its schedule", w.Run)
	case w.Reason == run.WaitConcurrency && w.Run != "":
		behind = " behind run " + string(w.Run)
	case w.Reason == run.WaitConcurrency:
		text += ": " + inUse(w)
	}
	switch {
	case w.Position == 1:
		return text + ", next in line"
	case w.Position > 1:
		return text + ", " + ordinal(w.Position) + " in line" + behind
	}
	return text
}

// waitsForText is what is waited for.
func waitsForText(w *run.WaitsFor) string {
	switch w.Reason {
	case run.WaitUpstream:
		return "for " + upstreamNames(w)
	case run.WaitWorker:
		return fmt.Sprintf("for a worker: %d of %d compute", w.InUse, w.Max)
	case run.WaitPaused:
		return "for the operator: the host is paused, or has 0 workers"
	case run.WaitInFlight:
		return fmt.Sprintf("for the end of an attempt: %d of %d are in flight", w.InUse, w.Max)
	case run.WaitLimit:
		return "for limit " + Printable(w.Limit) + ": " + inUse(w)
	case run.WaitRate:
		return fmt.Sprintf("for limit %s: %s, next start at %s", Printable(w.Limit), w.Rate, LocalTime(w.Next))
	case run.WaitMemory:
		return "for memory"
	case run.WaitModule:
		return "for its module to be prepared"
	case run.WaitGroup:
		return "for a slot of group " + Printable(w.Group) + ": " + inUse(w)
	case run.WaitMaxParallel:
		return "for a slot of max_parallel: " + inUse(w)
	case run.WaitEarlierRun:
		return fmt.Sprintf("for the same task of run %s, an earlier one of its schedule", w.Run)
	case run.WaitConcurrency:
		text := "for a slot of the flow's concurrency"
		if w.Key != "" {
			text += " for key " + Printable(w.Key)
		}
		return text
	case run.WaitExpression:
		return "for the evaluation of an expression"
	case run.WaitStopping:
		return "for the next start of the host, which is stopping"
	}
	return "for " + Printable(string(w.Reason)) // of a newer host
}

func inUse(w *run.WaitsFor) string { return fmt.Sprintf("%d of %d in use", w.InUse, w.Max) }

// upstreamNames are the tasks that are not done, "price, tax and 4 more".
func upstreamNames(w *run.WaitsFor) string {
	names := make([]string, len(w.Tasks), len(w.Tasks)+1)
	for i, name := range w.Tasks {
		if group, ok := strings.CutPrefix(name, "group."); ok {
			name = "group " + group
		} else {
			name = strings.TrimPrefix(TaskLabel(name), "task ")
		}
		names[i] = Printable(name)
	}
	if w.More > 0 {
		names = append(names, fmt.Sprintf("%d more", w.More))
	}
	last := len(names) - 1
	if last < 1 {
		return strings.Join(names, "")
	}
	return strings.Join(names[:last], ", ") + " and " + names[last]
}

// ordinal is "1st", "2nd" and so on.
func ordinal(n int) string {
	suffix := "th"
	if n/10%10 != 1 && n%10 >= 1 && n%10 <= 3 {
		suffix = []string{"st", "nd", "rd"}[n%10-1]
	}
	return fmt.Sprint(n, suffix)
}

package render

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/run"
)

// DescribeRun writes a record for people. Fan-outs with many items are summed up.
func (t *Terminal) DescribeRun(ctx context.Context, runs reader, r *run.Record) {
	t.fact("run", string(r.Run))
	t.fact("flow", r.Flow)
	t.fact("state", t.runState(r))
	t.fact("retry of", string(r.RetryOf))
	if r.Parent != nil {
		t.fact("within", string(r.Parent.Run)+", task "+Printable(r.Parent.TaskRef.Label()))
	}
	t.fact("trigger", triggerOf(&r.Trigger))
	if r.Trigger.Scheduled() {
		t.fact("nominal", Nominal(r.Trigger.Time))
	}
	t.fact("accepted", LocalTime(r.CreatedAt))
	if r.StartedAt != nil {
		running := ""
		if r.State == run.Running {
			running = ", running for " + Elapsed(*r.StartedAt)
		}
		t.fact("started", LocalTime(*r.StartedAt)+" (after "+Short(r.StartedAt.Sub(r.CreatedAt))+running+")")
	}
	if r.FinishedAt != nil {
		t.fact("finished", LocalTime(*r.FinishedAt)+took(r.DurationMS))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		t.value("param", name+" = ", r.Params[name])
	}
	t.value("payload", "", r.Trigger.Payload)
	t.DescribeTasks(ctx, runs, r, Selection{})
	t.value("output", "", r.Output)
	if r.Error != nil {
		t.fact("error", t.Paint(Red, failureText(r.Error)))
	}
}

// runState is the state of a run, with the reason why it is pending.
func (t *Terminal) runState(r *run.Record) string {
	state := t.Paint(WordColor(string(r.State)), string(r.State))
	if why := RunWaits(r.WaitsFor); why != "" {
		state += " (" + why + ")"
	}
	return state
}

// fact writes a line about a run, unless it is empty.
func (t *Terminal) fact(name, text string) {
	if text != "" {
		fmt.Fprintf(t, "%s  %s\n", t.Paint(dim, fmt.Sprintf("%-8s", name)), text)
	}
}

// value writes a line with JSON, truncated to the width.
func (t *Terminal) value(name, before string, value json.RawMessage) {
	if none(value) {
		return
	}
	t.fact(name, before+cut(Printable(string(value)), t.valueWidth()-len(before)))
}

func none(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// valueWidth is how much of a value is shown.
func (t *Terminal) valueWidth() int {
	if t.Interactive {
		return max(20, t.Width-14)
	}
	return 200
}

func triggerOf(t *run.Trigger) string {
	text := string(t.Kind)
	if t.Name != "" {
		text += " " + t.Name
	}
	if t.Subject != "" {
		text += ", " + Printable(t.Subject)
	}
	if t.Kind == run.TriggerFlow {
		var of struct {
			Run run.ID `json:"run"`
		}
		if json.Unmarshal(t.Payload, &of) == nil && of.Run != "" {
			text += ", after run " + string(of.Run)
		}
	}
	return text
}

func took(ms *float64) string {
	if ms == nil {
		return ""
	}
	return " (took " + Short(milliseconds(*ms)) + ")"
}

// DescribeTasks writes the selected tasks of a record for people, with those of the
// sub-flows that they ran. It reports whether there is one.
func (t *Terminal) DescribeTasks(ctx context.Context, runs reader, r *run.Record, s Selection) bool {
	below := &childPrinter{Terminal: t, runs: runs, left: maxChildren, failed: s.Failed}
	found := false
	for _, g := range taskGroups(r) {
		shown := s.of(&g)
		for _, task := range shown {
			if len(shown) > maxItems+1 { // one line for each
				below.one(ctx, task, "")
				continue
			}
			t.describeTask(task)
			below.show(ctx, task, "  ")
		}
		found = found || len(shown) > 0
		if more := s.hides(r, &g, shown); more != "" {
			fmt.Fprintf(t, "\n%s\n", t.Paint(dim, more))
		}
	}
	if found {
		fmt.Fprintln(t)
	}
	return found
}

func (t *Terminal) describeTask(task *run.TaskRecord) {
	fmt.Fprintf(t, "\n%s\n", t.taskLine(task))
	if isWait(task) && task.State == run.Running {
		t.fact("  waits", waitsFor(waitBegun(task)))
	}
	if task.Error != nil && task.State != run.Skipped {
		t.fact("  error", t.Paint(Red, failureText(task.Error)))
	}
	t.value("  input", "", task.Input)
	t.value("  output", "", task.Output)
}

// taskLine is a task and its state.
func (t *Terminal) taskLine(task *run.TaskRecord) string {
	word := string(task.State)
	if task.State == run.Failed && task.Outcome != nil {
		word = string(*task.Outcome)
	}
	if isWait(task) && task.State == run.Running {
		word = string(run.Waiting)
	}
	return taskName(task) + " " + t.Paint(WordColor(word), word) + taskDetail(task)
}

func taskName(t *run.TaskRecord) string {
	return TaskLabel(Printable(t.Ref().Label()))
}

func taskDetail(t *run.TaskRecord) string {
	var parts []string
	switch {
	case t.Reused:
		parts = append(parts, "reused")
	case t.Attempts == 1:
		parts = append(parts, "1 attempt")
	case t.Attempts > 1:
		parts = append(parts, fmt.Sprintf("%d attempts", t.Attempts))
	}
	if t.Counts != nil {
		parts = append(parts, countsText(t.Counts, t.State.Done()))
	}
	switch {
	case t.Reused:
	case t.State == run.Running && t.StartedAt != nil:
		parts = append(parts, "for "+Elapsed(*t.StartedAt))
	case t.DurationMS != nil:
		parts = append(parts, Short(milliseconds(*t.DurationMS)))
	}
	if queued := milliseconds(t.QueuedMS); queued >= leastQueued {
		parts = append(parts, "waited "+Short(queued)+" for others")
	}
	if reason := reasonOf(t); reason != "" {
		parts = append(parts, reason)
	}
	if len(parts) == 0 {
		return ""
	}
	separator := ", "
	if t.Counts != nil { // which has commas of its own
		separator = "; "
	}
	return " (" + strings.Join(parts, separator) + ")"
}

// leastQueued is from when on the time is shown that attempts waited for what others had:
// a part of their duration, which their timeout does not count.
const leastQueued = 100 * time.Millisecond

// reasonOf is why a task does not run; empty if that needs no reason.
func reasonOf(t *run.TaskRecord) string {
	if t.State == run.Skipped {
		return skipReason(t.Reason, t.Error)
	}
	return TaskWaits(t)
}

// skipReason is why a task was skipped: by the flow's wiring, or by a failure.
func skipReason(reason string, failure *run.Failure) string {
	if failure != nil {
		reason = failure.Message
	}
	return Printable(reason)
}

// failureText is a failure as a string, with the task and its place in the flow file.
func failureText(f *run.Failure) string {
	text := cut(describe(f), 2000)
	if f.Task != "" {
		text = TaskLabel(Printable(run.TaskRef{Task: f.Task, Key: f.Key}.Label())) + ", " + text
	}
	return text
}

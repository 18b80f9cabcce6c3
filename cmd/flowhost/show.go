package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

func (a *app) showCommand() *cobra.Command {
	r := &remote{app: a}
	asJSON := false
	cmd := exits(&cobra.Command{
		Use:   "show RUN",
		Short: "Show a run with its tasks",
		Long: `Shows what is known of a run: its state, what asked for it, its tasks with their
attempts, errors and results. Long values are cut short; --json has them whole. Tasks
that run a flow are shown with the tasks of that run.

` + selectorHelp,
		Example: `  flowhost show @latest
  flowhost show orders@latest --json | jq .output
  flowhost show 01M7YYDDJ8TYRD7Q2ARHP9C7BV`,
		Args:              between(1, 1, "RUN"),
		ValidArgsFunction: r.complete(latestRuns),
		RunE: func(cmd *cobra.Command, args []string) error {
			return r.use(cmd, func(ctx context.Context, client *api.Client) error {
				id, err := pickRun(ctx, client, args[0])
				if err != nil {
					return err
				}
				record, err := client.Get(ctx, id)
				if err != nil {
					return err
				}
				if asJSON {
					return a.printJSON(record)
				}
				a.describeRun(ctx, client, record)
				return nil
			})
		},
	}, exitInvalid, exitUnreachable, exitInterrupted)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print the whole record of the run")
	r.add(cmd.Flags())
	return cmd
}

// describeRun writes a record for people.
func (a *app) describeRun(ctx context.Context, runs reader, r *run.Record) {
	a.fact("run", string(r.Run))
	a.fact("flow", r.Flow)
	a.fact("state", a.out.paint(wordColor(string(r.State)), string(r.State)))
	if r.State == run.Pending {
		a.fact("waits", "for its turn: for other runs of its flow, by the flow's concurrency or its schedule's overlap")
	}
	a.fact("retry of", string(r.RetryOf))
	if r.Parent != nil {
		a.fact("within", string(r.Parent.Run)+", task "+printable(r.Parent.TaskRef.Label()))
	}
	a.fact("trigger", triggerOf(&r.Trigger))
	a.fact("accepted", localTime(r.CreatedAt))
	if r.StartedAt != nil {
		a.fact("started", localTime(*r.StartedAt)+" (after "+short(r.StartedAt.Sub(r.CreatedAt))+")")
	}
	if r.FinishedAt != nil {
		a.fact("finished", localTime(*r.FinishedAt)+took(r.DurationMS))
	}
	for _, name := range slices.Sorted(maps.Keys(r.Params)) {
		a.value("param", name+" = ", r.Params[name])
	}
	a.value("payload", "", r.Trigger.Payload)
	a.describeTasks(ctx, r, &descendants{app: a, runs: runs, left: maxDescendants})
	a.value("output", "", r.Output)
	if r.Error != nil {
		a.fact("error", a.out.paint(red, failureText(r.Error)))
	}
	if r.Truncated {
		a.say("items of fan-outs, or inputs and outputs of tasks, are left out: the record is too large for a message")
	}
}

// fact writes a line about a run, unless there is nothing to say.
func (a *app) fact(name, text string) {
	if text != "" {
		fmt.Fprintf(a.out, "%s  %s\n", a.out.paint(dim, fmt.Sprintf("%-8s", name)), text)
	}
}

// value writes a line with JSON in it, as much of it as fits.
func (a *app) value(name, before string, value json.RawMessage) {
	if none(value) {
		return
	}
	a.fact(name, before+cut(printable(string(value)), a.valueWidth()-len(before)))
}

func none(value json.RawMessage) bool { return len(value) == 0 || string(value) == "null" }

// valueWidth is how much of a value is shown. Off a terminal there is no width to
// keep to.
func (a *app) valueWidth() int {
	if a.out.interactive {
		return max(20, a.out.width-14)
	}
	return 200
}

func triggerOf(t *run.Trigger) string {
	text := string(t.Kind)
	if t.Name != "" {
		text += " " + t.Name
	}
	if t.Subject != "" {
		text += ", " + printable(t.Subject)
	}
	if t.Kind == run.TriggerFlow {
		var of struct {
			Run run.ID `json:"run"`
		}
		if json.Unmarshal(t.Payload, &of) == nil && of.Run != "" {
			text += ", after run " + string(of.Run)
		}
	}
	if t.Kind == run.TriggerSchedule {
		text += ", due " + localTime(t.Time)
	}
	return text
}

func took(ms *float64) string {
	if ms == nil {
		return ""
	}
	return " (took " + short(milliseconds(*ms)) + ")"
}

func (a *app) describeTasks(ctx context.Context, r *run.Record, below *descendants) {
	for i := range r.Tasks {
		t := &r.Tasks[i]
		fmt.Fprintf(a.out, "\n%s\n", a.taskLine(t))
		if isWait(t) && t.State == run.Running {
			a.fact("  waits", waitsFor(waitBegun(t)))
		}
		if t.Error != nil {
			a.fact("  error", a.out.paint(red, failureText(t.Error)))
		}
		a.value("  input", "", t.Input)
		a.value("  output", "", t.Output)
		below.show(ctx, t, "  ")
	}
	if len(r.Tasks) > 0 {
		fmt.Fprintln(a.out)
	}
}

// taskLine is a task and how it stands.
func (a *app) taskLine(t *run.TaskRecord) string {
	word := string(t.State)
	if t.State == run.Failed && t.Outcome != nil {
		word = string(*t.Outcome)
	}
	if isWait(t) && t.State == run.Running {
		word = string(run.Waiting)
	}
	return taskName(t) + " " + a.out.paint(wordColor(word), word) + taskDetail(t)
}

func taskName(t *run.TaskRecord) string {
	return called(printable(t.Ref().Label()))
}

func taskDetail(t *run.TaskRecord) string {
	var parts []string
	switch {
	case t.Reused:
		parts = append(parts, "taken over")
	case t.Attempts == 1:
		parts = append(parts, "1 attempt")
	case t.Attempts > 1:
		parts = append(parts, fmt.Sprintf("%d attempts", t.Attempts))
	}
	if t.DurationMS != nil && !t.Reused {
		parts = append(parts, short(milliseconds(*t.DurationMS)))
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, ", ") + ")"
}

// failureText is a failure in words, with the task and its place in the flow file.
func failureText(f *run.Failure) string {
	text := cut(describe(f), 2000)
	if f.Task != "" {
		text = called(printable(run.TaskRef{Task: f.Task, Key: f.Key}.Label())) + ", " + text
	}
	return text
}

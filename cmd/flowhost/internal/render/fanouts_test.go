package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

// wideRun are the events of a run with a fan-out of 20 items: each is a run of a
// sub-flow, the third fails at first, and those after the fourth fail.
func wideRun() []run.EventData {
	events := []run.EventData{
		&run.Submitted{Flow: "f"},
		&run.TaskExpanded{TaskRef: run.TaskRef{Task: "copy"}, Items: json.RawMessage(`[0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19]`)},
	}
	for i := range 20 {
		ref := run.TaskRef{Task: "copy", Key: string(rune('a' + i))}
		attempt := func(n int, o run.Outcome) *run.AttemptFinished {
			end := &run.AttemptFinished{TaskRef: ref, Attempt: n, Outcome: o}
			if o == run.OutcomeFailed {
				end.Failure = &run.Failure{Outcome: o, Message: "no"}
			}
			return end
		}
		events = append(events, &run.ChildStarted{TaskRef: ref, Attempt: 1, Child: run.ID("child of " + ref.Key)})
		if i == 2 {
			again := attempt(1, run.OutcomeFailed)
			again.RetryAt = again.RetryAt.AddDate(2000, 0, 0)
			events = append(events, again, &run.ChildStarted{TaskRef: ref, Attempt: 2, Child: "again"})
		}
		if i < 4 {
			events = append(events, attempt(1, run.OutcomeSucceeded))
		} else {
			events = append(events, attempt(1, run.OutcomeFailed))
		}
	}
	return append(events,
		&run.TaskEnded{TaskRef: run.TaskRef{Task: "copy"}, State: run.Failed, Failure: &run.Failure{Message: "no"}},
		&run.Finished{State: run.Failed})
}

// progressOf is the output of a progress for the events of a run and of the runs within
// it.
func progressOf(t *testing.T, out *Terminal, events []run.EventData) string {
	t.Helper()
	var text bytes.Buffer
	out.Writer = &text
	p, err := NewProgress(out, "auto")
	if err != nil {
		t.Fatal(err)
	}
	show := func(id run.ID, data run.EventData) {
		if err := p.Committed(t.Context(), run.Notice{Event: run.Event{Run: id, At: p.made, Data: data}}); err != nil {
			t.Fatal(err)
		}
	}
	for _, data := range events {
		show("R", data)
		if child, ok := data.(*run.ChildStarted); ok {
			show(child.Child, &run.AttemptStarted{TaskRef: run.TaskRef{Task: "inner"}, Attempt: 1})
			show(child.Child, &run.ChildStarted{TaskRef: run.TaskRef{Task: "deeper"}, Attempt: 1, Child: child.Child + "'s"})
			show(child.Child+"'s", &run.AttemptStarted{TaskRef: run.TaskRef{Task: "innermost"}, Attempt: 1})
		}
	}
	return text.String()
}

func TestALargeFanOutIsSummedUp(t *testing.T) {
	t.Parallel()
	want := `run R: pending (flow f)
copy: running (20 items)
copy: running (2 of 20 items done: 2 succeeded; 18 waiting)
copy: running (4 of 20 items done: 4 succeeded; 16 waiting)
copy[e]: failed (no)
copy: running (6 of 20 items done: 4 succeeded, 2 failed; 14 waiting)
copy[f]: failed (no)
copy[g]: failed (no)
copy: running (8 of 20 items done: 4 succeeded, 4 failed; 12 waiting)
copy[h]: failed (no)
copy[i]: failed (no)
copy: running (10 of 20 items done: 4 succeeded, 6 failed; 10 waiting)
copy[j]: failed (no)
copy[k]: failed (no)
copy: running (12 of 20 items done: 4 succeeded, 8 failed; 8 waiting)
copy[l]: failed (no)
copy[m]: failed (no)
copy: running (14 of 20 items done: 4 succeeded, 10 failed; 6 waiting)
copy[n]: failed (no)
copy: running (16 of 20 items done: 4 succeeded, 12 failed; 4 waiting)
copy: running (18 of 20 items done: 4 succeeded, 14 failed; 2 waiting)
copy: failed (20 items: 4 succeeded, 16 failed; no)
run R: failed
`
	if diff := cmp.Diff(want, progressOf(t, &Terminal{}, wideRun())); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// On a terminal the counters are in the last line, redrawn in place.
func TestATerminalCountsInPlace(t *testing.T) {
	t.Parallel()
	got := progressOf(t, &Terminal{Interactive: true, Width: 65}, wideRun())
	var last []string // what remains of each line
	for line := range strings.Lines(got) {
		parts := strings.Split(line, "\r\x1b[K")
		last = append(last, parts[len(parts)-1])
	}
	want := []string{
		"run R: pending (flow f)\n", "copy: running (20 items)\n",
		"copy[e]: failed (no)\n", "copy[f]: failed (no)\n", "copy[g]: failed (no)\n", "copy[h]: failed (no)\n", "copy[i]: failed (no)\n",
		"copy[j]: failed (no)\n", "copy[k]: failed (no)\n", "copy[l]: failed (no)\n", "copy[m]: failed (no)\n", "copy[n]: failed (no)\n",
		"copy: failed (20 items: 4 succeeded, 16 failed; no)\n", "run R: failed\n",
	}
	if diff := cmp.Diff(want, last); diff != "" {
		t.Errorf("lines that remain (-want +got):\n%s", diff)
	}
	if !strings.Contains(got, "\r\x1b[Kcopy: 3 of 20 items done: 3 succeeded; 1 running, 16 waiting\r\x1b[K") {
		t.Errorf("no counters in %q", got)
	}
}

// Records of a run whose items were left out have counts.
func TestCountsOfRecords(t *testing.T) {
	t.Parallel()
	copies := func(state run.State, counts run.ItemCounts) *run.Record {
		of := run.Running
		if state.Done() {
			of = state
		}
		return &run.Record{State: state, Truncated: true, Tasks: []run.TaskRecord{{Task: "copy", State: of, Counts: &counts}}}
	}
	got := shown(t,
		copies(run.Running, run.ItemCounts{Total: 30, Waiting: 28, Running: 2}),
		copies(run.Running, run.ItemCounts{Total: 30, Waiting: 26, Running: 2, Succeeded: 2}),
		copies(run.Running, run.ItemCounts{Total: 30, Waiting: 8, Running: 2, Succeeded: 19, Failed: 1}),
		copies(run.Failed, run.ItemCounts{Total: 30, Waiting: 8, Succeeded: 20, Failed: 2}),
	)
	want := `run 01HZXW0000000000000000MINE: pending (flow f)
copy: running (30 items)
copy: running (20 of 30 items done: 19 succeeded, 1 failed; 2 running, 8 waiting)
copy: failed (30 items: 20 succeeded, 2 failed, 8 not started)
run 01HZXW0000000000000000MINE: failed
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

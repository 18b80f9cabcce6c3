package render

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

// shown is the output of a progress for consecutive records of a run.
func shown(t *testing.T, records ...*run.Record) string {
	t.Helper()
	var out bytes.Buffer
	p, err := NewProgress(&Terminal{Writer: &out}, "plain")
	if err != nil {
		t.Fatal(err)
	}
	r := RecordDiff{Progress: p}
	for _, record := range records {
		record.Run, record.Flow = "01HZXW0000000000000000MINE", "f"
		if err := r.Show(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func task(name string, state run.State, attempts int, more ...func(*run.TaskRecord)) run.TaskRecord {
	t := run.TaskRecord{Task: name, State: state, Attempts: attempts}
	for _, change := range more {
		change(&t)
	}
	return t
}

func outcome(o run.Outcome, ms float64, message string) func(*run.TaskRecord) {
	return func(t *run.TaskRecord) {
		t.Outcome = &o
		if ms > 0 {
			t.DurationMS = &ms
		}
		if message != "" {
			t.Error = &run.Failure{Outcome: o, Message: message}
		}
	}
}

func TestRecordDiff(t *testing.T) {
	t.Parallel()
	failed := outcome(run.OutcomeFailed, 0, "not yet")
	child := func(t *run.TaskRecord) { t.Child = "01HZXW000000000000000CHILD" }
	got := shown(t,
		&run.Record{State: run.Running, Tasks: []run.TaskRecord{task("a", run.Running, 1), task("b", run.Waiting, 0), task("c", run.Waiting, 0)}},
		&run.Record{State: run.Running, Tasks: []run.TaskRecord{task("a", run.Ready, 1, failed), task("b", run.Waiting, 0), task("c", run.Waiting, 0)}},
		&run.Record{State: run.Running, Tasks: []run.TaskRecord{task("a", run.Ready, 1, failed), task("b", run.Waiting, 0), task("c", run.Waiting, 0)}},
		&run.Record{State: run.Running, Tasks: []run.TaskRecord{task("a", run.Succeeded, 2, outcome(run.OutcomeSucceeded, 3, "")), task("b", run.Running, 3), task("c", run.Waiting, 0), task("d", run.Running, 1, child)}},
		&run.Record{State: run.Failed, Tasks: []run.TaskRecord{task("a", run.Succeeded, 2, outcome(run.OutcomeSucceeded, 3, "")), task("b", run.Failed, 3, outcome(run.OutcomeTrapped, 2, "boom")), task("c", run.Skipped, 0), task("d", run.Succeeded, 1, child, outcome(run.OutcomeSucceeded, 4, ""))}},
	)
	want := `run 01HZXW0000000000000000MINE: pending (flow f)
a: running
a: failed (not yet)
a: running (attempt 2)
a: succeeded (3ms)
b: running (attempt 3)
d: running (run 01HZXW000000000000000CHILD)
b: trapped (2ms, boom)
c: skipped
d: succeeded (4ms)
run 01HZXW0000000000000000MINE: failed
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// A run that ended long ago is shown as a whole.
func TestRecordDiffOfThePast(t *testing.T) {
	t.Parallel()
	took := 12.5
	got := shown(t, &run.Record{State: run.Succeeded, DurationMS: &took, Tasks: []run.TaskRecord{task("a", run.Succeeded, 1, outcome(run.OutcomeSucceeded, 3, ""))}})
	want := `run 01HZXW0000000000000000MINE: pending (flow f)
a: running
a: succeeded (3ms)
run 01HZXW0000000000000000MINE: succeeded (12.5ms)
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

// Events have the times of the record, not the current one.
func TestRecordDiffHasTimes(t *testing.T) {
	t.Parallel()
	at := func(second int) *time.Time {
		at := time.Date(2026, 1, 2, 3, 4, second, 0, time.UTC)
		return &at
	}
	spans := func(from, to int) func(*run.TaskRecord) {
		return func(t *run.TaskRecord) { t.StartedAt, t.FinishedAt = at(from), at(to) }
	}
	well := outcome(run.OutcomeSucceeded, 1, "")
	var out bytes.Buffer
	p, err := NewProgress(&Terminal{Writer: &out}, "json")
	if err != nil {
		t.Fatal(err)
	}
	r := RecordDiff{Progress: p}
	err = r.Show(t.Context(), &run.Record{Run: "R", Flow: "f", State: run.Succeeded, CreatedAt: *at(1), FinishedAt: at(9), Tasks: []run.TaskRecord{
		task("a", run.Succeeded, 1, well, spans(2, 3)), task("wait.b", run.Succeeded, 0, spans(3, 7)), task("c", run.Succeeded, 2, well, spans(7, 8)),
	}})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for line := range strings.Lines(out.String()) {
		var e progressEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(e.Kind, " ", e.Task, " ", e.At.Second()))
	}
	want := []string{
		"submitted  1", "attempt_started a 2", "attempt_finished a 3", "wait_ended wait.b 7",
		"attempt_started c 8", "attempt_finished c 8", "finished  9",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A fan-out ends after its items, whatever the order of the record is.
func TestRecordDiffOfItems(t *testing.T) {
	t.Parallel()
	item := func(key string) func(*run.TaskRecord) {
		return func(t *run.TaskRecord) { t.Key = &key }
	}
	well := outcome(run.OutcomeSucceeded, 1, "")
	got := shown(t, &run.Record{State: run.Running, Tasks: []run.TaskRecord{
		task("copy", run.Succeeded, 0), task("copy", run.Succeeded, 1, item("a"), well), task("copy", run.Succeeded, 1, item("b"), well), task("next", run.Running, 1),
	}})
	want := "run 01HZXW0000000000000000MINE: pending (flow f)\ncopy[a]: running\ncopy[a]: succeeded (1ms)\ncopy[b]: running\ncopy[b]: succeeded (1ms)\ncopy: succeeded\nnext: running\n"
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRecordDiffOfWaits(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.Local)
	began := func(t *run.TaskRecord) { t.StartedAt = &at }
	asked := func(t *run.TaskRecord) { t.StartedAt, t.Approval, t.Deadline = &at, "Ship\x1b?", &at }
	refused := func(t *run.TaskRecord) {
		t.StartedAt, t.Error = &at, &run.Failure{Outcome: run.OutcomeFailed, Code: run.CodeRefused, Message: "too early"}
	}
	taken := func(t *run.TaskRecord) { t.StartedAt, t.Reused = &at, true }
	got := shown(t,
		&run.Record{State: run.Running, Tasks: []run.TaskRecord{task("wait.a", run.Waiting, 0), task("wait.b", run.Running, 0, asked), task("wait.c", run.Succeeded, 0, taken)}},
		&run.Record{State: run.Running, Tasks: []run.TaskRecord{task("wait.a", run.Running, 0, began), task("wait.b", run.Running, 0, asked), task("wait.c", run.Succeeded, 0, taken)}},
		&run.Record{State: run.Failed, Tasks: []run.TaskRecord{task("wait.a", run.Succeeded, 0, began), task("wait.b", run.Failed, 0, refused), task("wait.c", run.Succeeded, 0, taken)}},
	)
	want := `run 01HZXW0000000000000000MINE: pending (flow f)
wait.b: waiting (for an approval: Ship\x1b?, until 2026-01-02T03:04:05Z at most)
wait.c: succeeded
wait.a: waiting (for a signal)
wait.a: succeeded
wait.b: failed (refused: too early)
run 01HZXW0000000000000000MINE: failed
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

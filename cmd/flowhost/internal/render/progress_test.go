package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

// story is the notices of a run with everything that can happen to a task, and
// one of another run.
func story(at time.Time) []run.Notice {
	const mine, other = run.ID("01HZXW0000000000000000MINE"), run.ID("01HZXW000000000000000OTHER")
	duration := 12.5
	task := func(name string) run.TaskRef { return run.TaskRef{Task: name} }
	failure := &run.Failure{Outcome: run.OutcomeFailed, Code: "busy", Message: "try\nlater"}
	events := []struct {
		id   run.ID
		data run.EventData
	}{
		{other, &run.AttemptStarted{TaskRef: task("old"), Attempt: 2}},
		{mine, &run.Submitted{Flow: "f"}},
		{other, &run.AttemptFinished{TaskRef: task("old"), Attempt: 2, Outcome: run.OutcomeSucceeded}},
		{mine, &run.AttemptStarted{TaskRef: task("a"), Attempt: 1}},
		{mine, &run.AttemptFinished{TaskRef: task("a"), Attempt: 1, Outcome: run.OutcomeFailed, Failure: failure, RetryAt: at.Add(time.Second), Duration: time.Millisecond}},
		{mine, &run.AttemptStarted{TaskRef: task("a"), Attempt: 2}},
		{mine, &run.AttemptFinished{TaskRef: task("a"), Attempt: 2, Outcome: run.OutcomeSucceeded, Duration: time.Millisecond}},
		{mine, &run.TaskEnded{TaskRef: task("b"), State: run.Skipped}},
		{mine, &run.CancelRequested{Failure: &run.Failure{Message: "enough"}}},
		{mine, &run.Finished{State: run.Canceled}},
	}
	var notices []run.Notice
	for _, e := range events {
		notices = append(notices, run.Notice{Flow: "f", Event: run.Event{Run: e.id, At: at, Data: e.data}})
	}
	notices[len(notices)-1].Record = &run.Record{DurationMS: &duration}
	return notices
}

// tell gives a story to a progress of the given form.
func tell(t *testing.T, form string) string {
	t.Helper()
	var out bytes.Buffer
	p, err := NewProgress(&Terminal{Writer: &out}, form)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range story(p.made) {
		if err := p.Committed(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	return out.String()
}

func TestPlainProgress(t *testing.T) {
	t.Parallel()
	want := `run 01HZXW0000000000000000MINE: pending (flow f)
a: running
a: failed (1ms, busy: try\x0alater, again in 1s)
a: running (attempt 2)
a: succeeded (1ms)
b: skipped
run 01HZXW0000000000000000MINE: stopping (enough)
run 01HZXW0000000000000000MINE: canceled (12.5ms)
`
	if diff := cmp.Diff(want, tell(t, "auto")); diff != "" {
		t.Errorf("progress (-want +got):\n%s", diff)
	}
}

func TestJSONProgress(t *testing.T) {
	t.Parallel()
	var kinds []string
	for line := range strings.Lines(tell(t, "json")) {
		var e progressEvent
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		kinds = append(kinds, strings.TrimSpace(e.Kind+" "+e.Task+" "+string(e.Outcome)+string(e.State)))
	}
	want := []string{
		"submitted", "attempt_started a", "attempt_finished a failed", "attempt_started a", "attempt_finished a succeeded",
		"task_ended b skipped", "cancel_requested", "finished  canceled",
	}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
}

func TestQuietProgress(t *testing.T) {
	t.Parallel()
	if got := tell(t, "quiet"); got != "" {
		t.Errorf("quiet says %q", got)
	}
}

func TestTimeOfTheNextAttempt(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]string{time.Second: "again in 1s", 0: "again at once", -time.Millisecond: "again at once"} {
		if got := again(in); got != want {
			t.Errorf("%v: %s, want %s", in, got, want)
		}
	}
}

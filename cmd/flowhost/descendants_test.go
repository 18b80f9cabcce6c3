package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

// shelf holds records of runs.
type shelf map[run.ID]*run.Record

func (s shelf) Get(_ context.Context, id run.ID) (*run.Record, error) {
	if r := s[id]; r != nil {
		return r, nil
	}
	return nil, run.ErrUnknown
}

func TestDescendants(t *testing.T) {
	t.Parallel()
	outcome := run.OutcomeTrapped
	s := shelf{
		"A": {Run: "A", Tasks: []run.TaskRecord{
			{Task: "one", State: run.Succeeded, Attempts: 1},
			{Task: "two", State: run.Failed, Outcome: &outcome, Attempts: 2, Child: "B", Error: &run.Failure{Outcome: outcome, Code: "trap", Message: "bad \x1b[2J", At: "f.hcl:3"}},
			{Task: "gone", State: run.Succeeded, Attempts: 1, Child: "C"},
		}},
		"B": {Run: "B", Tasks: []run.TaskRecord{{Task: "in", State: run.Failed, Child: "D"}, {Task: "last", State: run.Skipped}}},
		"D": {Run: "D", Tasks: []run.TaskRecord{{Task: "deep", State: run.Running}}},
	}
	var out bytes.Buffer
	a := &app{out: newTerminal(&out, nil)}
	top := &run.TaskRecord{Task: "top", Child: "A"}
	show := func(limit int) string {
		out.Reset()
		(&descendants{app: a, runs: s, left: limit}).show(t.Context(), top, "  ")
		return out.String()
	}
	want := `  run     A
    task one succeeded (1 attempt)
    task two trapped (2 attempts)
      f.hcl:3: trap: bad \x1b[2J
      run     B
        task in failed
          run     D
            task deep running
        task last skipped
    task gone succeeded (1 attempt)
      run     C
        ` + run.ErrUnknown.Error() + "\n"
	if diff := cmp.Diff(want, show(10)); diff != "" {
		t.Error(diff)
	}
	if got := show(2); !strings.Contains(got, "          run     D\n            … 'flowhost show D' shows its tasks\n") || strings.Contains(got, "deep") {
		t.Error(got)
	}
	out.Reset()
	(&descendants{app: a, runs: s, left: 1}).show(t.Context(), &run.TaskRecord{Task: "plain"}, "")
	if out.Len() > 0 {
		t.Errorf("a task without a run: %s", &out)
	}
}

func TestDescent(t *testing.T) {
	t.Parallel()
	var d descent
	if d.has("A") || d.path("A") != "" {
		t.Error("nothing is known yet")
	}
	started := func(id run.ID, task, key string, child run.ID) {
		d.note(run.Event{Run: id, Data: &run.ChildStarted{TaskRef: run.TaskRef{Task: task, Key: key}, Child: child}})
	}
	failed := func(id run.ID, task, key string) {
		d.note(run.Event{Run: id, Data: &run.Finished{State: run.Failed, Failure: &run.Failure{Task: task, Key: key}}})
	}
	started("A", "call", "", "B")
	started("B", "again", "eu", "C")
	if !d.has("C") || d.path("C") != "call/again[eu]/" || d.path("A") != "" || d.has("A") {
		t.Errorf("%+v", d)
	}
	if got := d.culprit(callKey{"A", run.TaskRef{Task: "call"}}); got != (callKey{"A", run.TaskRef{Task: "call"}}) {
		t.Errorf("nothing has failed, and %v did", got)
	}
	failed("C", "work", "2")
	failed("B", "again", "eu")
	if got := d.culprit(callKey{"A", run.TaskRef{Task: "call"}}); got != (callKey{"C", run.TaskRef{Task: "work", Key: "2"}}) {
		t.Errorf("%v failed", got)
	}
	started("A", "call", "", "D") // another attempt, which goes well
	if got := d.culprit(callKey{"A", run.TaskRef{Task: "call"}}); got != (callKey{"A", run.TaskRef{Task: "call"}}) {
		t.Errorf("%v failed", got)
	}
}

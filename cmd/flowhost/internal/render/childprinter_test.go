package render

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

func TestChildPrinter(t *testing.T) {
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
	terminal := NewTerminal(&out, nil)
	top := &run.TaskRecord{Task: "top", Child: "A"}
	show := func(limit int) string {
		out.Reset()
		(&childPrinter{Terminal: terminal, runs: s, left: limit}).show(t.Context(), top, "  ")
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
	(&childPrinter{Terminal: terminal, runs: s, left: 1}).show(t.Context(), &run.TaskRecord{Task: "plain"}, "")
	if out.Len() > 0 {
		t.Errorf("a task without a run: %s", &out)
	}
}

package render

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// A task that failed is shown with its lines of the flow file as they were when
// the flow was loaded, and with the end of its log.
func TestShowFailure(t *testing.T) {
	t.Parallel()
	source := "flow \"f\" {\n  task \"t\" {\n  }\n}\n"
	f := &flows.Flow{
		Definition: &run.Definition{Files: map[string][]byte{"f.hcl": []byte(source)}},
		Sections: []*flows.Section{{Part: flows.PartMain, Tasks: []*flows.Task{{Name: "t", Range: hcl.Range{
			Filename: "some/folder/f.hcl",
			Start:    hcl.Pos{Line: 2, Column: 3, Byte: 13}, End: hcl.Pos{Line: 2, Column: 11, Byte: 21},
		}}}}},
	}
	var stderr bytes.Buffer
	errout := NewTerminal(&stderr, nil)
	p, err := NewProgress(errout, "quiet")
	if err != nil {
		t.Fatal(err)
	}
	var log run.Log
	for i := range shownLines + 1 {
		log.Lines = append(log.Lines, run.LogLine{Level: "info", Message: string(rune('A' + i))})
	}
	log.Lines = append(log.Lines, run.LogLine{Level: "error", Message: "two\nlines", Fields: json.RawMessage(`{"a":1}`)})
	p.logs[callKey{"R", run.TaskRef{Task: "t"}}] = log
	failure := &run.Failure{Outcome: run.OutcomeTrapped, Code: run.CodeTrap, Message: "out of \x1bbounds", Task: "t"}
	errout.ShowFailure(&run.Record{
		Run: "R", State: run.Failed, Error: failure,
		Tasks: []run.TaskRecord{{Task: "t", State: run.Failed, Attempts: 3, Error: failure}, {Task: "u", State: run.Skipped}},
	}, f, p)

	got := stderr.String()
	for _, part := range []string{
		"Error: Task t trapped\n", "on some/folder/f.hcl line 2:\n   2:   task \"t\" {\n",
		`trap: out of \x1bbounds (attempt 3)`, "last log lines of t:\n    INFO C\n", "    ERROR two\n        lines {\"a\":1}\n",
	} {
		if !strings.Contains(got, part) {
			t.Errorf("%q is missing in:\n%s", part, got)
		}
	}
	if strings.Count(got, "Error:") != 1 {
		t.Errorf("the failure is shown more than once:\n%s", got)
	}
}

// The failure that the run's error is of comes first, and a failure that was
// forgiven, or is shown by an item, is not shown at all.
func TestFailures(t *testing.T) {
	t.Parallel()
	fault := func(task, key string) *run.Failure {
		return &run.Failure{Outcome: run.OutcomeFailed, Message: "no", Task: task, Key: key}
	}
	item := func(task, key string) run.TaskRecord {
		return run.TaskRecord{Task: task, Key: &key, State: run.Failed, Error: fault("", "")}
	}
	tasks := []run.TaskRecord{
		{Task: "forgiven", State: run.Succeeded}, item("forgiven", "0"),
		{Task: "plain", State: run.Failed, Error: fault("", "")},
		{Task: "many", State: run.Failed, Error: fault("many", "b")}, item("many", "a"), item("many", "b"),
		{Task: "unfit", State: run.Failed, Error: fault("", "")}, // no items: its list cannot be had
	}
	for name, c := range map[string]struct {
		why   *run.Failure
		want  string
		known bool
	}{
		"an item":         {fault("many", "b"), "many[b] plain many[a] unfit", true},
		"a task":          {fault("plain", ""), "plain many[a] many[b] unfit", true},
		"another reason":  {fault("", ""), "plain many[a] many[b] unfit", false},
		"a run that goes": {nil, "plain many[a] many[b] unfit", false},
	} {
		failed, known := failures(&run.Record{Tasks: tasks, Error: c.why})
		var got []string
		for _, t := range failed {
			got = append(got, t.Ref().Label())
		}
		if strings.Join(got, " ") != c.want || known != c.known {
			t.Errorf("%s: %v, known %v; want %s, %v", name, got, known, c.want, c.known)
		}
	}
}

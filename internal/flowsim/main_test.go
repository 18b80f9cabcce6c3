package flowsim

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// flow loads one flow of the given blocks; a task is written "task NAME { … }".
func flow(t testing.TB, blocks string) Config {
	t.Helper()
	source := "flow \"f\" {\n" + strings.NewReplacer("{;", "{\n", "; ", "\n", "PLUGIN", `plugin = "./p.wasm"`).Replace(blocks) + "\n}\n"
	file := filepath.Join(t.TempDir(), "f.hcl")
	if err := os.WriteFile(file, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	set, diags := flows.Load(t.Context(), []string{file}, flows.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return Config{Set: set, Flow: set.Flows[0]}
}

func report(t testing.TB, c Config) *Report {
	t.Helper()
	r, err := Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// takes states lengths of tasks in milliseconds, and that they do not fail.
func takes(lengths map[string]int) map[string]Stated {
	never := 0.0
	all := map[string]Stated{EveryTask: {Fails: &never}}
	for task, length := range lengths {
		d := time.Duration(length) * time.Millisecond
		all[task] = Stated{Takes: &d}
	}
	return all
}

func fails(of map[string]Stated, task string, chance float64) map[string]Stated {
	s := of[task]
	s.Fails = &chance
	of[task] = s
	return of
}

func steps(path []Step) string {
	var parts []string
	for _, s := range path {
		parts = append(parts, fmt.Sprintf("%s %d..%d", s.Task, s.From.Milliseconds(), s.To.Milliseconds()))
	}
	return strings.Join(parts, ", ")
}

func record(state run.State, tasks ...run.TaskRecord) *run.Record {
	ms := 0.0
	now := time.Now()
	return &run.Record{
		Run: "r", Flow: "f", State: state, Tasks: tasks, DurationMS: &ms, StartedAt: &now, FinishedAt: &now,
		Params: map[string]json.RawMessage{}, Trigger: run.Trigger{Payload: json.RawMessage(`"old"`)},
	}
}

func past1(task string, attempts int, took float64, output string) run.TaskRecord {
	succeeded := run.OutcomeSucceeded
	return run.TaskRecord{Task: task, State: run.Succeeded, Outcome: &succeeded, Attempts: attempts, DurationMS: &took, Output: json.RawMessage(output)}
}

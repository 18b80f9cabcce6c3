package flowsim

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
)

func failing(task string, attempts int, took float64, outcome run.Outcome) run.TaskRecord {
	t := past1(task, attempts, took, "null")
	t.State, t.Outcome, t.Output = run.Failed, &outcome, nil
	t.Error = &run.Failure{Outcome: outcome, Code: "boom", Message: "no", At: "old.hcl:1", Task: task}
	return t
}

// TestHistory holds what is read from records, and what is not.
func TestHistory(t *testing.T) {
	t.Parallel()
	lost := failing("a", 1, 900, run.OutcomeLost)
	reused := past1("a", 1, 900, `"reused"`)
	reused.Reused = true
	cut := record(run.Succeeded, past1("c", 1, 5, `null`))
	cut.Truncated = true
	going := record(run.Running, past1("a", 1, 900, `"going"`))
	h := NewHistory([]*run.Record{
		record(run.Succeeded, past1("a", 1, 10, `"x"`), past1("b", 4, 80, `1`)),
		record(run.Failed, failing("a", 3, 500, run.OutcomeTrapped), lost, reused),
		going, cut,
	})
	if c := h.tasks["c"]; len(c.ends) != 1 || len(c.outputs) != 0 {
		t.Errorf("of a record that was cut short: %+v", c)
	}
	if h.Runs() != 3 || len(h.donors) != 1 {
		t.Errorf("%d runs, %d of them donors", h.Runs(), len(h.donors))
	}
	a, b := h.tasks["a"], h.tasks["b"]
	if len(a.ends) != 4 || !slices.Equal(a.lengths, []time.Duration{10 * time.Millisecond}) || len(a.outputs) != 1 {
		t.Errorf("a: %+v", a)
	}
	if f := a.ends[3].failure; f == nil || f.Code != "boom" || f.At != "" || f.Task != "" || a.ends[3].timed {
		t.Errorf("the last attempt: %+v", a.ends[3])
	}
	if len(b.ends) != 4 || !slices.Equal(b.lengths, []time.Duration{20 * time.Millisecond}) || b.ends[2].failure == nil || b.ends[3].failure != nil {
		t.Errorf("b: %+v", b)
	}
}

// TestReplay draws lengths, ends, outputs and inputs from runs that there were,
// those of one run together.
func TestReplay(t *testing.T) {
	t.Parallel()
	config := flow(t, `param "p" {; type = number; }; task "a" {; PLUGIN; }; task "b" {; PLUGIN; input = task.a.output; }; task "c" {; PLUGIN; }
output "all" {; value = [param.p, trigger.payload, task.a.output, task.b.output]; }`)
	config.Runs = 400
	donor := func(n string, took float64) *run.Record {
		r := record(run.Succeeded, past1("a", 1, took, n), past1("b", 1, 1, n))
		r.Params["p"], r.Trigger.Payload = json.RawMessage(n), json.RawMessage(n)
		return r
	}
	failed := record(run.Failed, failing("a", 1, 33, run.OutcomeFailed))
	failed.Tasks[0].Error.Retryable = false
	config.History = NewHistory([]*run.Record{donor("1", 10), donor("2", 20), failed})
	config.Replay = true
	config.Tasks = fails(map[string]Stated{}, "c", 0)
	outputs, lengths := map[string]int{}, map[time.Duration]int{}
	for show := 1; show <= 30; show++ {
		config.Runs, config.Show = 30, show
		shown := report(t, config).Shown
		outputs[string(shown.Record.Output)]++
		lengths[shown.Lines[0].To]++
	}
	if len(outputs) != 3 || outputs[""] == 0 || outputs[`{"all":[1,1,1,1]}`] == 0 || outputs[`{"all":[2,2,2,2]}`] == 0 {
		t.Errorf("outputs: %v", outputs)
	}
	if len(lengths) != 3 || lengths[10*time.Millisecond] == 0 || lengths[20*time.Millisecond] == 0 || lengths[33*time.Millisecond] == 0 {
		t.Errorf("lengths: %v", lengths)
	}
	want := []Sources{{"a", FromHistory, FromHistory, FromHistory}, {"b", FromHistory, FromHistory, FromHistory}, {"c", FromChance, FromFlag, FromNothing}}
	r := report(t, config)
	if !slices.Equal(r.Sources, want) {
		t.Errorf("sources: %v", r.Sources)
	}
	if r.Failures[0].Code != "boom" {
		t.Errorf("failures: %+v", r.Failures)
	}
}

// TestOutputsOfItems gives an item what the same item gave, and one that there was
// not what any gave.
func TestOutputsOfItems(t *testing.T) {
	t.Parallel()
	config := flow(t, "task \"a\" {; PLUGIN; for_each = { x = 1, y = 2, z = 3 }; }")
	item := func(key string) run.TaskRecord {
		r := past1("a", 1, 1, `"`+key+`"`)
		r.Key = &key
		return r
	}
	config.Runs, config.History = 1, NewHistory([]*run.Record{record(run.Succeeded, item("x"), item("y"))})
	var outputs map[string]map[string]string
	if err := json.Unmarshal(report(t, config).Shown.Record.Output, &outputs); err != nil {
		t.Fatal(err)
	}
	if a := outputs["a"]; a["x"] != "x" || a["y"] != "y" || a["z"] != "x" && a["z"] != "y" {
		t.Errorf("%v", outputs)
	}
}

package flows

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

// suiteOf loads a folder with tests.
func suiteOf(t *testing.T, files map[string]string) *Suite {
	t.Helper()
	suite, diags := LoadTests(t.Context(), []string{folder(t, files)}, Options{Catalog: modules})
	if len(diags) > 0 {
		t.Fatal(text(suite.Set, diags))
	}
	return suite
}

func TestWordsOfTestsAreDescribed(t *testing.T) {
	t.Parallel()
	for _, w := range tables(testFileSchema) {
		for _, a := range w.Arguments {
			if !slices.Contains(lang.Kinds, a.Kind) || lang.Phases[a.Phase] == "" || !isLine(a.About) || a.Required && a.Default != "" {
				t.Errorf("%s: %+v", idOf(w), a)
			}
		}
		for _, b := range w.Blocks {
			if !isLine(b.About) {
				t.Errorf("%s: %s needs what it is about", idOf(w), b.Name)
			}
		}
	}
	language := Schema()
	if language.TestFile != language.TestBodies[0].Name || len(language.Phases["mock"]) == 0 || len(language.Phases["assert"]) == 0 {
		t.Errorf("the schema: %+v", language)
	}
}

// TestFilesOfTests holds which files belong together.
func TestFilesOfTests(t *testing.T) {
	t.Parallel()
	const one = "test \"one\" {\n}\n"
	root := folder(t, map[string]string{
		"f.hcl": smallFlow("f"), "f.test.hcl": one, "g.test.hcl.json": `{"test": {"two": {}}}`,
		"below/f.hcl": smallFlow("f"), "below/f.test.hcl": one, ".hidden/f.test.hcl": "?",
	})
	for name, c := range map[string]struct{ paths, tests, flows []string }{
		"a folder":           {[]string{""}, []string{"below/f one", "f one", "f two"}, []string{"below/f", "f"}},
		"a file of tests":    {[]string{"f.test.hcl"}, []string{"f one"}, []string{"f"}},
		"one below":          {[]string{"below/f.test.hcl"}, []string{"f one"}, []string{"f"}},
		"both":               {[]string{"", "f.test.hcl"}, []string{"below/f one", "f one", "f two"}, []string{"below/f", "f"}},
		"a flow file":        {[]string{"f.hcl"}, nil, []string{"f"}},
		"a flow and a test":  {[]string{"f.hcl", "g.test.hcl.json"}, []string{"f two"}, []string{"f"}},
		"one file two times": {[]string{"f.test.hcl", "f.test.hcl"}, []string{"f one"}, []string{"f"}},
	} {
		var paths, tests, names []string
		for _, p := range c.paths {
			paths = append(paths, filepath.Join(root, p))
		}
		suite, diags := LoadTests(t.Context(), paths, Options{Catalog: modules})
		if diags.HasErrors() {
			t.Errorf("%s: %s", name, text(suite.Set, diags))
		}
		for _, test := range suite.Tests {
			tests = append(tests, test.Flow.Name+" "+test.Name)
		}
		for _, f := range suite.Flows {
			names = append(names, f.Name)
		}
		if diff := cmp.Diff([][]string{c.tests, c.flows}, [][]string{tests, names}); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

// TestTestsAreNotRecorded holds that a run is the same, and has the same
// definition, with tests beside its flow and without.
func TestTestsAreNotRecorded(t *testing.T) {
	t.Parallel()
	files := map[string]string{"f.hcl": smallFlow("f"), "data.json": `{"a": 1}`}
	plain, diags := Load(t.Context(), []string{folder(t, files)}, Options{Catalog: modules})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	files["f.test.hcl"] = "test \"t\" {\n  payload = jsondecode(file(\"data.json\"))\n}\n"
	suite := suiteOf(t, files)
	with, without := suite.Flows[0], plain.Flows[0]
	if with.DefinitionDigest != without.DefinitionDigest || with.Definition.Digest() != with.DefinitionDigest {
		t.Errorf("files recorded with tests: %v", slices.Collect(maps.Keys(with.Definition.Files)))
	}
	if got := string(suite.Tests[0].Request().Trigger.Payload); got != `{"a":1}` {
		t.Errorf("the payload is %s", got)
	}
}

func TestSpanAndRequest(t *testing.T) {
	t.Parallel()
	suite := suiteOf(t, map[string]string{"f.hcl": `
limit "l" {
  rate = "1/s"
}
flow "f" {
  param "n" {
    type = number
  }
  trigger "schedule" "night" {
    cron    = "@daily"
    enabled = false
    params  = { n = 1 }
  }
  trigger "message" "sent" {
    subject = "f.sent"
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}`, "f.test.hcl": `
test "asked for" {
  params = { n = "3" }
}
test "sent" {
  trigger = "sent"
  at      = "2026-03-01T12:00:00+01:00"
  until   = "2h"
}
test "night" {
  trigger = "night"
  until   = "24h"
}`})
	at := time.Date(2026, 3, 1, 11, 0, 0, 0, time.UTC)
	for i, want := range []struct {
		begin, end time.Time
		trigger    run.Trigger
	}{
		{DefaultTestTime, DefaultTestTime.Add(maxTest), run.Trigger{Kind: run.TriggerManual, Time: DefaultTestTime}},
		{at, at.Add(2 * time.Hour), run.Trigger{Kind: run.TriggerMessage, Name: "sent", Subject: "f.sent", Time: at}},
		{DefaultTestTime.Add(-1), DefaultTestTime.Add(24*time.Hour - 1), run.Trigger{}},
	} {
		test := suite.Tests[i]
		begin, end := test.Span()
		if !begin.Equal(want.begin) || !end.Equal(want.end) {
			t.Errorf("%s: from %s to %s", test.Name, begin, end)
		}
		set := suite.Only(test.Flow, test.Trigger)
		only := set.Flow("f")
		if len(set.Limits) != 1 || set.Limits[0] != suite.Limits[0] {
			t.Errorf("%s: limits %v", test.Name, set.Limits)
		}
		if test.Scheduled() != (test.Name == "night") || len(only.Triggers) != min(i, 1) {
			t.Errorf("%s: triggers %v", test.Name, only.Triggers)
		}
		if test.Scheduled() {
			if !only.Triggers[0].Enabled || suite.Flow("f").Trigger("night").Enabled {
				t.Error("a trigger that is off must be on for its test, and for nothing else")
			}
			continue
		}
		if diff := cmp.Diff(want.trigger, test.Request().Trigger); diff != "" {
			t.Error(diff)
		}
	}
	if got := string(suite.Tests[0].Request().Params["n"]); got != "3" {
		t.Errorf("n is %s", got)
	}
}

// TestSensitiveValuesOfTests holds that no problem of a test shows one.
func TestSensitiveValuesOfTests(t *testing.T) {
	t.Parallel()
	suite := suiteOf(t, map[string]string{"f.hcl": "variable \"token\" {\n  default   = \"secret-value\"\n  sensitive = true\n}\n" + smallFlow("f"), "f.test.hcl": `
test "t" {
  mock "t" {
    output = { token = var.token }
  }
  assert {
    condition     = run.output.token == var.token
    error_message = "not ${var.token}"
  }
}`})
	test := suite.Tests[0]
	mocked, diags := test.Mock(Called{Call: &run.Call{Task: "t", Attempt: 1}, Path: "t"})
	if diags.HasErrors() || string(mocked.Result.Output) != `{"token":"secret-value"}` {
		t.Fatalf("%+v %v", mocked, diags)
	}
	problems := test.Check([]Ran{{Record: &run.Record{Output: json.RawMessage(`{"token":"another"}`)}}})
	if len(problems) != 1 || RuleOf(problems[0]) != RuleAssertion {
		t.Fatal(problems)
	}
	for _, shown := range []string{text(suite.Set, problems), string(DiagnosticsJSON(problems, suite.Files()))} {
		if strings.Contains(shown, "secret-value") {
			t.Error(shown)
		}
	}
}

// FuzzLoadTests reads a file of tests beside flows. Whatever it holds, nothing
// panics, every diagnostic is complete, and tests without errors can be evaluated.
func FuzzLoadTests(f *testing.F) {
	flowFile, err := os.ReadFile("testdata/tests/flows.hcl")
	if err != nil {
		f.Fatal(err)
	}
	files, _ := filepath.Glob("testdata/tests/*.test.hcl*")
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(src, strings.HasSuffix(file, ".json"))
	}
	f.Add([]byte("test \"t\" {\n  flow = \"orders\"\n  mock \"fetch\" {\n    output = [input, attempt]\n    times = 1\n    fail = { message = input.a }\n  }\n  assert {\n    condition = run.output.x == [for r in runs : r.task]\n  }\n}\n"), false)
	f.Fuzz(func(t *testing.T, src []byte, asJSON bool) {
		name := "f.test.hcl"
		if asJSON {
			name += ".json"
		}
		l := newLoader(t.Context(), Options{Catalog: modules})
		read := func(string) ([]byte, error) { return nil, os.ErrNotExist }
		l.load(&source{files: []sourceFile{{name: "flows.hcl", display: "flows.hcl", bytes: flowFile}}, read: read}, nil)
		tests := l.modules[0].parseTests(sourceFile{name: name, display: name, bytes: src})
		set, diags := l.finish()
		DiagnosticsJSON(diags, set.Files())
		complete(t, diags)
		if diags.HasErrors() {
			return
		}
		records := []Ran{{Record: &run.Record{Run: "r", State: run.Succeeded, Output: json.RawMessage(`{"x":1}`), Tasks: []run.TaskRecord{{Task: "fetch"}}}}}
		for _, test := range tests {
			for attempt := range 3 {
				test.Mock(Called{Call: &run.Call{Task: "fetch", Attempt: attempt + 1, Input: json.RawMessage(`{"a":[1]}`)}, Path: "fetch"})
			}
			for _, records := range [][]Ran{nil, records} {
				problems := test.Check(records)
				DiagnosticsJSON(problems, set.Files())
				text(set, problems)
			}
		}
	})
}

func complete(t *testing.T, diags hcl.Diagnostics) {
	t.Helper()
	for _, d := range diags {
		if RuleOf(d) == "" || d.Subject == nil {
			t.Fatalf("incomplete: %#v", d)
		}
	}
}

// TestRunsThatTestsSee holds what conditions see of records: the first accepted
// first, a fan-out and not its items, nulls for what has not happened.
func TestRunsThatTestsSee(t *testing.T) {
	t.Parallel()
	suite := suiteOf(t, map[string]string{"f.hcl": smallFlow("f"), "f.test.hcl": `
test "t" {
  assert {
    condition = runs[*].id == ["first", "second"] && run.id == "first" && run.state == "failed" && runs[1].state == "running"
  }
  assert {
    condition = run.duration == 90 && run.params == { n = 1 } && run.output == null && run.finished_at == "2026-01-01T00:01:30Z"
  }
  assert {
    condition = run.error == { task = "t", outcome = "failed", code = "x", message = "no", retryable = true, details = [1] }
  }
  assert {
    condition = task.t.output == [1, 2] && task.t.attempts == 0 && task.t.error == null && runs[0].task.t.input == "in"
  }
  assert {
    condition = runs[1].task.t.state == "waiting" && runs[1].task.t.duration == null && runs[1].finished_at == null
  }
}`})
	at, end, key := DefaultTestTime, DefaultTestTime.Add(90*time.Second), "0"
	first := &run.Record{
		Run: "first", State: run.Failed, CreatedAt: at, StartedAt: &at, FinishedAt: &end, Params: map[string]json.RawMessage{"n": json.RawMessage("1")},
		Error: &run.Failure{Task: "t", Outcome: run.OutcomeFailed, Code: "x", Message: "no", Retryable: true, Details: json.RawMessage("[1]")},
		Tasks: []run.TaskRecord{
			{Task: "t", Output: json.RawMessage("[1,2]"), Input: json.RawMessage(`"in"`)},
			{Task: "t", Key: &key, Output: json.RawMessage("1"), Attempts: 3},
		},
	}
	second := &run.Record{Run: "second", State: run.Running, CreatedAt: end, Tasks: []run.TaskRecord{{Task: "t", State: run.Waiting}}}
	if problems := suite.Tests[0].Check([]Ran{{Record: second}, {Record: first}}); len(problems) > 0 {
		t.Error(text(suite.Set, problems))
	}
}

// TestPartsThatTestsSee holds what conditions see of waits, groups and items: also
// of what records do not have.
func TestPartsThatTestsSee(t *testing.T) {
	t.Parallel()
	suite := suiteOf(t, map[string]string{"f.hcl": `
flow "f" {
  task "each" {
    for_each = ["x", "y", "z"]
    plugin   = "./greet.wasm"
    input    = each.value
  }
  task "named" {
    for_each = { a = 1, b = 2 }
    plugin   = "./greet.wasm"
  }
  group "all" {
    wait "w" {
      signal = true
    }
    group "first" {
      mode = "race"
      task "slow" {
        plugin = "./greet.wasm"
      }
      task "quick" {
        plugin = "./greet.wasm"
      }
    }
  }
  group "later" {
    after = [group.all]
    wait "other" {
      signal = true
    }
  }
  group "going" {
    wait "now" {
      signal = true
    }
    wait "then" {
      signal = true
    }
  }
}`, "f.test.hcl": `
test "t" {
  assert {
    condition = task.each.items[*].state == ["succeeded", "failed", "waiting"] && task.each.items[2].output == null
  }
  assert {
    condition = task.each.errors == [{ key = 1, code = "c", details = null, message = "m", outcome = "failed", retryable = false }]
  }
  assert {
    condition = keys(task.named.items) == ["a", "b"] && task.named.items["b"].attempts == 2 && task.named.errors[0].key == "b"
  }
  assert {
    condition = wait.w.payload == { by = "ada" } && wait.w.duration == 5 && wait.other.state == "waiting" && wait.other.payload == null && wait.other.duration == null
  }
  assert {
    condition = group.first.output == "quick" && group.all.output == { w = { by = "ada" }, first = "quick" } && runs[0].group.all.state == "succeeded"
  }
  assert {
    condition = group.later == { state = "waiting", output = null, error = null } && group.going.state == "running" && task.slow.state == "canceled"
  }
}`})
	at, key := DefaultTestTime, func(k string) *string { return &k }
	end, last := at.Add(5*time.Second), at.Add(7*time.Second)
	failure := &run.Failure{Outcome: run.OutcomeFailed, Code: "c", Message: "m"}
	record := &run.Record{Run: "r", State: run.Running, CreatedAt: at, Tasks: []run.TaskRecord{
		{Task: "each", State: run.Running, Items: json.RawMessage(`["x","y","z"]`)},
		{Task: "each", Key: key("1"), State: run.Failed, Attempts: 1, Error: failure},
		{Task: "each", Key: key("0"), State: run.Succeeded, Attempts: 1, Output: json.RawMessage("1")},
		{Task: "named", State: run.Succeeded, Items: json.RawMessage(`{"b":2,"a":1}`), Output: json.RawMessage(`{"a":1,"b":null}`)},
		{Task: "named", Key: key("b"), State: run.Failed, Attempts: 2, Error: failure},
		{Task: "wait.w", State: run.Succeeded, StartedAt: &at, FinishedAt: &end, Output: json.RawMessage(`{"by":"ada"}`)},
		{Task: "slow", State: run.Canceled, FinishedAt: &last},
		{Task: "quick", State: run.Succeeded, FinishedAt: &end, Output: json.RawMessage(`"quick"`)},
		{Task: "wait.now", State: run.Running, StartedAt: &at},
	}}
	groups := map[string]*run.TaskRun{
		"first": {State: run.Succeeded, FinishedAt: end}, "all": {State: run.Succeeded, FinishedAt: end},
	}
	if problems := suite.Tests[0].Check([]Ran{{Record: record, Groups: groups}}); len(problems) > 0 {
		t.Error(text(suite.Set, problems))
	}
}

// TestMockedFailures holds that a failure that is null is none.
func TestMockedFailures(t *testing.T) {
	t.Parallel()
	suite := suiteOf(t, map[string]string{"f.hcl": smallFlow("f"), "f.test.hcl": `
test "t" {
  mock "t" {
    fail    = input == 1 ? { message = "one" } : null
    outcome = "trapped"
    output  = input
  }
}
test "never" {
  mock "t" {
    fail   = null
    output = input
  }
}`})
	for i, want := range []run.Outcome{run.OutcomeTrapped, run.OutcomeSucceeded} {
		call := Called{Call: &run.Call{Task: "t", Attempt: 1, Input: json.RawMessage("1")}, Path: "t"}
		mocked, diags := suite.Tests[i].Mock(call)
		if diags.HasErrors() || mocked.Result.Outcome != want {
			t.Errorf("%+v %v", mocked, diags)
		}
		call.Input = json.RawMessage("2")
		if mocked, diags := suite.Tests[i].Mock(call); diags.HasErrors() || string(mocked.Result.Output) != "2" {
			t.Errorf("%+v %v", mocked, diags)
		}
	}
}

// TestParamsOfTestsInOrder holds that problems at one place come in one order.
func TestParamsOfTestsInOrder(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.hcl": smallFlow("f"), "f.test.hcl": "test \"t\" {\n  params = merge({ a = 1, b = 1, c = 1, d = 1 }, { e = 1, f = 1 })\n}\n"})
	first := ""
	for range 10 {
		suite, diags := LoadTests(t.Context(), []string{dir}, Options{Catalog: modules})
		if first == "" {
			first = text(suite.Set, diags)
		}
		if got := text(suite.Set, diags); len(diags) != 6 || got != first {
			t.Fatalf("%d:\n%s\n%s", len(diags), first, got)
		}
	}
}

package flows

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/run"
)

// catalog knows modules by the base name of their path, whatever the folder.
type catalog map[string][]string

// modules is the catalog of most tests: the functions of each module.
var modules = catalog{
	"greet.wasm":   {"greet"},
	"pricing.wasm": {"main", "approve", "refund"},
	"review.wasm":  {"review"},
	"notify.wasm":  {"chat", "mail"},
	"tool.wasm":    nil,
	"run.wasm":     {"run"},
	"typed.wasm":   {"fetch", "score", "store", "tree"},
	"wanting.wasm": {"run"},
	"golang.wasm":  {"greet"},
}

// wants are what some of these modules want to be granted.
var wants = map[string][]run.Want{
	"wanting.wasm": {
		{Name: "files", Why: "reads \x1b[31m\u202eword\n lists, " + strings.Repeat("and more lists ", 10)},
		{Name: "http", Why: "looks prices up"}, {Name: "moon"}, {Name: "files"},
	},
}

// schemas are what some functions of these modules state, by module and function.
var schemas = map[string]run.FunctionSignature{
	"typed.wasm fetch": {
		Input: json.RawMessage(`{"type":"object","properties":{"url":{"type":"string"},"count":{"type":"integer"},"mode":{"enum":["fast","full"]}},
			"required":["url"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"},"note":{"type":["string","null"]},"total":{"type":"number"},
			"items":{"type":["array","null"],"items":{"$ref":"#/$defs/item"}},"extra":{}},
			"required":["name","total","items"],"additionalProperties":false,
			"$defs":{"item":{"type":"object","properties":{"sku":{"type":"string"},"price":{"type":"number"}},"required":["sku","price"],"additionalProperties":false}}}`),
		Config: json.RawMessage(`{"type":"object","properties":{"region":{"type":"string"},"retries":{"type":"integer"}},"additionalProperties":false}`),
	},
	"typed.wasm score": {
		Input:  json.RawMessage(`{"type":"object","properties":{"skus":{"type":"array","items":{"type":"string"}},"total":{"type":"number"}},"required":["skus","total"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{"total":{"type":"number"},"labels":{"type":"object","additionalProperties":{"type":"string"}}},"required":["total"],"additionalProperties":false}`),
	},
	"typed.wasm store": {
		Input: json.RawMessage(`{"type":"object","properties":{"count":{"type":"number"},"lines":{"type":"array","items":{"type":"object",
			"properties":{"sku":{"type":"string"},"price":{"type":"string"}},"required":["sku"]}}},"required":["count"]}`),
		Config: json.RawMessage(`{"type":"object","properties":{"table":{"type":"string"}},"required":["table"]}`),
	},
	"golang.wasm greet": {
		Input: json.RawMessage(`{"type":"object","properties":{"Name":{"type":"string"},"At":{"$ref":"#/$defs/At"}},"required":["Name"],"additionalProperties":false,
			"$defs":{"At":{"type":"object","properties":{"City":{"type":"string"}},"required":["City"],"additionalProperties":false}},"x-any-case":true}`),
		Config: json.RawMessage(`{"type":"object","properties":{"Room":{"type":"string"},"Least":{"type":"number"}},"required":["Room"],"additionalProperties":false,"x-any-case":true}`),
	},
	"typed.wasm tree": {
		Input:  json.RawMessage(`{"type":"object","properties":{"value":{"type":"number"},"left":{"$ref":"#"},"right":{"anyOf":[{"$ref":"#"},{"type":"null"}]}},"required":["value"],"additionalProperties":false}`),
		Output: json.RawMessage(`{"type":"object","properties":{"value":{"type":"string"},"left":{"$ref":"#"}},"required":["value","left"],"additionalProperties":false}`),
	},
}

func digestOf(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "sha256:" + hex.EncodeToString(sum[:])
}

func (c catalog) Signature(_ context.Context, path string) (run.Signature, error) {
	name := filepath.Base(path)
	functions, ok := c[name]
	if !ok {
		return run.Signature{}, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	s := run.Signature{Digest: digestOf(name), ABI: "flowhost", Wants: wants[name]}
	for _, f := range functions {
		typed := schemas[name+" "+f]
		typed.Name = f
		s.Functions = append(s.Functions, typed)
	}
	return s, nil
}

func (c catalog) SignatureOf(ctx context.Context, digest string) (run.Signature, error) {
	for name := range c {
		if digestOf(name) == digest {
			return c.Signature(ctx, name)
		}
	}
	return run.Signature{}, fmt.Errorf("module %s: %w", digest, fs.ErrNotExist)
}

// folder writes files and gives their folder.
func folder(t testing.TB, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// text renders diagnostics as the command line does.
func text(set *Set, diags hcl.Diagnostics) string {
	var out bytes.Buffer
	if err := hcl.NewDiagnosticTextWriter(&out, set.Files(), 0, false).WriteDiagnostics(diags); err != nil {
		return err.Error()
	}
	return out.String()
}

// load loads a folder that must be without errors.
func load(t testing.TB, files map[string]string, options Options) *Set {
	t.Helper()
	if options.Catalog == nil {
		options.Catalog = modules
	}
	set, diags := Load(t.Context(), []string{folder(t, files)}, options)
	if len(diags) > 0 {
		t.Fatal(text(set, diags))
	}
	return set
}

// only is the flow of a set that has one.
func onlyFlow(t testing.TB, set *Set) *Flow {
	t.Helper()
	if len(set.Flows) != 1 {
		t.Fatalf("%d flows", len(set.Flows))
	}
	return set.Flows[0]
}

// oneFlow loads the text of a file with one flow.
func oneFlow(t testing.TB, src string) *Flow {
	t.Helper()
	return onlyFlow(t, load(t, map[string]string{"flow.hcl": src}, Options{}))
}

func (f *Flow) task(t testing.TB, name string) *Task {
	t.Helper()
	for _, task := range f.AllTasks() {
		if task.Name == name {
			return task
		}
	}
	t.Fatalf("no task %s", name)
	return nil
}

// aRun is a run as the journal gives it back.
func aRun(f *Flow, payload string, params map[string]json.RawMessage) *run.Run {
	at := time.Date(2026, 3, 8, 2, 30, 0, 500, time.UTC)
	return &run.Run{
		ID: "01JABCDEFGHJKMNPQRSTVWXYZ0", Flow: f.Name, Params: params, State: run.Running, StartedAt: at.Add(time.Second),
		Trigger: run.Trigger{Kind: run.TriggerMessage, Name: "m", Time: at, Subject: "a.b", Headers: map[string][]string{"X": {"1", "2"}}, Payload: json.RawMessage(payload)},
	}
}

func done(task, output string) *run.TaskRun {
	at := time.Date(2026, 3, 8, 2, 30, 0, 0, time.UTC)
	return &run.TaskRun{
		TaskRef: run.TaskRef{Task: task}, State: run.Succeeded, Attempts: 2, Output: json.RawMessage(output),
		StartedAt: at, FinishedAt: at.Add(1500 * time.Millisecond),
	}
}

// play lets a task of a run have its turn: act is called once, or for each item of
// a task with for_each, for which each is that item. Then the task is settled, with
// an output of its own or one for each item. It is false when the task cannot be
// fanned out.
func play(s *Scope, r *run.Run, task *Task, output string, act func()) (*run.Failure, bool) {
	end := done(task.Name, output)
	if !task.FanOut {
		act()
		s.Settle(end)
		return nil, true
	}
	all, failure := task.Items(s)
	if failure != nil {
		return failure, false
	}
	items, err := run.Items(all)
	if err != nil {
		panic(err) // what Items gives can be read
	}
	for _, item := range items {
		s.Each(&item)
		act()
		one := done(task.Name, output)
		one.Key = item.Key
		r.Tasks = append(r.Tasks, one)
	}
	s.Each(nil)
	end.Items, end.Output = all, nil
	s.Settle(end)
	return nil, true
}

func skipped(task string) *run.TaskRun {
	return &run.TaskRun{TaskRef: run.TaskRef{Task: task}, State: run.Skipped}
}

// input evaluates a task's input, which must succeed.
func input(t testing.TB, task *Task, s *Scope) string {
	t.Helper()
	got, failure := task.Input(s)
	if failure != nil {
		t.Fatalf("input of %s: %v at %s", task.Name, failure, failure.At)
	}
	return string(got)
}

// taskNames lists all tasks, those of on_failure last.
func taskNames(f *Flow) []string {
	var names []string
	for _, t := range f.AllTasks() {
		names = append(names, t.Name)
	}
	return names
}

// shownJSON is what tests read of [DiagnosticsJSON].
type shownJSON struct {
	Valid        bool `json:"valid"`
	ErrorCount   int  `json:"error_count"`
	WarningCount int  `json:"warning_count"`
	Diagnostics  []struct {
		Rule    Rule   `json:"rule"`
		Summary string `json:"summary"`
		Detail  string `json:"detail"`
		Range   *struct {
			Start struct {
				Line int `json:"line"`
				Byte int `json:"byte"`
			} `json:"start"`
			End struct {
				Byte int `json:"byte"`
			} `json:"end"`
		} `json:"range"`
		Snippet *struct {
			Code                 string       `json:"code"`
			HighlightStartOffset int          `json:"highlight_start_offset"`
			HighlightEndOffset   int          `json:"highlight_end_offset"`
			Values               []shownValue `json:"values"`
		} `json:"snippet"`
	} `json:"diagnostics"`
}

type shownValue struct {
	Traversal string `json:"traversal"`
	Statement string `json:"statement"`
}

package flowtest

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const orders = `
plugin "shop" {
  source = "./shop.wasm"
}
flow "orders" {
  param "region" {
    type    = string
    default = "eu"
  }
  trigger "message" "created" {
    subject = "orders.created"
    filter  = trigger.payload.total > 0
  }
  trigger "schedule" "hourly" {
    every   = "1h"
    overlap = "skip"
  }
  task "fetch" {
    plugin  = plugin.shop
    input   = { region = param.region, total = try(trigger.payload.total, 0) }
    timeout = "1h"
    retry {
      attempts = 3
      delay    = "10m"
      backoff  = "constant"
      max      = "1h"
    }
  }
  task "store" {
    plugin = "./store.wasm"
    input  = task.fetch.output.rows
  }
  output "rows" {
    value = task.fetch.output.rows
  }
}
`

// suite loads the flows with these tests.
func suite(t *testing.T, tests string) *flows.Suite {
	t.Helper()
	folder := t.TempDir()
	for name, content := range map[string]string{"orders.hcl": orders, "orders.test.hcl": tests} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, diags := flows.LoadTests(t.Context(), []string{folder}, flows.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return s
}

// echo gives the input back.
type echo struct{}

func (echo) Invoke(_ context.Context, call run.Call) (run.Result, error) {
	return run.Result{Outcome: run.OutcomeSucceeded, Output: call.Input}, nil
}

func perform(t *testing.T, body string) *Result {
	t.Helper()
	s := suite(t, "test \"t\" {\n"+body+"\n}\n")
	r, err := Run(t.Context(), s.Set, s.Tests[0], Config{Invoker: echo{}})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestPassing(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"retries": `
  mock "fetch" {
    fail   = { message = "closed", code = "shut" }
    times  = 2
    takes  = "5m"
    output = { rows = attempt + input.total }
  }
  assert {
    condition = run.state == "succeeded" && task.fetch.attempts == 3 && run.duration == 35 * 60
  }
  assert {
    condition = run.output.rows == 3 && task.store.output == 3 && task.store.input == 3 && run.started_at == "2026-01-01T00:00:00Z"
  }`,
		"out of time": `
  mock "fetch" {
    hangs = true
  }
  assert {
    condition = run.state == "failed" && run.error.task == "fetch" && task.fetch.error.outcome == "timed_out" && run.duration == 3 * 3600 + 20 * 60
  }
  assert {
    condition = task.store.state == "skipped" && task.store.attempts == 0 && task.store.output == null
  }`,
		"a failure for good": `
  mock_plugin "shop" {
    fail = { message = "no", retryable = false, details = { a = 1 } }
  }
  assert {
    condition = task.fetch.attempts == 1 && task.fetch.error.message == "no" && task.fetch.error.details.a == 1
  }`,
		"an outcome": `
  mock_plugin "shop" {
    output = 1
  }
  mock "fetch" {
    outcome = "trapped"
  }
  assert {
    condition = task.fetch.attempts == 3 && task.fetch.error.code == "trap"
  }`,
		"a message": `
  trigger = "created"
  payload = { total = 5 }
  params  = { region = "us" }
  at      = "2026-03-29T00:00:00+01:00"
  mock "fetch" {
    output = { rows = "${input.region} ${input.total}" }
  }
  assert {
    condition = run.output.rows == "us 5" && run.scheduled_at == "2026-03-28T23:00:00Z" && run.params.region == "us"
  }`,
		"a message that is filtered": `
  trigger = "created"
  payload = { total = 0 }
  assert {
    condition = length(runs) == 0
  }`,
		"a schedule": `
  trigger = "hourly"
  until   = "24h"
  mock "fetch" {
    takes  = "50m"
    output = { rows = 1 }
  }
  assert {
    condition = length(runs) == 24 && alltrue(runs[*].state == "succeeded" ? [true] : [for r in runs : r.task.store.state == "succeeded" || r.state == "running"])
  }
  assert {
    condition = slice(runs[*].scheduled_at, 0, 2) == ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00Z"]
  }
  assert {
    condition = runs[23].state == "succeeded" && runs[0].task.fetch.duration == 3000
  }`,
		"a schedule that overlaps": `
  trigger = "hourly"
  until   = "6h"
  mock "fetch" {
    takes  = "59m"
    fail   = {}
    times  = 1
    output = { rows = 1 }
  }
  assert {
    condition = runs[*].scheduled_at == ["2026-01-01T00:00:00Z", "2026-01-01T03:00:00Z"]
  }`,
		"so far": `
  until = "90m"
  mock "fetch" {
    hangs = true
  }
  assert {
    condition = run.state == "running" && task.fetch.attempts == 2 && run.duration == null
  }`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := perform(t, body)
			if !r.Passed() {
				t.Error(r.Problems)
			}
			if r.Real > 5*time.Second {
				t.Errorf("it took %s", r.Real)
			}
		})
	}
}

// TestSharedMocks holds which mock counts: that of the test before that of the file,
// that of the task before that of its plugin.
func TestSharedMocks(t *testing.T) {
	t.Parallel()
	s := suite(t, `
mock_plugin "shop" {
  output = { rows = "plugin of the file" }
}
mock "store" {
  output = "task of the file"
}
test "the file's" {
  assert {
    condition = run.output.rows == "plugin of the file" && task.store.output == "task of the file"
  }
}
test "its own" {
  mock "fetch" {
    output = { rows = "task of the test" }
  }
  mock "store" {
    output = "also"
  }
  assert {
    condition = run.output.rows == "task of the test" && task.store.output == "also"
  }
}
test "its own plugin" {
  mock_plugin "shop" {
    output = { rows = "plugin of the test" }
  }
  assert {
    condition = run.output.rows == "plugin of the test" && task.store.output == "task of the file"
  }
}`)
	for _, test := range s.Tests {
		r, err := Run(t.Context(), s.Set, test, Config{})
		if err != nil || !r.Passed() {
			t.Errorf("%s: %v %v", test.Name, err, r.Problems)
		}
	}
}

func TestFailing(t *testing.T) {
	t.Parallel()
	const mocked = `
  mock "fetch" {
    output = { rows = 3 }
  }`
	for name, c := range map[string]struct{ body, want string }{
		"a condition": {mocked + `
  assert {
    condition     = run.state == "succeeded" && [task.fetch.output.rows] == [4]
    error_message = "got ${task.fetch.output.rows} rows"
  }`, "Assertion failed; got 3 rows\n  left:  \\[3\\]\n  right: \\[4\\]"},
		"two conditions": {mocked + `
  assert {
    condition = run.state == "failed"
  }
  assert {
    condition = task.store.attempts > 1
  }`, "(?s)Assertion failed.*Assertion failed; The condition is false"},
		"a condition that is none": {mocked + `
  assert {
    condition = task.fetch.output
  }`, `"condition" must be true or false`},
		"a condition that breaks": {mocked + `
  assert {
    condition = task.fetch.output.rose == 3
  }`, "Unsupported attribute"},
		"a mock that breaks": {`
  mock "fetch" {
    output = { rows = input.rose }
  }`, "Unsupported attribute"},
		"a length that is none": {`
  mock "fetch" {
    takes = "${attempt} h"
  }`, "a duration with a unit is required"},
		"a failure that is none": {`
  mock "fetch" {
    fail = { message = [input] }
  }`, `"message" must be a string`},
		"no run": {`
  trigger = "created"
  payload = { total = 0 }
  assert {
    condition = run.state == "succeeded"
  }`, "There is no run"},
		"a run that is refused": {`
  trigger = "created"
  payload = "x"`, "The run was refused"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := perform(t, c.body)
			var said []string
			for _, d := range r.Problems {
				said = append(said, d.Summary+"; "+d.Detail)
				if d.Subject == nil || !strings.HasSuffix(d.Subject.Filename, "orders.test.hcl") {
					t.Errorf("%s stands at %v", d.Summary, d.Subject)
				}
			}
			if text := strings.Join(said, "\n"); !regexp.MustCompile(c.want).MatchString(text) {
				t.Errorf("%s\nis not %s", text, c.want)
			}
		})
	}
}

func TestWithoutModules(t *testing.T) {
	t.Parallel()
	s := suite(t, "test \"t\" {\n}\n")
	r, err := Run(t.Context(), s.Set, s.Tests[0], Config{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Problems) != 1 || !strings.Contains(r.Problems[0].Detail, `mock "fetch"`) {
		t.Errorf("problems: %v", r.Problems)
	}
	if len(r.Runs) != 1 || r.Runs[0].State != run.Failed || r.Runs[0].Tasks[0].Attempts != 1 {
		t.Errorf("the run: %+v", r.Runs)
	}
}

func TestEndOfTheContext(t *testing.T) {
	t.Parallel()
	s := suite(t, "test \"t\" {\n}\n")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(ctx, s.Set, s.Tests[0], Config{}); err == nil {
		t.Errorf("a test went on: %+v", r)
	}
}

// TestLimitsHoldFromRunToRun: the start of the first run of a schedule counts for
// the second, although the first has ended.
func TestLimitsHoldFromRunToRun(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	for name, content := range map[string]string{"f.hcl": `
limit "slow" {
  rate = "1/h"
}
flow "f" {
  trigger "schedule" "often" {
    every = "10m"
  }
  task "t" {
    plugin = "./t.wasm"
    limit  = limit.slow
  }
}`, "f.test.hcl": `
test "t" {
  trigger = "often"
  until   = "30m"
  mock "t" {}
  assert {
    condition = runs[*].state == ["succeeded", "running"]
  }
}`} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, diags := flows.LoadTests(t.Context(), []string{folder}, flows.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if r, err := Run(t.Context(), s.Set, s.Tests[0], Config{}); err != nil || !r.Passed() {
		t.Error(err, r.Problems)
	}
}

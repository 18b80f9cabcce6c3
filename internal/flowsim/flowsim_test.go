package flowsim

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

const single = "task \"a\" {; PLUGIN; }"

// TestDefaults holds the distributions of which nothing else is said.
func TestDefaults(t *testing.T) {
	t.Parallel()
	config := flow(t, single)
	config.Runs = 4000
	r := report(t, config)
	if r.Runs != 4000 || r.Succeeded+r.Failed != 4000 {
		t.Fatalf("%+v", r)
	}
	// Five standard deviations of a mean of 4000.
	if rate := float64(r.Succeeded) / 4000; math.Abs(rate-0.88) > 5*math.Sqrt(0.88*0.12/4000) {
		t.Errorf("%f succeed", rate)
	}
	if mean := r.Duration.Mean.Seconds() * 1000; math.Abs(mean-5) > 5*math.Sqrt(4.75/4000) {
		t.Errorf("they take %f ms", mean)
	}
	if r.Duration.P50 != 5*time.Millisecond || r.Duration.P90 < 7*time.Millisecond || r.Duration.P90 > 9*time.Millisecond {
		t.Errorf("%+v", r.Duration)
	}
	want := []Failure{{Task: "a", Code: CodeDrawn, Runs: r.Failed}}
	if !slices.Equal(r.Failures, want) {
		t.Errorf("failures: %+v", r.Failures)
	}
	if got := report(t, Config{Set: config.Set, Flow: config.Flow}).Runs; got != DefaultRuns {
		t.Errorf("%d runs", got)
	}
}

func TestTheSameEachTime(t *testing.T) {
	t.Parallel()
	config := flow(t, tangle())
	config.Runs, config.Workers = 40, 3
	tell := func(seed uint64) string {
		config.Seed = seed
		told, err := json.Marshal(report(t, config))
		if err != nil {
			t.Fatal(err)
		}
		return string(told)
	}
	first := tell(1)
	if first != tell(1) {
		t.Error("the same seed gives another report")
	}
	if first == tell(2) {
		t.Error("another seed gives the same report")
	}
}

// TestOnlyWhatIsStatedChanges holds that runs stay comparable: what is stated of
// one task leaves what the others draw as it is.
func TestOnlyWhatIsStatedChanges(t *testing.T) {
	t.Parallel()
	config := flow(t, "task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; }; task \"c\" {; PLUGIN; after = [task.a]; run_on = \"always\"; }")
	config.Runs = 30
	lengths := func(show int) map[string]time.Duration {
		config.Show = show
		all := map[string]time.Duration{}
		for _, l := range report(t, config).Shown.Lines {
			all[l.Task] = l.To - l.From
		}
		return all
	}
	for show := 1; show <= 30; show += 7 {
		config.Tasks, config.Workers = nil, 0
		before := lengths(show)
		never, long := 0.0, time.Hour
		config.Tasks, config.Workers = map[string]Stated{"a": {Takes: &long, Fails: &never}}, 1
		config.Timeout = 2 * time.Hour
		if after := lengths(show); after["b"] != before["b"] || after["c"] != before["c"] || after["a"] != time.Hour {
			t.Errorf("run %d: %v, before %v", show, after, before)
		}
	}
}

func TestStated(t *testing.T) {
	t.Parallel()
	config := flow(t, "task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; }")
	config.Runs = 500
	config.Tasks = fails(takes(map[string]int{"a": 7, EveryTask: 3}), EveryTask, 0)
	if r := report(t, config); r.Succeeded != 500 || r.Duration.Min != 7*time.Millisecond || r.Duration.Max != 7*time.Millisecond || len(r.Duration.Bins) != 1 {
		t.Errorf("%+v", r)
	}
	config.Tasks = fails(config.Tasks, "b", 0.5)
	if r := report(t, config); r.Failed < 190 || r.Failed > 310 || r.Failures[0].Task != "b" {
		t.Errorf("%d failed: %+v", r.Failed, r.Failures)
	}
}

func mocked(t *testing.T, config Config, mocks string) Config {
	t.Helper()
	folder := t.TempDir()
	file := filepath.Join(folder, "m.test.hcl")
	source := config.Set.Files()[config.Flow.Range.Filename].Bytes
	for name, text := range map[string][]byte{filepath.Join(folder, "f.hcl"): source, file: []byte(mocks)} {
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	suite, diags := flows.LoadMocks(t.Context(), []string{folder}, file, flows.Options{})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	config.Set, config.Flow, config.Mocks = suite.Set, suite.Flows[0], suite.Tests[0]
	return config
}

const asking = "task \"a\" {; PLUGIN; }; task \"b\" {; PLUGIN; when = task.a.output.ok; }; output \"x\" {; value = try(task.b.output, 0); }"

// TestMocks holds what a mock leaves to chance.
func TestMocks(t *testing.T) {
	t.Parallel()
	base := flow(t, asking)
	base.Runs = 300
	r := report(t, mocked(t, base, "mock \"a\" {\n output = { ok = attempt == 1 }\n}\n"))
	if r.NotEvaluated != 0 || r.Failed < 30 || r.Failed > 110 || r.Duration.Min == r.Duration.Max {
		t.Errorf("%+v", r)
	}
	if want := []Sources{{"a", FromChance, FromChance, FromMock}, {"b", FromChance, FromChance, FromNothing}}; !slices.Equal(r.Sources, want) {
		t.Errorf("sources: %v", r.Sources)
	}
	r = report(t, mocked(t, base, "mock \"a\" {\n takes = \"1s\"\n output = { ok = false }\n}\n"))
	if r.Duration.Min != time.Second || r.Duration.Max != time.Second || r.Failed == 0 || r.Sources[0].Takes != FromMock {
		t.Errorf("%+v", r)
	}
	r = report(t, mocked(t, base, "mock \"a\" {\n fail = { code = \"x\", retryable = false }\n}\n"))
	if r.Failed != 300 || r.Failures[0].Code != "x" || r.Sources[0].Ends != FromMock {
		t.Errorf("%+v", r)
	}
	r = report(t, mocked(t, base, "mock \"a\" {\n hangs = true\n}\n"))
	if r.Failed != 300 || r.Duration.Min != 5*time.Minute || r.Failures[0].Code != run.CodeTimeout {
		t.Errorf("%+v", r)
	}
	r = report(t, mocked(t, base, "mock \"a\" {\n output = { ok = input.no }\n}\n"))
	if r.NotEvaluated != 300 || !strings.HasPrefix(r.Expressions[0].Message, "its mock, m.test.hcl:2: ") || r.Expressions[0].Runs != 300 {
		t.Errorf("%+v", r)
	}
}

// TestMocksOfTasksThatAreStated holds that a mock states what a call gives that would
// have failed by chance, and succeeds because that is stated.
func TestMocksOfTasksThatAreStated(t *testing.T) {
	t.Parallel()
	config := mocked(t, flow(t, asking), "mock \"a\" {\n output = { ok = true }\n}\n")
	config.Runs, config.Tasks = 300, fails(map[string]Stated{}, "a", 0)
	r := report(t, config)
	if r.NotEvaluated != 0 || r.Failed < 10 || r.Failed > 80 { // of b
		t.Errorf("%d succeeded, %d failed, %d not evaluated: %+v", r.Succeeded, r.Failed, r.NotEvaluated, r.Expressions)
	}
	if want := (Sources{"a", FromChance, FromFlag, FromMock}); r.Sources[0] != want {
		t.Errorf("sources: %v", r.Sources)
	}
	config.Tasks = fails(config.Tasks, "a", 1)
	if r = report(t, config); r.Failed != 300 || r.Failures[0].Task != "a" {
		t.Errorf("%+v", r)
	}
}

// TestMocksOfItemsAndSubFlows holds that mocks see what they see in tests.
func TestMocksOfItemsAndSubFlows(t *testing.T) {
	t.Parallel()
	base := flow(t, "task \"a\" {; PLUGIN; for_each = [4, 5]; }; task \"s\" {; flow = flow.g; input = { n = sum(task.a.output) }; }; }; flow \"g\" {; param \"n\" {; }; task \"in\" {; PLUGIN; input = param.n; }; output \"o\" {; value = task.in.output.x; }")
	base.Runs = 20
	const items = "mock \"a\" {\n fail = null\n output = each.value\n}\n"
	if r := report(t, mocked(t, base, items+"mock \"s/in\" {\n fail = null\n output = { x = input }\n}\n")); r.Succeeded != 20 {
		t.Errorf("%+v", r)
	}
	r := report(t, mocked(t, base, items+"mock \"s\" {\n fail = null\n output = { o = input.n }\n takes = \"3h\"\n}\n"))
	if r.Succeeded != 20 || r.Duration.Min < 3*time.Hour {
		t.Errorf("%+v", r)
	}
}

// TestNotEvaluated counts runs apart that say nothing of the flow.
func TestNotEvaluated(t *testing.T) {
	t.Parallel()
	config := flow(t, asking)
	config.Runs = 200
	r := report(t, config)
	if r.NotEvaluated+r.Failed != 200 || r.NotEvaluated < 150 || r.Succeeded != 0 || r.Duration.N != r.Failed {
		t.Errorf("%+v", r)
	}
	if len(r.Expressions) != 1 || r.Expressions[0].Task != "b" || r.Expressions[0].Runs != r.NotEvaluated || !strings.HasPrefix(r.Expressions[0].At, "f.hcl:") {
		t.Errorf("%+v", r.Expressions)
	}
	config.Sample = func(task *flows.Task) json.RawMessage {
		if task.Name == "a" {
			return json.RawMessage(`{"ok":true}`)
		}
		return nil
	}
	r = report(t, config)
	if r.NotEvaluated != 0 || r.Sources[0].Output != FromSchema || r.Sources[1].Output != FromNothing {
		t.Errorf("%+v", r)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	config := flow(t, "param \"p\" {; type = number; }; "+single)
	config.Runs = 1
	refused := (*RefusedError)(nil)
	if _, err := Run(t.Context(), config); !errors.As(err, &refused) || refused.Run != "" || !strings.Contains(err.Error(), "param p is required") {
		t.Errorf("%v", err)
	}
	config.History, config.Replay = NewHistory([]*run.Record{record(run.Succeeded)}), true
	if _, err := Run(t.Context(), config); !errors.As(err, &refused) || refused.Run != "r" {
		t.Errorf("%v", err)
	}
	config.Replay, config.Params = false, map[string]json.RawMessage{"p": json.RawMessage("1")}
	report(t, config)
}

func TestRunsThatDoNotEnd(t *testing.T) {
	t.Parallel()
	config := flow(t, "task \"a\" {; PLUGIN; retry {; attempts = 2; delay = \"100000h\"; max = \"100000h\"; jitter = 0; }; }")
	config.Runs, config.Tasks = 3, fails(takes(nil), "a", 1)
	if r := report(t, config); r.Unfinished != 3 || r.Shown != nil || r.Duration.N != 0 {
		t.Errorf("%+v", r)
	}
}

func TestEndOfTheContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := Run(ctx, flow(t, single)); !errors.Is(err, context.Canceled) {
		t.Errorf("%+v %v", r, err)
	}
}

func BenchmarkRuns(b *testing.B) {
	config := flow(b, tangle())
	config.Runs = b.N
	report(b, config)
}

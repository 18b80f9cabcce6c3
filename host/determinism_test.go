package host_test

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// exampleInputs is what the functions of the examples' plugins are called with,
// by plugin and function: what they accept, and what they refuse.
var exampleInputs = map[string][]string{
	"greet/greet":          {`{"name":"world"}`, `{"name":""}`, `{"name":1}`},
	"primes/split":         {`{"limit":1000}`, `{"limit":1}`},
	"primes/count":         {`{"from":0,"to":20000}`, `{"from":-1,"to":2}`},
	"primes/join":          {`[{"primes":4,"largest":7},{"primes":1,"largest":11}]`, `[]`, `{}`},
	"pricing/main":         {exampleOrder, `{"id":"o-2","customer":"","items":[]}`, `null`},
	"pricing/approve":      {exampleOrder},
	"review/review":        {exampleOrder},
	"notify/notify":        {`{"text":"it broke"}`, `{"text":" "}`},
	"pg/list_tables":       {`{"host":"pg.eu.example","since":"1970-01-01T00:00:00Z"}`, `{"host":"nowhere"}`},
	"warehouse/copy_table": {`{"region":"eu","table":"orders"}`},
	"warehouse/chat":       {`{"text":"done"}`},
	"warehouse/mail":       {`{"subject":"done"}`},
	"etl/extract":          {`{}`}, // denied: nothing is granted here
	"etl/transform":        {`[{"id":"a","placed":"2026-03-01T10:00:00Z","state":"paid","lines":[{"sku":"x","quantity":2,"cents":500}]}]`, `[{"id":"b"}]`},
	"etl/load":             {`[]`},
	"etl/announce":         {`{"orders":1,"cents":2}`},
	"zones/parse":          {exampleTable, `{"table":"nonsense"}`},
	"zones/region":         {`{"region":"Antarctica","zones":[` + exampleZone + `]}`, `{"region":"Antarctica","zones":[]}`},
	"zones/report":         {`{"zones":1,"regions":[` + exampleRegion + `]}`, `{"zones":2,"regions":[` + exampleRegion + `]}`},
}

const (
	exampleOrder  = `{"id":"o-1","customer":"ada","items":[{"sku":"KB-87","quantity":1,"price":129.90},{"sku":"MAT-1","quantity":2,"price":12.50}],"total":154}`
	exampleTable  = `{"table":"# a comment\nAQ\t-7824+10654\tAntarctica/Vostok\tVostok\nCH,DE,LI\t+4723+00832\tEurope/Zurich\n"}`
	exampleZone   = `{"name":"Antarctica/Vostok","countries":["AQ"],"latitude":-282240,"longitude":384840,"comments":"Vostok"}`
	examplePlace  = `{"zone":"Antarctica/Vostok","latitude":-282240,"longitude":384840}`
	exampleRegion = `{"region":"Antarctica","zones":1,"commented":1,"countries":["AQ"],"extremes":{` +
		`"north":` + examplePlace + `,"south":` + examplePlace + `,"east":` + examplePlace + `,"west":` + examplePlace + `}}`
)

// exampleConfigs is the config of the plugins that need one.
var exampleConfigs = map[string]string{
	"review":    `{"queue":"sales"}`,
	"notify":    `{"channel":"operations"}`,
	"warehouse": `{"room":"data"}`,
}

// envExamples names the directory with the built plugins to a second process of this
// test, which leaves what it saw in seenFile.
const (
	envExamples = "FLOWHOST_TEST_EXAMPLES"
	seenFile    = "seen.json"
)

// TestSameCallGivesTheSameBytes calls every function of every example: in one
// host after each other and at the same time, in another host, in another
// process, and on the other engine. Output, log and failure are the same.
func TestSameCallGivesTheSameBytes(t *testing.T) {
	t.Parallel()
	if dir := os.Getenv(envExamples); dir != "" {
		leave(t, dir)
		return
	}
	dir := buildExamples(t)
	h := newHost(t, host.Config{})
	calls := exampleCalls(t, h, dir)
	want := results(t, h, calls)

	t.Run("other calls in between", func(t *testing.T) {
		t.Parallel()
		var rounds sync.WaitGroup
		for range 4 {
			rounds.Go(func() { same(t, want, results(t, h, calls)) })
		}
		rounds.Wait()
	})
	t.Run("another host", func(t *testing.T) {
		t.Parallel()
		other := newHost(t, host.Config{Instances: 1})
		backwards := exampleCalls(t, other, dir)
		slices.Reverse(backwards)
		same(t, want, results(t, other, backwards))
	})
	t.Run("another process", func(t *testing.T) {
		t.Parallel()
		same(t, want, resultsOfAProcess(t, dir))
	})
	t.Run("interpreter", func(t *testing.T) {
		t.Parallel()
		other := newHost(t, host.Config{Engine: host.Interpreter})
		same(t, want, results(t, other, exampleCalls(t, other, dir)))
	})
}

// buildExamples builds the plugins of all examples into one directory.
func buildExamples(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(fixture.dir, "examples")
	sources, err := filepath.Glob("../examples/*/plugins/*/main.go")
	if err != nil || len(sources) == 0 {
		t.Fatal("no plugins in ../examples", err)
	}
	for _, source := range sources {
		folder := filepath.Dir(source)
		path := filepath.Join(dir, filepath.Base(folder)+".wasm")
		if _, err := os.Stat(path); err == nil {
			t.Fatalf("two examples have a plugin %s", filepath.Base(folder))
		}
		cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-s -w", "-buildmode=c-shared", "-o", path, "./"+folder)
		cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOFLAGS=")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", folder, err, out)
		}
	}
	return dir
}

// namedCall is a call and how the test speaks of it.
type namedCall struct {
	name string
	call run.Call
}

// exampleCalls gives a call for each input of each function that there is.
func exampleCalls(t *testing.T, h *host.Host, dir string) []namedCall {
	t.Helper()
	modules, err := filepath.Glob(filepath.Join(dir, "*.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	var calls []namedCall
	unused := maps.Clone(exampleInputs)
	for _, path := range modules {
		plugin := strings.TrimSuffix(filepath.Base(path), ".wasm")
		signature, err := h.Signature(t.Context(), path)
		if err != nil {
			t.Fatal(err)
		}
		for _, function := range signature.Functions {
			key := plugin + "/" + function.Name
			inputs := exampleInputs[key]
			if len(inputs) == 0 {
				t.Errorf("exampleInputs has nothing for %s", key)
			}
			delete(unused, key)
			for _, input := range inputs {
				call := callOf(signature.Digest, function.Name, input)
				if config := exampleConfigs[plugin]; config != "" {
					call.Config = json.RawMessage(config)
				}
				calls = append(calls, namedCall{key + " " + input, call})
			}
		}
	}
	for key := range unused {
		t.Errorf("no example has the function %s", key)
	}
	return calls
}

// results makes the calls one after another and gives what is to be the same,
// by the calls' names.
func results(t *testing.T, h *host.Host, calls []namedCall) map[string]string {
	t.Helper()
	seen := map[string]string{}
	for _, c := range calls {
		result, err := h.Invoke(t.Context(), c.call)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if denied := result.Outcome == run.OutcomeDenied && strings.HasPrefix(c.name, "etl/"); !denied && result.Outcome != run.OutcomeSucceeded && result.Outcome != run.OutcomeFailed {
			t.Errorf("%s: %s %v", c.name, result.Outcome, result.Failure)
		}
		result.Duration, result.Queued = 0, 0
		text, err := json.Marshal(result)
		if err != nil {
			t.Error(err)
		}
		seen[c.name] = string(text)
	}
	return seen
}

func same(t *testing.T, want, got map[string]string) {
	t.Helper()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not what the first host saw:\n%s", diff)
	}
}

// resultsOfAProcess runs this test alone in a process of its own.
func resultsOfAProcess(t *testing.T, dir string) map[string]string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestSameCallGivesTheSameBytes$")
	cmd.Env = append(os.Environ(), envExamples+"="+dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the other process: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, seenFile))
	if err != nil {
		t.Fatal(err)
	}
	var seen map[string]string
	if err := json.Unmarshal(text, &seen); err != nil {
		t.Fatal(err)
	}
	return seen
}

// leave is that process's part. It takes native code from the first one's cache.
func leave(t *testing.T, dir string) {
	h, err := host.New(t.Context(), host.Config{CacheDir: moduleCache()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(context.Background())
	text, err := json.Marshal(results(t, h, exampleCalls(t, h, dir)))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, seenFile), text, 0o600); err != nil {
		t.Fatal(err)
	}
}

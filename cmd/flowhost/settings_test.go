package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/natsd"
	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

func TestDecodeSettings(t *testing.T) {
	t.Parallel()
	got, diags := decodeSettings([]byte(`
data       = "state"
cache      = "/var/cache/flowhost"
workers    = 3
durability = "relaxed"
timeout    = "90s"
watch      = false

nats {
  url    = "nats://example.com:4222"
  creds  = "host.creds"
  listen = "127.0.0.1:0"

  replicas = 3
}

limits {
  memory = "64MiB"
  output = 2048
  log    = "1.5 KB"
  fuel   = 1000

  max_memory = "1GiB"
  max_fuel   = 2000
}
max_timeout = "2m"
`), filepath.Join("flows", "flowhost.hcl"))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	want := settings{
		natsURL: "nats://example.com:4222", natsCreds: filepath.Join("flows", "host.creds"), natsListen: "127.0.0.1:0",
		streams: bus.StreamConfig{Replicas: 3},
		data:    filepath.Join("flows", "state"), cache: "/var/cache/flowhost", workers: 3,
		durability: natsd.SyncRelaxed, timeout: 90 * time.Second, unwatched: true,
		limits: run.Limits{Memory: 64 << 20, Output: 2048, Log: 1500, Fuel: 1000},
		ceilings: flows.Ceilings{
			Limits: run.Limits{Memory: 1 << 30, Fuel: 2000}, Timeout: 2 * time.Minute, From: filepath.Join("flows", "flowhost.hcl"),
		},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(settings{})); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

// Every wrong value is reported, at its place.
// The sample of docs/operating.md names every setting, with values that are
// taken.
func TestSettingsOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "operating.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, sample, found := strings.Cut(string(page), "```hcl settings\n")
	sample, _, ended := strings.Cut(sample, "```")
	if !found || !ended {
		t.Fatal("the page has no sample")
	}
	s, diags := decodeSettings([]byte(sample), "flowhost.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if s.workers != 16 || s.limits.Memory != 256<<20 || s.natsListen == "" || s.timeout != 5*time.Minute {
		t.Errorf("%+v", s)
	}
}

func TestDecodeWrongSettings(t *testing.T) {
	t.Parallel()
	tests := []struct{ source, want string }{
		{`workers = 0`, `"workers" must be a whole number`},
		{`workers = "many"`, `"workers" must be a whole number`},
		{"nats {\n replicas = -3\n}", `"replicas" must be a whole number`},
		{`workers = [1]`, `string required`},
		{`durability = "safe"`, `"safe" is not one of "strict", "relaxed" and "memory"`},
		{`timeout = 5`, `"timeout" must be a positive duration`},
		{`timeout = "-5s"`, `"timeout" must be a positive duration`},
		{"limits {\n memory = \"-1KiB\"\n}", `"memory" must be a number of bytes`},
		{"limits {\n memory = \"2 elephants\"\n}", `"memory" must be a number of bytes`},
		{"limits {\n memory = \"5000000 GiB\"\n}", `"memory" must be a number of bytes`},
		{"limits {\n fuel = 0\n}", `"fuel" must be a whole number, 1 or more`},
		{"limits {\n fuel = 99999999999999999999\n}", `"fuel" is 9223372036854775807 at most`},
		{"limits {\n output = \"900GiB\"\n}", `"output" is 16MiB at most`},
		{"limits {\n max_log = \"5MiB\"\n}", `"max_log" is 4MiB at most`},
		{"limits {\n max_memory = \"5GiB\"\n}", `"max_memory" is 4GiB at most`},
		{"limits {\n memory = \"64MiB\"\n max_memory = \"32MiB\"\n}", `above what they may state, max_memory, 32MiB`},
		{"limits {\n fuel = 6\n max_fuel = 5\n}", `above what they may state, max_fuel, 5`},
		{"timeout = \"2m\"\nmax_timeout = \"1m\"", `above what they may state, max_timeout, 1m0s`},
		{`timeout = "1000000h"`, `100 years at most`},
		{`timeout = "99999999999h"`, `"timeout" must be a positive duration`},
		{`workers = 10001`, `"workers" is 10000 at most`},
		{`workers = 99999999999999999999`, `"workers" is 10000 at most`},
		{"nats {\n replicas = 6\n}", `"replicas" is 5 at most`},
		{`watch = "never"`, `a bool is required`},
		{`data = ["a"]`, `string required`},
		{`flow "x" {}`, `Blocks of type "flow" are not expected here`},
		{"nats {}\nnats {}", `Only one nats block is allowed`},
		{`data = `, `Expected the start of an expression`},
	}
	for _, test := range tests {
		t.Run(test.source, func(t *testing.T) {
			t.Parallel()
			_, diags := decodeSettings([]byte(test.source), "flowhost.hcl")
			if len(diags) != 1 || !strings.Contains(diags[0].Detail, test.want) || diags[0].Subject == nil {
				t.Errorf("got %v, want one located problem with %q", diags, test.want)
			}
		})
	}
}

func FuzzDecodeSettings(f *testing.F) {
	f.Add([]byte("workers = 3\nlimits {\n memory = \"64MiB\"\n}\n"))
	f.Add([]byte(`nats { url = null }`))
	f.Add([]byte(`timeout = "1h`))
	f.Fuzz(func(t *testing.T, source []byte) {
		s, diags := decodeSettings(source, "flowhost.hcl")
		if !diags.HasErrors() && (s.workers < 0 || s.timeout < 0 || s.limits.Memory < 0) {
			t.Errorf("%q gives %+v", source, s)
		}
	})
}

func TestOverride(t *testing.T) {
	t.Parallel()
	value := "file"
	override(&value, "")
	if value != "file" {
		t.Errorf("a flag that was not given makes %q", value)
	}
	override(&value, "flag")
	if value != "flag" {
		t.Errorf("the flag loses against %q", value)
	}
}

// A ceiling below what the host takes by itself lowers that.
func TestCeilingsLowerWhatIsNotStated(t *testing.T) {
	t.Parallel()
	s, diags := decodeSettings([]byte(`max_timeout = "1m"
limits {
  max_memory = "64MiB"
  max_output = "2MiB"
  max_log    = "1KiB"
  max_fuel   = 7
}
`), "flowhost.hcl")
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	if want := (run.Limits{Memory: 64 << 20, Log: 1 << 10, Fuel: 7}); s.limits != want || s.timeout != time.Minute {
		t.Errorf("limits %+v, timeout %s, want %+v and 1m", s.limits, s.timeout, want)
	}
}

package settings

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
memory     = "4GiB"
workers    = 3
in_flight  = 100
cancel_grace = "0s"
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
	want := Settings{
		NATSURL: "nats://example.com:4222", NATSCreds: filepath.Join("flows", "host.creds"), NATSListen: "127.0.0.1:0",
		Streams: bus.StreamConfig{Replicas: 3},
		Data:    filepath.Join("flows", "state"), Cache: "/var/cache/flowhost",
		Memory: 4 << 30, Workers: new(3), InFlight: 100, Grace: new(time.Duration(0)),
		Durability: natsd.SyncRelaxed, Timeout: 90 * time.Second, Unwatched: true,
		Limits: run.Limits{Memory: 64 << 20, Output: 2048, Log: 1500, Fuel: 1000},
		Ceilings: flows.Ceilings{
			Limits: run.Limits{Memory: 1 << 30, Fuel: 2000}, Timeout: 2 * time.Minute, From: filepath.Join("flows", "flowhost.hcl"),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
}

// Every wrong value is reported, at its place.
// The sample of docs/operating.md names every setting, with values that are
// taken.
func TestSettingsOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "operating.md"))
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
	if s.Workers == nil || *s.Workers != 16 || s.Limits.Memory != 256<<20 || s.NATSListen == "" || s.Timeout != 5*time.Minute {
		t.Errorf("%+v", s)
	}
}

func TestDecodeWrongSettings(t *testing.T) {
	t.Parallel()
	tests := []struct{ source, want string }{
		{`workers = -1`, `"workers" must be an integer of at least 0`},
		{`in_flight = 0`, `"in_flight" must be an integer of at least 1`},
		{`in_flight = 10001`, `"in_flight" must be at most 10000`},
		{`cancel_grace = "-1s"`, `"cancel_grace" must be a duration with a unit`},
		{`cancel_grace = 2`, `"cancel_grace" must be a duration with a unit`},
		{`memory = "1KiB"`, `"memory" must be at least 64MiB`},
		{`workers = "many"`, `"workers" must be an integer`},
		{"nats {\n replicas = -3\n}", `"replicas" must be an integer`},
		{`workers = [1]`, `string required`},
		{`durability = "safe"`, `"safe" is not one of "strict", "relaxed" and "memory"`},
		{`timeout = 5`, `"timeout" must be a positive duration`},
		{`timeout = "-5s"`, `"timeout" must be a positive duration`},
		{"limits {\n memory = \"-1KiB\"\n}", `"memory" must be a number of bytes`},
		{"limits {\n memory = \"2 elephants\"\n}", `"memory" must be a number of bytes`},
		{"limits {\n memory = \"5000000 GiB\"\n}", `"memory" must be a number of bytes`},
		{"limits {\n fuel = 0\n}", `"fuel" must be an integer of at least 1`},
		{"limits {\n fuel = 99999999999999999999\n}", `"fuel" must be at most 9223372036854775807`},
		{"limits {\n output = \"900GiB\"\n}", `"output" must be at most 16MiB`},
		{"limits {\n max_log = \"5MiB\"\n}", `"max_log" must be at most 4MiB`},
		{"limits {\n max_memory = \"5GiB\"\n}", `"max_memory" must be at most 4GiB`},
		{"limits {\n memory = \"64MiB\"\n max_memory = \"32MiB\"\n}", `must not exceed max_memory, 32MiB`},
		{"limits {\n fuel = 6\n max_fuel = 5\n}", `must not exceed max_fuel, 5`},
		{"timeout = \"2m\"\nmax_timeout = \"1m\"", `must not exceed max_timeout, 1m0s`},
		{`timeout = "1000000h"`, `at most 100 years`},
		{`timeout = "99999999999h"`, `"timeout" must be a positive duration`},
		{`workers = 10001`, `"workers" must be at most 10000`},
		{`workers = 99999999999999999999`, `"workers" must be at most 10000`},
		{"nats {\n replicas = 6\n}", `"replicas" must be at most 5`},
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
		if !diags.HasErrors() && (s.Workers != nil && *s.Workers < 0 || s.Grace != nil && *s.Grace < 0 || s.InFlight < 0 || s.Timeout < 0 || s.Limits.Memory < 0) {
			t.Errorf("%q gives %+v", source, s)
		}
	})
}

// 0 is a value, and not the same as no value.
func TestZeroIsNotUnset(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]Settings{
		"":                                   {},
		"workers = 0":                        {Workers: new(0)},
		"cancel_grace = 0":                   {Grace: new(time.Duration(0))},
		"workers = 1\ncancel_grace = \"1s\"": {Workers: new(1), Grace: new(time.Second)},
	} {
		got, diags := decodeSettings([]byte(source), "flowhost.hcl")
		want.Ceilings.From = "flowhost.hcl"
		if diff := cmp.Diff(want, got); diags.HasErrors() || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", source, diags, diff)
		}
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
	if want := (run.Limits{Memory: 64 << 20, Log: 1 << 10, Fuel: 7}); s.Limits != want || s.Timeout != time.Minute {
		t.Errorf("limits %+v, timeout %s, want %+v and 1m", s.Limits, s.Timeout, want)
	}
}

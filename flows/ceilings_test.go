package flows_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/flows"
	"github.com/flowhost/flowhost/run"
)

// loadTask loads a flow whose only task has the given arguments.
func loadTask(t *testing.T, arguments string, ceilings flows.Ceilings) (*flows.Set, string) {
	t.Helper()
	name := filepath.Join(t.TempDir(), "a.hcl")
	text := fmt.Sprintf("flow \"f\" {\n  task \"t\" {\n    plugin = \"./p.wasm\"\n%s\n  }\n}\n", arguments)
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	set, diags := flows.Load(t.Context(), []string{name}, flows.Options{Ceilings: ceilings})
	var all []string
	for _, d := range diags {
		if d.Subject == nil {
			t.Errorf("no place: %s", d)
		}
		all = append(all, d.Detail)
	}
	return set, strings.Join(all, "\n")
}

func TestCeilings(t *testing.T) {
	t.Parallel()
	operator := flows.Ceilings{
		Limits:  run.Limits{Memory: 64 << 20, Output: 2 << 20, Log: 8 << 10, Fuel: 1000},
		Timeout: time.Minute, From: "flowhost.hcl",
	}
	for _, test := range []struct {
		arguments string
		ceilings  flows.Ceilings
		want      string // "" when it is allowed
	}{
		{"limits {\n output = \"900GiB\"\n}", flows.Ceilings{}, `"output" is 16MiB at most.`},
		{"limits {\n output = \"16MiB\"\n log = \"4MiB\"\n memory = \"4GiB\"\n fuel = 9223372036854775807\n}", flows.Ceilings{}, ""},
		{"limits {\n log = 4194305\n}", flows.Ceilings{}, `"log" is 4MiB at most.`},
		{"limits {\n memory = \"5GiB\"\n}", flows.Ceilings{}, `"memory" is 4GiB at most.`},
		{"timeout = \"880000h\"", flows.Ceilings{}, `"timeout" is 100 years at most`},
		{"retries = 2147483647", flows.Ceilings{}, "from 0 to 99999"},
		{"retry {\n attempts = 100001\n}", flows.Ceilings{}, "from 1 to 100000"},
		{"retry {\n max = \"2000000h\"\n}", flows.Ceilings{}, `"max" is 100 years at most`},
		{"limits {\n memory = \"65MiB\"\n}", operator, `The operator allows 64MiB for "memory" at most: max_memory in flowhost.hcl.`},
		{"limits {\n output = \"3MiB\"\n}", operator, `max_output in flowhost.hcl`},
		{"limits {\n output = \"17MiB\"\n}", operator, `"output" is 16MiB at most.`},
		{"limits {\n log = \"9KiB\"\n}", operator, `max_log in flowhost.hcl`},
		{"limits {\n fuel = 1001\n}", operator, `The operator allows 1000 for "fuel" at most: max_fuel`},
		{"timeout = \"61s\"", operator, `The operator allows 1m0s for "timeout" at most: max_timeout`},
		{"timeout = \"1m\"\nlimits {\n memory = \"64MiB\"\n output = \"2MiB\"\n log = \"8KiB\"\n fuel = 1000\n}", operator, ""},
	} {
		t.Run(test.arguments, func(t *testing.T) {
			t.Parallel()
			set, got := loadTask(t, test.arguments, test.ceilings)
			if (got == "") != (test.want == "") || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
			if got != "" {
				return
			}
			restored, diags := flows.Restore(t.Context(), set.Flow("f").Definition, flows.Options{Ceilings: operator})
			if diags.HasErrors() || restored.Flow("f") == nil {
				t.Errorf("a run that was accepted is refused: %v", diags)
			}
		})
	}
}

// Bounds of shared blocks are those of their tasks; the timeout of a whole run and
// of a wait are none of an attempt.
func TestCeilingsOfSharedBlocks(t *testing.T) {
	t.Parallel()
	name := filepath.Join(t.TempDir(), "a.hcl")
	text := `defaults {
  timeout = "2h"
}
plugin "p" {
  source = "./p.wasm"
  limits {
    log = "1MiB"
  }
}
flow "f" {
  timeout = "3h"
  wait "w" {
    duration = "1s"
    timeout  = "4h"
  }
  task "g" {
    flow    = flow.g
    timeout = "5h"
  }
}
flow "g" {
  defaults {
    timeout = "6h"
  }
  task "t" {
    plugin = plugin.p
  }
}
`
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	ceilings := flows.Ceilings{Limits: run.Limits{Log: 1 << 10}, Timeout: time.Hour, From: "flowhost.hcl"}
	_, diags := flows.Load(t.Context(), []string{name}, flows.Options{Ceilings: ceilings})
	var lines []int
	for _, d := range diags {
		lines = append(lines, d.Subject.Start.Line)
	}
	if fmt.Sprint(lines) != "[2 7 23]" {
		t.Errorf("problems in lines %v: %v", lines, diags)
	}
}

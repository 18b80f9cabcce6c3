package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// TestUnrulyPlugins lets plugins do their worst, all at the same time: each
// attempt gets its outcome, and the host serves the next run.
func TestUnrulyPlugins(t *testing.T) {
	t.Parallel()
	tests := []struct {
		function string // of unruly.wasm; empty for prose-cmd.wasm
		outcome  string
		code     string
		says     string
	}{
		{"trap", "trapped", "trap", "out of order"},
		{"spin", "timed_out", "timeout", "time is up"},
		{"quit", "trapped", "exit", "exit status 3"},
		{"overflow", "rejected", "output_size", "larger than"},
		{"hoard", "trapped", "memory", "memory"},
		{"chatter", "succeeded", "", ""},
		{"", "rejected", "output_format", "not JSON"},
	}
	var flows strings.Builder
	flows.WriteString(apiFlows)
	for i, test := range tests {
		plugin := `"./prose-cmd.wasm"`
		if test.function != "" {
			plugin = `"./unruly.wasm"` + "\n    function = \"" + test.function + `"`
		}
		fmt.Fprintf(&flows, `
flow "case_%d" {
  task "worst" {
    plugin  = %s
    timeout = "10s"
    limits {
      memory = "64MiB"
    }
  }
}
`, i, plugin)
	}
	text := strings.Replace(flows.String(), "function = \"spin\"\n    timeout = \"10s\"", "function = \"spin\"\n    timeout = \"300ms\"", 1)
	h := serve(t, writeFlows(t, text), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	for i, test := range tests {
		t.Run(fmt.Sprintf("%d %s", i, test.function), func(t *testing.T) {
			t.Parallel()
			c := c.with(t)
			r := c.result(fmt.Sprintf("fh.v1.api.run.case_%d", i), "{}")
			worst := r.task(t, "worst")
			if worst.Outcome != test.outcome || worst.Attempts != 1 {
				t.Errorf("%s after %d attempts, want %s after 1: %+v", worst.Outcome, worst.Attempts, test.outcome, worst.Error)
			}
			switch {
			case test.code == "":
				if r.State != "succeeded" || worst.Error != nil {
					t.Errorf("%+v", r)
				}
			case r.State != "failed" || worst.Error == nil || worst.Error.Code != test.code || !strings.Contains(worst.Error.Message, test.says):
				t.Errorf("run %s, %+v, want code %s and a message with %q", r.State, worst.Error, test.code, test.says)
			}
			if next := c.result("fh.v1.api.run.echo", `"next"`); string(next.Output) != `{"echo":"next"}` {
				t.Errorf("the next run: %+v", next)
			}
		})
	}
}

package e2e

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

const eventFlows = `
flow "line" {
  task "first" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = trigger.payload
  }

  task "left_out" {
    plugin   = "./unruly.wasm"
    function = "echo"
    when     = task.first.output.wanted
  }

  task "broken" {
    plugin   = "./unruly.wasm"
    function = "trap"
    after    = [task.first]
    retry {
      attempts = 2
      delay    = "1ms"
    }
  }

  on_failure {
    task "told" {
      plugin   = "./unruly.wasm"
      function = "echo"
      input    = error.code
    }
  }
}
`

// TestEvents follows a run in all ways that there are, and expects the same from
// each: all events in their order, and the record that the requester got.
func TestEvents(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, eventFlows), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	live := c.subscribe("fh.v1.run.line.>")
	r := c.result("fh.v1.api.run.line", `{"wanted":false}`)

	want := []string{
		"submitted", "started",
		"attempt_started first", "attempt_finished first succeeded",
		"task_ended left_out skipped",
		"attempt_started broken", "attempt_finished broken trapped",
		"attempt_started broken", "attempt_finished broken trapped",
		"attempt_started told", "attempt_finished told succeeded",
		"finished failed",
	}
	for name, source := range map[string]*events{
		"core subscription": live,
		"follow the run":    c.follow(`{"run":"` + r.Run + `"}`),
		"follow the flow":   c.follow(`{"flow":"line"}`),
		"follow everything": c.follow(`{}`),
	} {
		all := source.finished(r.Run)
		if diff := cmp.Diff(want, kinds(all)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		seen := map[string]bool{}
		for i, e := range all {
			if e.Run != r.Run || e.Flow != "line" || seen[e.ID] || i > 0 && e.At.Before(all[i-1].At) {
				t.Errorf("%s: event %d: %+v", name, i, e)
			}
			seen[e.ID] = true
		}
		if diff := cmp.Diff(r, all[len(all)-1].Record); diff != "" {
			t.Errorf("%s: the record is another one than that of the answer:\n%s", name, diff)
		}
	}
	if r.Error == nil || r.Error.Task != "broken" || string(r.task(t, "told").Output) != `"trap"` {
		t.Errorf("%+v %+v", r.Error, r.Tasks)
	}
}

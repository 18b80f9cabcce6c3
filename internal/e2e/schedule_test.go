package e2e

import (
	"testing"
	"time"
)

const scheduleFlows = `
flow "clock" {
  trigger "schedule" "tick" {
    every = "250ms"
  }

  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = { at = trigger.time }
  }
}
`

// TestSchedule sees runs come at times that are multiples of the interval, each
// once, also over a restart.
func TestSchedule(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, scheduleFlows), "--nats-listen", "127.0.0.1:0")
	const interval = 250 * time.Millisecond
	var last time.Time
	see := func() {
		t.Helper()
		follow := h.client().subscribe("fh.v1.run.clock.*.finished")
		for range 3 {
			r := follow.finished("")[0].Record
			at := r.Trigger.Time
			if r.State != "succeeded" || r.Trigger.Kind != "schedule" || r.Trigger.Name != "tick" {
				t.Errorf("%+v", r)
			}
			if !at.Equal(at.Truncate(interval)) || !at.After(last) {
				t.Errorf("a run for %s after one for %s", at, last)
			}
			if wait := time.Since(at); wait < 0 || wait > patience {
				t.Errorf("a run for %s came after %s", at, wait)
			}
			last = at
		}
	}
	see()
	h.stop()
	h.restart()
	see()
}

package e2e

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

const stopFlows = `
flow "naps" {
  task "first" {
    plugin   = "./unruly.wasm"
    function = "nap"
    input    = { milliseconds = 500 }
  }

  task "second" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = task.first.output
  }
}

flow "nap" {
  task "only" {
    plugin   = "./unruly.wasm"
    function = "nap"
    input    = { milliseconds = 500 }
  }
}

flow "hold" {
  task "hold" {
    plugin   = "./unruly.wasm"
    function = "hold"
    input    = { hold = true }
  }
}
`

// TestSoftStop stops a host while an attempt is under way: it ends and is
// recorded. The next task waits for the next process, also when somebody waits
// for the run: he is told so.
func TestSoftStop(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, stopFlows), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	follow := c.subscribe("fh.v1.run.naps.>")
	answer := c.later("fh.v1.api.run.naps", "{}", waiting())
	id := follow.attempt("first", 1).Run
	h.stop()
	h.await("stopped; open runs resume at the next start\" open_runs=1")
	stopped := time.Now()
	told := within(t, "an answer", answer)
	checkFault(t, told, "unavailable", "")
	if got := decode[struct{ Run string }](t, told.Data).Run; got != id {
		t.Errorf("the answer names run %q, want %q", got, id)
	}

	h.restart()
	all := h.client().follow(`{"run":"` + id + `"}`).finished(id)
	r := all[len(all)-1].Record
	first, second := r.task(t, "first"), r.task(t, "second")
	if r.State != "succeeded" || first.Attempts != 1 || first.Outcome != "succeeded" || second.Attempts != 1 {
		t.Errorf("%s: %+v %+v, want one attempt each", r.State, first, second)
	}
	if !first.StartedAt.Before(stopped) || second.StartedAt.Before(stopped) {
		t.Errorf("the first task started at %s, the second at %s, and the host stopped at %s", first.StartedAt, second.StartedAt, stopped)
	}
}

// TestSoftStopAnswers stops a host while somebody waits for a run that can end.
func TestSoftStopAnswers(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, stopFlows), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	follow := c.subscribe("fh.v1.run.nap.>")
	answer := c.later("fh.v1.api.run.nap", "{}", waiting())
	follow.attempt("only", 1)
	h.stop()
	if r := c.decodeRecord(within(t, "an answer", answer)); r.State != "succeeded" {
		t.Errorf("the answer is %+v", r)
	}
}

// TestHardStop sends a second signal to a host that waits for an attempt which
// does not end: the process ends at once, and the attempt is made again.
func TestHardStop(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, stopFlows), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	follow := c.subscribe("fh.v1.run.hold.>")
	answer := c.later("fh.v1.api.run.hold", "{}", waiting())
	id := follow.attempt("hold", 1).Run
	h.signal(syscall.SIGTERM)
	h.await("interrupt again to stop immediately\" running_attempts=1")
	for _, subject := range []string{"fh.v1.api.list", "fh.v1.api.run.nap", "fh.v1.api.unheard_of"} {
		for !strings.Contains(c.request(subject, "{}", nil).Header.Get("Nats-Service-Error"), "flowhost is stopping") {
			// the host has not come so far; what matters is that each request is answered
		}
		checkFault(t, c.request(subject, "{}", nil), "unavailable", "flowhost is stopping")
	}
	h.signal(syscall.SIGINT) // another one: the same could be the first, forwarded
	if code := h.wait(); code != 130 {
		t.Errorf("exit code %d, want 130", code)
	}
	h.await("stopped at once; open runs resume at the next start, interrupted attempts run again")
	checkFault(t, within(t, "an answer", answer), "unavailable", "")

	h.restart()
	all := h.client().follow(`{"run":"` + id + `"}`).finished(id)
	if hold := all[len(all)-1].Record.task(t, "hold"); hold.Outcome != "succeeded" || hold.Attempts != 2 {
		t.Errorf("%+v, want success at the second attempt", hold)
	}
}

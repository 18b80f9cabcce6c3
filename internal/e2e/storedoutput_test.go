package e2e

import (
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

const storedFlows = `
flow "big" {
  task "rows" {
    plugin   = "./reach.wasm"
    function = "rows"
    input    = 5000

    limits {
      output = "16MiB"
    }
  }

  wait "go" {
    signal = true
    after  = [task.rows]
  }

  task "sum" {
    plugin   = "./reach.wasm"
    function = "sum"
    input    = task.rows.output
    after    = [wait.go]

    grant {
      artifacts = true
    }
    retry {
      attempts = 2
      delay    = "1ms"
    }
  }

  output "sum" {
    value = task.sum.output
  }
  output "rows" {
    value = task.rows.output
  }
}

flow "opened" {
  task "rows" {
    plugin   = "./reach.wasm"
    function = "rows"
    input    = 5000

    limits {
      output = "16MiB"
    }
  }
  task "first" {
    plugin   = "./reach.wasm"
    function = "sum"
    input    = task.rows.output[0]
  }
}
`

// An output of 5 MiB becomes an artifact, which the next task reads as a stream: again after
// a crash of the host, and in a second attempt; and in a rerun of the task that takes it from
// the history.
func TestOutputLargerThanARecord(t *testing.T) {
	t.Parallel()
	t.Run("embedded", func(t *testing.T) {
		t.Parallel()
		h := serve(t, site(t, storedFlows, ""), "--nats-listen", "127.0.0.1:0")
		testLargeOutput(t, h, h.client)
		r := h.client().result("fh.v1.api.run.opened", "")
		if r.State != "failed" || !strings.Contains(r.Error.Message, "stored as an artifact, which expressions do not open") || r.Error.At == "" {
			t.Errorf("%s %+v", r.State, r.Error)
		}
	})
	t.Run("external", func(t *testing.T) {
		t.Parallel()
		e := newExternal(t)
		e.start()
		h := serve(t, site(t, storedFlows, ""), "--nats", e.url(externalUser+":"+externalPassword+"@"))
		testLargeOutput(t, h, func() *client { return connect(t, e.url(""), nats.UserInfo(externalUser, externalPassword)) })
	})
}

func testLargeOutput(t *testing.T, h *host, newClient func() *client) {
	t.Helper()
	c := newClient()
	id := c.submit("fh.v1.api.run.big", "")
	c.watched(id, func(r *record) bool { return r.task(t, "wait.go").State == "running" })
	h.kill()
	h.restart()
	c = newClient()
	c.watched(id, func(r *record) bool { return r.task(t, "wait.go").State == "running" })
	if answer := c.request("fh.v1.api.signal", fmt.Sprintf(`{"run":%q,"wait":"go"}`, id), nil); answer.Header.Get("Nats-Service-Error-Code") != "" {
		t.Fatalf("%s", answer.Data)
	}
	r := c.watched(id, func(r *record) bool { return r.State != "running" })
	const sum = `{"sum":12497500,"rows":{"$artifact":"sha256:`
	if r.State != "succeeded" || !strings.HasPrefix(string(r.Output), sum) || len(r.Output) > 300 || r.task(t, "sum").Attempts != 2 {
		t.Fatalf("%s %.300s %+v", r.State, r.Output, r.Error)
	}
	h.stop()
	h.restart()
	c = newClient()
	again := decode[struct{ Run string }](t, c.request("fh.v1.api.retry", fmt.Sprintf(`{"run":%q,"task":"sum"}`, id), nil).Data)
	if r = c.watched(again.Run, func(r *record) bool { return r.State != "running" && r.State != "pending" }); r.State != "succeeded" || !strings.HasPrefix(string(r.Output), sum) {
		t.Errorf("made again: %s %.300s %+v", r.State, r.Output, r.Error)
	}
}

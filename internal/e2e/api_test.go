package e2e

import (
	"context"
	"slices"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const apiFlows = `
flow "echo" {
  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = trigger.payload
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

func TestRequests(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, apiFlows), "--nats-listen", "127.0.0.1:0")
	c, operator := h.client(), h.operator()

	t.Run("exact payload", func(t *testing.T) {
		const body = `{"big":12345678901234567890,"exact":0.10,"text":"<é>"}`
		if got := string(c.with(t).result("fh.v1.api.run.echo", " "+body+"\n").Output); got != `{"echo":`+body+`}` {
			t.Error(got)
		}
	})
	t.Run("unknown flow", func(t *testing.T) {
		answer := c.with(t).request("fh.v1.api.run.nothing", "{}", nats.Header{"X-Case": {"unknown"}})
		checkFault(t, answer, "unknown_flow", `"nothing"`)
		operator.with(t).deadLetter("nothing", "X-Case", "unknown")
	})
	t.Run("wrong header", func(t *testing.T) {
		checkFault(t, c.with(t).request("fh.v1.api.run.echo", "{}", nats.Header{"Fh-Wait": {"long"}}), "header", "Fh-Wait")
	})
	t.Run("impatient, then cancel", func(t *testing.T) {
		c := c.with(t)
		follow := c.subscribe("fh.v1.run.hold.>")
		answer := c.request("fh.v1.api.run.hold", "{}", nats.Header{"Fh-Wait": {"10ms"}})
		checkFault(t, answer, "timeout", "goes on")
		id := decode[struct{ Run string }](t, answer.Data).Run
		follow.attempt("hold", 1)
		if answer := c.request("fh.v1.api.cancel", `{"run":"`+id+`","reason":"not needed"}`, nil); len(answer.Header) > 0 {
			t.Fatalf("cancel: %v %s", answer.Header, answer.Data)
		}
		all := follow.finished(id)
		last := all[len(all)-1].Record
		if last.State != "canceled" || last.Error.Outcome != "canceled" || last.task(t, "hold").State != "canceled" {
			t.Errorf("%+v %+v", last, last.Error)
		}
	})
}

// TestDurableTriggers publishes to the stream of triggers: the acknowledgement is
// the acceptance, and each message makes one run.
func TestDurableTriggers(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, apiFlows), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	publish := func(body, id string) *jetstream.PubAck {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ack, err := c.js.PublishMsg(ctx, &nats.Msg{Subject: "fh.v1.trigger.echo", Data: []byte(body)}, jetstream.WithMsgID(id))
		if err != nil {
			t.Fatal(err)
		}
		return ack
	}
	for _, m := range []struct {
		body, id string
		again    bool
	}{{`"a"`, "1", false}, {`"b"`, "2", false}, {`"a"`, "1", true}, {`"other"`, "2", true}, {`"last"`, "3", false}} {
		if ack := publish(m.body, m.id); ack.Stream != "FH_TRIGGERS" || ack.Duplicate != m.again {
			t.Errorf("%s with id %s: %+v", m.body, m.id, ack)
		}
	}

	// The stream is read in order: when the last message's run is submitted, all
	// runs are.
	payloads, open := []string{}, map[string]bool{}
	c.consume("fh.v1.run.echo.>").until("the end of all runs", func(e event) bool {
		open[e.Run] = true
		if e.Kind == "finished" {
			delete(open, e.Run)
			payloads = append(payloads, string(e.Record.Trigger.Payload))
		}
		return slices.Contains(payloads, `"last"`) && len(open) == 0
	})
	slices.Sort(payloads)
	if want := []string{`"a"`, `"b"`, `"last"`}; !slices.Equal(payloads, want) {
		t.Errorf("runs of %v, want %v", payloads, want)
	}
}

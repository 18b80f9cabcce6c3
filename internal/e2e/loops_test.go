package e2e

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const loopFlows = `
flow "loop" {
  trigger "message" "events" {
    stream  = "ECHO"
    durable = "loop"
    subject = "echo.>"
  }
  wait "a_moment" { duration = "0s" }
}
`

// maxLooped is more runs than two hops by events make, and far fewer than a loop
// without an end makes while this test waits.
const maxLooped = 500

// TestFlowsThatFeedOnTheirOwnEvents copies the events of runs to subjects of the
// operator's own, to which the flow listens: one run starts some others, and these
// start no more.
func TestFlowsThatFeedOnTheirOwnEvents(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, loopFlows), "--nats-listen", "127.0.0.1:0", "--durability", "relaxed")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	operator := h.operator()
	echo, err := operator.js.CreateStream(ctx, jetstream.StreamConfig{
		Name: "ECHO",
		Sources: []*jetstream.StreamSource{{
			Name: "FH_EVENTS", SubjectTransforms: []jetstream.SubjectTransformConfig{{Source: "fh.v1.events.>", Destination: "echo.>"}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	c := h.client()
	c.submit("fh.v1.api.run.loop", "{}")
	h.await("a message starts no run")
	for drained := 0; drained < 3; {
		time.Sleep(50 * time.Millisecond)
		if n := c.runs(); n > maxLooped {
			t.Fatalf("%d runs of the flow, and no end", n)
		}
		consumer, err := echo.Consumer(ctx, "loop")
		if err != nil {
			t.Fatal(err)
		}
		if info := consumer.CachedInfo(); info.NumPending+uint64(info.NumAckPending) == 0 && c.running() == 0 {
			drained++
		} else {
			drained = 0
		}
	}
	if n := c.runs(); n < 2 || n > maxLooped {
		t.Errorf("%d runs of the flow, want some, and not one for each event without end", n)
	}
}

// runs counts the runs that are known.
func (c *client) runs() int { return c.count(`{"limit":1000}`) }

// running counts those that have not ended.
func (c *client) running() int {
	return c.count(`{"limit":1000,"states":["pending","running"]}`)
}

func (c *client) count(query string) int {
	c.t.Helper()
	page := verb[struct {
		Runs []json.RawMessage `json:"runs"`
	}](c, "list", query, nil)
	return len(page.Runs)
}

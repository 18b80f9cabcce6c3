package e2e

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/nats-io/nats.go/jetstream"
)

const streamFlows = `
flow "sale" {
  trigger "message" "sold" {
    stream  = "SHOP"
    durable = "flows"
    subject = "shop.sold"
    filter  = trigger.payload.n != 3
  }

  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = trigger.payload
  }
}
`

// TestForeignStream reads a stream that another system owns, by a durable
// consumer: what is stored before the host starts, while it is down after a
// crash, and afterwards makes one run each, but for what the filter leaves out.
func TestForeignStream(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, streamFlows), "--nats-listen", "127.0.0.1:0")
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	publish := func(c *client, from, to int) {
		t.Helper()
		for n := from; n < to; n++ {
			if _, err := c.js.Publish(ctx, "shop.sold", fmt.Appendf(nil, `{"n":%d}`, n)); err != nil {
				t.Fatal(err)
			}
		}
	}
	operator := h.operator()
	if _, err := operator.js.CreateStream(ctx, jetstream.StreamConfig{Name: "SHOP", Subjects: []string{"shop.*"}}); err != nil {
		t.Fatal(err)
	}
	follow := h.client().subscribe("fh.v1.run.sale.>")
	publish(operator, 0, 10)
	follow.finished("")
	h.kill()
	h.restart()
	publish(h.operator(), 10, 20)

	// The stream is read in order: when the last message's run is submitted, all
	// runs are.
	var payloads, want []string
	open := map[string]bool{}
	h.client().follow(`{"flow":"sale"}`).until("the end of all runs", func(e event) bool {
		open[e.Run] = true
		if e.Kind == "finished" {
			delete(open, e.Run)
			payloads = append(payloads, string(e.Record.Trigger.Payload))
		}
		return slices.Contains(payloads, `{"n":19}`) && len(open) == 0
	})
	for n := range 20 {
		if n != 3 {
			want = append(want, fmt.Sprintf(`{"n":%d}`, n))
		}
	}
	slices.Sort(payloads)
	slices.Sort(want)
	if !slices.Equal(payloads, want) {
		t.Errorf("runs of %v, want %v", payloads, want)
	}
}

package e2e

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const waitFlows = `
flow "order" {
  wait "paid" {
    subject = "orders.${trigger.payload.id}.paid"
  }
  wait "sent" {
    signal = true
  }
  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = [wait.paid.payload, wait.sent.payload]
  }
}
`

// watched follows a run until what it is looked for is there.
func (c *client) watched(id string, ok func(*record) bool) *record {
	c.t.Helper()
	for seen, end := uint64(0), time.Now().Add(patience); time.Now().Before(end); {
		answer := decode[struct {
			Record  *record
			Version uint64
		}](c.t, c.request("fh.v1.api.watch", fmt.Sprintf(`{"run":%q,"seen":%d}`, id, seen), waiting()).Data)
		if answer.Record != nil && ok(answer.Record) {
			return answer.Record
		}
		seen = answer.Version
	}
	c.t.Fatalf("run %s is not as expected within %s", id, patience)
	return nil
}

// awaits returns when a run waits for both.
func (c *client) awaits(id string) {
	c.t.Helper()
	c.watched(id, func(r *record) bool {
		return r.task(c.t, "wait.paid").State == "running" && r.task(c.t, "wait.sent").State == "running"
	})
}

// wantEchoed signals the second wait, and expects the run's end.
func (c *client) wantEchoed(id, want string) {
	c.t.Helper()
	answer := c.request("fh.v1.api.signal", fmt.Sprintf(`{"run":%q,"wait":"sent","payload":{"n":2}}`, id), nil)
	if code := answer.Header.Get("Nats-Service-Error-Code"); code != "" {
		c.t.Fatalf("the signal is answered with %s %s", code, answer.Data)
	}
	r := c.watched(id, func(r *record) bool { return r.State != "running" && r.State != "pending" })
	if r.State != "succeeded" || string(r.Output) != want {
		c.t.Errorf("run %s is %s with %s, want %s", id, r.State, r.Output, want)
	}
}

// TestWaitForAMessage lets the user that other programs have publish what a run
// waits for.
func TestWaitForAMessage(t *testing.T) {
	t.Parallel()
	h := serve(t, writeFlows(t, waitFlows), "--nats-listen", "127.0.0.1:0")
	c := h.client()
	id, other := c.submit("fh.v1.api.run.order", `{"id":"a"}`), c.submit("fh.v1.api.run.order", `{"id":"b"}`)
	c.awaits(id)
	c.awaits(other)
	published := make(chan struct{})
	ended := make(chan struct{})
	go func() { // until the host listens: a core message is heard at most once
		defer close(ended)
		for {
			if err := c.nc.Publish("orders.a.paid", []byte(`{"n":1}`)); err != nil {
				return
			}
			select {
			case <-published:
				return
			case <-time.After(20 * time.Millisecond):
			}
		}
	}()
	c.wantEchoed(id, `{"echo":[{"n":1},{"n":2}]}`)
	close(published)
	<-ended
	r := c.decodeRecord(c.request("fh.v1.api.get", fmt.Sprintf(`{"run":%q}`, other), nil))
	if r.State != "running" || r.task(t, "wait.paid").State != "running" {
		t.Errorf("the other run is %+v", r)
	}
}

// TestWaitForAMessageOfAStream kills the host while a run waits: what a stream
// keeps meanwhile ends the wait.
func TestWaitForAMessageOfAStream(t *testing.T) {
	t.Parallel()
	e := newExternal(t)
	e.start()
	h := serve(t, writeFlows(t, waitFlows), "--nats", e.url(externalUser+":"+externalPassword+"@"))
	c := connect(t, e.url(""), nats.UserInfo(externalUser, externalPassword))
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if _, err := c.js.CreateStream(ctx, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders.>"}}); err != nil {
		t.Fatal(err)
	}
	publish := func(body string) {
		if _, err := c.js.Publish(ctx, "orders.a.paid", []byte(body)); err != nil {
			t.Fatal(err)
		}
	}
	publish(`"before"`)
	id := c.submit("fh.v1.api.run.order", `{"id":"a"}`)
	c.awaits(id)
	h.kill()
	publish(`not JSON`)
	publish(`{"n":1}`)
	h.restart()
	c.wantEchoed(id, `{"echo":[{"n":1},{"n":2}]}`)
}

package hostile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const noStop = "one message stops nobody else"

// openingFlows look into whatever comes.
const openingFlows = `
flow "looks" {
  trigger "message" "in" {
    subject = "attack.in"
    filter  = trigger.payload.name != ""
    params  = { name = trigger.payload.name }
  }
  param "name" { type = string }
  wait "moment" { duration = "1ms" }
}

flow "passes" {
  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = trigger.payload
  }
}

flow "opens" {
  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = { text = jsonencode(trigger.payload), same = trigger.payload == trigger.headers, fields = length(trigger.payload) }
  }
}

flow "chooses" {
  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = [for item in trigger.payload.value : item if item != 3]
  }
  task "each" {
    for_each = toset([for item in trigger.payload.value : jsonencode(item)])
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = distinct([each.value, each.key])
  }
}

flow "takes" {
  wait "said" { signal = true }
  task "echo" {
    plugin   = "./unruly.wasm"
    function = "echo"
    input    = jsonencode(wait.said.payload)
  }
}
`

// sizes of a message in the long form; the sample takes the middle one.
var messageSizes = []int{30 << 10, 1 << 20, 3 << 20, largest}

// messages is one message of each kind and size, in every way there is to send one.
func messages() []attack {
	inSample := map[string]bool{"digits": true, "objects": true}
	var all []attack
	for _, p := range payloads() {
		for _, size := range messageSizes {
			all = append(all, attack{
				name: fmt.Sprintf("message/%s/%s", p.name, bytesOf(size)), promise: noStop, flows: openingFlows,
				short: inSample[p.name] && size == 1<<20, peak: 1_000,
				run: func(ctx context.Context, s *stage) error { return everyWay(ctx, s, p.of(size)) },
			})
		}
	}
	for name, header := range hostileHeaders() {
		all = append(all, attack{
			name: "headers/" + name, promise: "headers are data", flows: openingFlows, short: name == "thousands",
			run: func(ctx context.Context, s *stage) error { return withHeader(ctx, s, header) },
		})
	}
	return all
}

func bytesOf(n int) string {
	if n >= 1<<20 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%d KiB", n>>10)
}

// everyWay sends a body to triggers, as requests and as a signal, each when the one
// before is answered: it is about what one message does.
func everyWay(ctx context.Context, s *stage, body string) error {
	nc, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	waiting, err := ask[ended](ctx, nc, "fh.v1.api.run.takes", "{}", nil)
	if err != nil {
		return err
	}
	one := func(subject, body string, header nats.Header) {
		b := batchOf(nc)
		b.send(subject, body, header)
		err = errors.Join(err, b.await(ctx))
	}
	for _, subject := range []string{"attack.in", "fh.v1.trigger.looks", "fh.v1.trigger.opens", "fh.v1.api.list"} {
		one(subject, body, nil)
	}
	for _, flow := range []string{"looks", "passes", "opens", "chooses"} {
		one("fh.v1.api.run."+flow, body, nats.Header{"Fh-Wait": {"20s"}})
	}
	one("fh.v1.api.signal", fmt.Sprintf(`{"run":%q,"wait":"said","payload":%s}`, waiting.Run, body), nil)
	return err
}

// batch is requests that are sent at once.
type batch struct {
	nc      *nats.Conn
	inbox   string
	answers chan *nats.Msg
	sent    int
	err     error
}

func batchOf(nc *nats.Conn) *batch {
	b := &batch{nc: nc, inbox: nc.NewInbox(), answers: make(chan *nats.Msg, 10_000)}
	_, b.err = nc.ChanSubscribe(b.inbox, b.answers)
	return b
}

// send sends one request. What is too large for the server is left out.
func (b *batch) send(subject, body string, header nats.Header) {
	err := b.nc.PublishMsg(&nats.Msg{Subject: subject, Reply: b.inbox, Data: []byte(body), Header: header})
	if errors.Is(err, nats.ErrMaxPayload) {
		return
	}
	b.sent++
	b.err = errors.Join(b.err, err)
}

// await waits until everything is answered, or for a fifth of the time of an attack: not
// everything is.
func (b *batch) await(ctx context.Context) error {
	late := time.NewTimer(longAttack / 5)
	defer late.Stop()
	for range b.sent {
		select {
		case <-b.answers:
		case <-late.C:
			return b.err
		case <-ctx.Done():
			return b.err
		}
	}
	return b.err
}

// hostileHeaders is what no honest client sends.
func hostileHeaders() map[string]nats.Header {
	thousands, same := nats.Header{}, nats.Header{}
	for i := range 20_000 {
		thousands.Set(fmt.Sprintf("X-%d", i), "v")
		same.Add("X-Same", "v")
	}
	megabyte := strings.Repeat("x", 1<<20)
	return map[string]nats.Header{
		"thousands":        thousands,
		"one thousandfold": same,
		"huge":             {"X-Huge": {megabyte}},
		"huge key":         {"Fh-Key": {megabyte}, "Nats-Msg-Id": {megabyte}},
		"params": {"Fh-Params": {`{"name":` + strings.Repeat("[", 1<<20) + `}`},
			"Fh-Wait": {"1s"}},
		"params of digits": {"Fh-Params": {`{"name":` + strings.Repeat("7", 1<<20) + `}`}},
		"waits":            {"Fh-Wait": {"9999999999999h"}, "Fh-Nothing": {"\x7f"}},
		"rollup":           {"Nats-Rollup": {"all"}},
		"expectations":     {"Nats-Expected-Last-Sequence": {"1"}, "Nats-Expected-Stream": {"FH_HISTORY"}, "Nats-Expected-Last-Msg-Id": {"x"}},
		"schedules":        {"Nats-Schedule": {"@every 1s"}, "Nats-Schedule-Target": {"fh.v1.journal.0"}, "Nats-TTL": {"1s"}},
		"marks": {"Nats-Marker-Reason": {"Purge"}, "KV-Operation": {"PURGE"}, "Nats-Batch-Id": {"a"}, "Nats-Batch-Sequence": {"1"},
			"Nats-Incr": {"1"}, "Nats-Service-Error-Code": {"500"}, "Status": {"503"}},
	}
}

// withHeader sends a small message with a header to every subject.
func withHeader(ctx context.Context, s *stage, header nats.Header) error {
	nc, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	b := batchOf(nc)
	for _, subject := range []string{"attack.in", "fh.v1.trigger.looks", "fh.v1.trigger.opens", "fh.v1.api.run.looks", "fh.v1.api.run.passes", "fh.v1.api.list"} {
		b.send(subject, `{"name":"x"}`, header)
	}
	return b.await(ctx)
}

// restarts is durable triggers that a host meets again when it starts: it decides
// them before anything else.
func restarts() []attack {
	var all []attack
	for _, p := range payloads() {
		all = append(all, attack{
			name: "restart/" + p.name, promise: "a stored message stops no start", flows: openingFlows, peak: 1_000, short: p.name == "digits after the point",
			prepare: func(ctx context.Context, s *stage) error { return storedThenKilled(ctx, s, p.of(1<<20)) },
			run:     func(context.Context, *stage) error { return nil },
		})
	}
	return all
}

// storedThenKilled stores messages, kills the host while it decides them and starts
// the next one.
func storedThenKilled(ctx context.Context, s *stage, body string) error {
	nc, err := s.client(ctx)
	if err != nil {
		return err
	}
	defer nc.Close()
	for _, flow := range []string{"looks", "opens"} {
		if _, err := ask[struct{ Stream string }](ctx, nc, "fh.v1.trigger."+flow, body, nil); err != nil {
			return err
		}
	}
	return s.restart(ctx)
}

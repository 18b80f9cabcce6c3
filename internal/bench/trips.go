package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
)

// trip is one way to ask something over NATS and wait for the answer.
type trip struct {
	name    string
	message *nats.Msg
	took    []time.Duration
}

// trips measures, in turn and one at a time: a request to a responder on another
// connection that does nothing, a message that is answered when its run is
// durable, and messages that are answered with the result of their run.
func (p *process) trips(ctx context.Context, n int) ([]trip, error) {
	responder := connect(p.data)
	if responder == nil {
		return nil, fmt.Errorf("no second connection to %s", p.nc.ConnectedUrl())
	}
	defer responder.Close()
	if _, err := responder.Subscribe("bench.bare", func(m *nats.Msg) { m.Respond(m.Data) }); err != nil {
		return nil, err
	}
	if err := responder.Flush(); err != nil {
		return nil, err
	}
	wait := nats.Header{"Fh-Wait": {"10s"}}
	all := []trip{
		{name: "bare request and reply", message: &nats.Msg{Subject: "bench.bare"}},
		{name: "trigger to accepted, tiny guest", message: &nats.Msg{Subject: "bench.tiny"}},
		{name: "trigger to result, tiny guest", message: &nats.Msg{Subject: "bench.tiny", Header: wait}},
		{name: "trigger to result, Go guest", message: &nats.Msg{Subject: "bench.go", Header: wait}},
	}
	for range n {
		for i := range all {
			if err := all[i].make(ctx, p.nc); err != nil {
				return nil, fmt.Errorf("%s: %w", all[i].name, err)
			}
		}
	}
	return all, nil
}

func (t *trip) make(ctx context.Context, nc *nats.Conn) error {
	begin := time.Now()
	reply, err := nc.RequestMsgWithContext(ctx, t.message)
	if err != nil {
		return err
	}
	t.took = append(t.took, time.Since(begin))
	if text := reply.Header.Get("Nats-Service-Error"); text != "" {
		return errors.New(text)
	}
	return nil
}

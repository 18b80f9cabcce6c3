package intake

import (
	"context"
	"encoding/json"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// Waits are those of an engine's runs. Its errors are those of a [Control].
type Waits interface {
	// Signal ends a wait with a payload, nil for null. A *run.RequestError refuses the
	// payload for good, and the wait continues.
	Signal(ctx context.Context, id run.ID, wait string, payload json.RawMessage) error
	// Approve decides a wait for an approval.
	Approve(ctx context.Context, id run.ID, wait string, a run.Approval) error
	// MessageWaits gives the waits for messages that have begun, and those that have
	// ended, since it was called before.
	MessageWaits() (begun, ended []run.OpenWait)
	// MessageWaitsChanged has something whenever MessageWaits would give more.
	MessageWaitsChanged() <-chan struct{}
}

// signal ends a wait.
func (d *requests) signal(hard context.Context, m inbound) {
	var body api.SignalRequest
	if d.decode(m, &body) {
		d.respond(m, d.done(body.Run, d.config.Waits.Signal(hard, body.Run, body.Wait, body.Payload)))
	}
}

// approve decides a wait for an approval.
func (d *requests) approve(hard context.Context, m inbound) {
	var body api.ApproveRequest
	if !d.decode(m, &body) {
		return
	}
	approval := run.Approval{Approved: *body.Approved, By: body.By, Reason: body.Reason, Payload: body.Payload}
	d.respond(m, d.done(body.Run, d.config.Waits.Approve(hard, body.Run, body.Wait, approval)))
}

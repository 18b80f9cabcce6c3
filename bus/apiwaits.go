package bus

import (
	"context"
	"encoding/json"

	"github.com/flowhost/flowhost/run"
)

// Waits are those of an engine's runs. Its errors are those of a [Control].
type Waits interface {
	// Signal ends a wait with a payload, nil for null. A *run.RequestError refuses the
	// payload for good, and the wait goes on.
	Signal(ctx context.Context, id run.ID, wait string, payload json.RawMessage) error
	// Approve decides a wait for an approval.
	Approve(ctx context.Context, id run.ID, wait string, a run.Approval) error
	// MessageWaits gives the waits for messages that have begun, and those that have
	// ended, since it was called before.
	MessageWaits() (begun, ended []run.OpenWait)
	// MessageWaitsChanged has something whenever MessageWaits would give more.
	MessageWaitsChanged() <-chan struct{}
}

type signalBody struct {
	runBody
	Wait    string          `json:"wait"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

func (b *signalBody) check() error {
	if b.Wait == "" {
		return run.Requestf(run.RequestParams, "wait: the name of a wait is missing")
	}
	return b.runBody.check()
}

// signal ends a wait.
func (d *desk) signal(hard context.Context, m inbound) {
	var body signalBody
	if d.understood(m, &body) {
		d.respond(m, d.done(body.Run, d.config.Waits.Signal(hard, body.Run, body.Wait, body.Payload)))
	}
}

type approveBody struct {
	signalBody
	Approved *bool  `json:"approved"` // without it nothing is decided
	By       string `json:"by,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

func (b *approveBody) check() error {
	if b.Approved == nil {
		return run.Requestf(run.RequestParams, "approved: true or false is missing")
	}
	return b.signalBody.check()
}

// approve decides a wait for an approval.
func (d *desk) approve(hard context.Context, m inbound) {
	var body approveBody
	if !d.understood(m, &body) {
		return
	}
	approval := run.Approval{Approved: *body.Approved, By: body.By, Reason: body.Reason, Payload: body.Payload}
	d.respond(m, d.done(body.Run, d.config.Waits.Approve(hard, body.Run, body.Wait, approval)))
}

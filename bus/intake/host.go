package intake

import (
	"context"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
)

// HostControl shows and controls the host as a whole.
type HostControl interface {
	// HostStatus must not block.
	HostStatus() api.HostStatus
	// PauseHost and ResumeHost return once the change is recorded: see the engine's.
	PauseHost(ctx context.Context, reason string) (pause run.Pause, began bool, err error)
	ResumeHost(ctx context.Context) (ended *run.Pause, err error)
	// Drain asks the host to shut down gracefully, and does not wait for that.
	Drain(by api.Requester)
}

// host answers with the state of the host.
func (d *requests) host(hard context.Context, m inbound) {
	if d.decode(m, new(api.HostRequest)) {
		d.read(hard, m, func(context.Context) answer { return answer{body: d.config.Host.HostStatus()} })
	}
}

// pauseHost pauses the host until it is resumed.
func (d *requests) pauseHost(hard context.Context, m inbound) {
	var body api.PauseHostRequest
	if !d.decode(m, &body) {
		return
	}
	pause, began, err := d.config.Host.PauseHost(hard, body.Reason)
	if err != nil {
		d.respond(m, d.faultOf("", err))
		return
	}
	d.respond(m, answer{body: api.PausedHost{Pause: pause, Began: began}})
}

// resumeHost resumes a paused host.
func (d *requests) resumeHost(hard context.Context, m inbound) {
	if !d.decode(m, new(api.HostRequest)) {
		return
	}
	ended, err := d.config.Host.ResumeHost(hard)
	if err != nil {
		d.respond(m, d.faultOf("", err))
		return
	}
	d.respond(m, answer{body: api.ResumedHost{Ended: ended}})
}

// drain answers before the host begins to shut down: afterwards nobody answers.
func (d *requests) drain(_ context.Context, m inbound) {
	if d.decode(m, new(api.HostRequest)) {
		d.respond(m, answer{body: d.config.Host.HostStatus()})
		d.config.Host.Drain(m.who)
	}
}

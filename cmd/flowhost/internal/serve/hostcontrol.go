package serve

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/run"
)

// errDrained is the cause of a graceful stop that somebody has requested over NATS.
var errDrained = errors.New("drained")

// hostControl shows and controls the host for requests over NATS. Whatever stops flows is
// logged.
type hostControl struct {
	engine  *engine.Engine
	started time.Time
	fault   func() *api.LoadFault
	drain   context.CancelCauseFunc // begins a graceful stop
	log     *slog.Logger
}

// HostStatus implements intake.HostControl.
func (c *hostControl) HostStatus() api.HostStatus {
	s := c.engine.Stats()
	return api.HostStatus{Started: c.started, Fault: c.fault(), Pause: s.Pause, Workers: s.Workers, InFlight: s.InFlight}
}

// PauseHost implements intake.HostControl.
func (c *hostControl) PauseHost(ctx context.Context, reason string) (run.Pause, bool, error) {
	pause, began, err := c.engine.PauseHost(ctx, reason)
	if began && err == nil {
		c.log.Warn("the host is paused: no attempt starts until it is resumed", "reason", reason)
	}
	return pause, began, err
}

// ResumeHost implements intake.HostControl.
func (c *hostControl) ResumeHost(ctx context.Context) (*run.Pause, error) {
	ended, err := c.engine.ResumeHost(ctx)
	if ended != nil && err == nil {
		c.log.Info("the host is resumed", "paused_since", ended.At, "reason", ended.Reason)
	}
	return ended, err
}

// Drain implements intake.HostControl.
func (c *hostControl) Drain(by api.Requester) {
	c.log.Info("a request drains the host", "user", by.User, "account", by.Account, "connection", by.Client)
	c.drain(errDrained)
}

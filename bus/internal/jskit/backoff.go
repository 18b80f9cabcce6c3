package jskit

import (
	"context"
	"log/slog"
	"time"
)

// Delays between attempts at what only others can make possible again.
const (
	backoffFirst = 20 * time.Millisecond
	backoffMax   = time.Second
)

// APITimeout bounds one request to the server.
const APITimeout = 5 * time.Second

// Backoff waits between attempts, longer each time, and logs once per state
// what it waits for. Log and What are required.
type Backoff struct {
	Log  *slog.Logger
	What string // what is being attempted, "append to the journal"

	state string // the last error that was logged
	since time.Time
	delay time.Duration
}

// Wait is called after an attempt failed with err. It returns the cause when
// ctx ends.
func (p *Backoff) Wait(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.state == "" {
		p.since = time.Now()
	}
	if state := err.Error(); state != p.state {
		p.state = state
		p.Log.Warn("waiting to "+p.What, "error", err)
	}
	p.delay = min(max(2*p.delay, backoffFirst), backoffMax)
	timer := time.NewTimer(p.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Done is called after an attempt succeeded.
func (p *Backoff) Done() {
	if p.state != "" {
		p.Log.Info("could "+p.What+" again", "after", time.Since(p.since).Round(time.Millisecond))
	}
	p.state, p.delay = "", 0
}

// Logger is the given logger, or one that discards everything.
func Logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

// ReconnectDelay is the time before an attempt to connect again.
func ReconnectDelay(attempts int) time.Duration {
	return min(backoffFirst<<min(attempts, 10), 2*backoffMax)
}

package bus

import (
	"context"
	"log/slog"
	"time"
)

// Delays between attempts at what only others can make possible again.
const (
	retryFirst = 20 * time.Millisecond
	retryMax   = time.Second

	// apiTimeout bounds one request to the server.
	apiTimeout = 5 * time.Second
)

// patience waits between attempts, longer each time, and says once per state
// what it waits for. The zero value of the unexported fields is ready for use.
type patience struct {
	log  *slog.Logger
	what string // what is being attempted, "append to the journal"

	state string // the last error that was logged
	since time.Time
	delay time.Duration
}

// wait is called after an attempt failed with err. It returns the cause when
// ctx ends.
func (p *patience) wait(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if p.state == "" {
		p.since = time.Now()
	}
	if state := err.Error(); state != p.state {
		p.state = state
		p.log.Warn("waiting to "+p.what, "error", err)
	}
	p.delay = min(max(2*p.delay, retryFirst), retryMax)
	timer := time.NewTimer(p.delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// done is called after an attempt succeeded.
func (p *patience) done() {
	if p.state != "" {
		p.log.Info("could "+p.what+" again", "after", time.Since(p.since).Round(time.Millisecond))
	}
	p.state, p.delay = "", 0
}

func logger(log *slog.Logger) *slog.Logger {
	if log == nil {
		return slog.New(slog.DiscardHandler)
	}
	return log
}

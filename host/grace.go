package host

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/flowhost/flowhost/run"
)

// grace is the time in which a call that is canceled may come to an end of its
// own. It belongs to the goroutine of the call, and nothing is set up for it: the
// first check or host function that finds the call canceled begins it.
type grace struct {
	host   *Host   // which grants it, and does not wait for it when it ends; nil: the guest cannot ask
	open   bool    // what was called runs: there is nothing to wind down before
	period *period // nil: it has not begun
}

// period is when a grace began, and when it is over.
type period struct{ since, until time.Time }

// begun reports whether the call is being canceled and the host has noticed.
func (g *grace) begun() bool { return g.period != nil }

// lasts reports whether a call whose context has ended may continue nevertheless.
func (g *grace) lasts(ctx context.Context) bool {
	if !g.begun() && !g.begin(ctx) {
		return false
	}
	return time.Now().Before(g.period.until) && g.host.life.Err() == nil
}

func (g *grace) begin(ctx context.Context) bool {
	if g.host == nil || g.host.config.Grace == 0 || !g.open || !errors.Is(context.Cause(ctx), run.ErrCanceled) {
		return false
	}
	now := time.Now()
	g.period = &period{since: now, until: now.Add(g.host.config.Grace)}
	if deadline, limited := ctx.Deadline(); limited && deadline.Before(g.period.until) {
		g.period.until = deadline
	}
	return true
}

// left is how many milliseconds the guest has, at least 1, and 0 as long as it
// is not asked to stop.
func (g *grace) left() int64 {
	if !g.begun() {
		return 0
	}
	return min(max(time.Until(g.period.until).Milliseconds(), 1), math.MaxInt32)
}

// over reports whether the guest has to end now.
func (inv *invocation) over(ctx context.Context) bool {
	return ended(ctx) && !inv.grace.lasts(ctx)
}

// pause unwinds a guest that has to end in the middle of a long host function.
func (inv *invocation) pause(ctx context.Context) {
	if inv.over(ctx) {
		panic(errInterrupted) // the instance recovers it
	}
}

// ended reports whether ctx has ended, or would have if the timer of its deadline
// were exact: a guest that reads its time is not a millisecond late.
func ended(ctx context.Context) bool {
	deadline, limited := ctx.Deadline()
	return ctx.Err() != nil || limited && !time.Now().Before(deadline)
}

// maxNap is how long a sleep takes at most in a call that is canceled: a guest
// that sleeps learns of it, and one that does not care cannot spin.
const maxNap = time.Millisecond

// shortSleep is a sleep in which it does not pay to let others compute.
const shortSleep = 100 * time.Microsecond

// sleep really waits, and moves the guest's time by exactly what it asked for.
// When the call is canceled it comes back early with its time up, and when the
// call is over it unwinds the guest.
func (inv *invocation) sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	own := timeOf(ctx)
	if d < shortSleep {
		own = nil
	}
	own.leave(run.WaitSleep)
	select {
	case <-timer.C:
		if own.back() != nil && inv.over(ctx) {
			panic(errInterrupted)
		}
	case <-ctx.Done():
		if inv.over(ctx) {
			panic(errInterrupted) // the instance recovers it
		}
		timer.Reset(min(d, maxNap))
		select {
		case <-timer.C:
		case <-inv.grace.host.life.Done():
		}
	}
	inv.clock.elapsed += d
}

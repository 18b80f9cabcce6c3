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
	asked  bool    // the guest has asked in this call whether it should stop
	period *period // nil: it has not begun
}

// askTime is the part of the grace of a guest that has not asked yet: one that works
// up to its first question, or that a sleep of the call returns to, asks within it and
// has the rest. One that never asks would use the rest for nothing.
const askTime = 100 * time.Millisecond

// period is when a grace began, when it is over for a guest that has not asked, and
// when it is over for one that has.
type period struct{ since, untilAsked, until time.Time }

// begun reports whether the call is being canceled and the host has noticed.
func (g *grace) begun() bool { return g.period != nil }

// lasts reports whether a call whose context has ended may continue nevertheless.
func (g *grace) lasts(ctx context.Context) bool {
	if !g.begun() && !g.begin(ctx) {
		return false
	}
	until := g.period.until
	if !g.asked {
		until = g.period.untilAsked
	}
	return time.Now().Before(until) && g.host.life.Err() == nil
}

func (g *grace) begin(ctx context.Context) bool {
	if g.host == nil || g.host.tuning.Load().Grace == 0 || !g.open || !errors.Is(causeOf(ctx), run.ErrCanceled) {
		return false
	}
	now := time.Now()
	until := now.Add(g.host.tuning.Load().Grace)
	if deadline, limited := ctx.Deadline(); limited && deadline.Before(until) {
		until = deadline
	}
	g.period = &period{since: now, untilAsked: now.Add(min(askTime, until.Sub(now))), until: until}
	return true
}

// ask is the guest's question whether it should stop: it answers how many milliseconds
// the guest has, at least 1, and 0 as long as the call may continue.
func (g *grace) ask() int64 {
	g.asked = true
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
	if t, ok := ctx.(*callTime); ok {
		return t.Err() != nil
	}
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
	inv.leaveThread()
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
	inv.keepThread()
}

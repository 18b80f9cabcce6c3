package gate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"golang.org/x/time/rate"

	"github.com/flowhost/flowhost/run/access"
)

// Gate bounds the operations of one connection.
type Gate struct {
	notDone string
	most    int
	places  turns

	rate *rate.Limiter // nil: unbounded
	pace turns         // one place: of the operation that waits for the rate

	// Guarded by the lock of the table that has the gate.
	key   Key
	users int
	used  uint64
}

// New makes a gate, with [access.DefaultConcurrency] if the limit has none. notDone begins the
// faults of operations that do not pass: "the mail was not sent".
func New(limit access.Limit, notDone string) *Gate {
	if limit.Concurrency <= 0 {
		limit.Concurrency = access.DefaultConcurrency
	}
	g := &Gate{notDone: notDone, most: limit.Concurrency, places: turns{free: limit.Concurrency}, pace: turns{free: 1}}
	if limit.Rate > 0 {
		if limit.Burst <= 0 {
			limit.Burst = int(math.Ceil(min(limit.Rate, 1<<20))) // those of one second
		}
		g.rate = rate.NewLimiter(rate.Limit(limit.Rate), limit.Burst)
	}
	return g
}

// Enter waits for a place for an operation of a flow. Without a fault, [Gate.Leave] must
// follow.
func (g *Gate) Enter(ctx context.Context, flow string) *access.Fault {
	err := g.places.enter(ctx, flow)
	if errors.Is(err, context.DeadlineExceeded) {
		return g.late(fmt.Sprintf("as many operations of the connection were under way all the time as it allows at once, %d: raise its bound, or start fewer", g.most))
	}
	return g.fault(err)
}

// Leave ends an operation that has entered.
func (g *Gate) Leave() { g.places.leave() }

// Start waits for the rate. It fails at once when the time that is left is too short.
func (g *Gate) Start(ctx context.Context, flow string) *access.Fault {
	if g.rate == nil {
		return nil
	}
	if deadline, ok := ctx.Deadline(); ok && g.wait(flow) > time.Until(deadline).Seconds() {
		return g.tooSlow(ctx)
	}
	if err := g.pace.enter(ctx, flow); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return g.tooSlow(ctx)
		}
		return g.fault(err)
	}
	defer g.pace.leave()
	if g.rate.Wait(ctx) != nil {
		return g.tooSlow(ctx)
	}
	return nil
}

// wait is how many seconds the next operation of a flow waits for the rate, at least.
func (g *Gate) wait(flow string) float64 {
	return (float64(g.pace.ahead(flow)+1) - g.rate.Tokens()) / float64(g.rate.Limit())
}

func (g *Gate) tooSlow(ctx context.Context) *access.Fault {
	if errors.Is(ctx.Err(), context.Canceled) {
		return g.fault(ctx.Err())
	}
	return g.late("the rate of the connection leaves no place for it in the time that is left: raise the rate, or give the task more time")
}

func (g *Gate) late(why string) *access.Fault {
	return &access.Fault{Code: access.CodeTimeout, Retryable: true, Message: g.notDone + ": " + why}
}

// fault is that of an error of turns other than a deadline.
func (g *Gate) fault(err error) *access.Fault {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errCrowded):
		return &access.Fault{Code: access.CodeTooLarge, Retryable: true,
			Message: fmt.Sprintf("%s: %d operations of the flow wait for the connection already: start fewer at once", g.notDone, MaxWaiting)}
	}
	return &access.Fault{Code: access.CodeCanceled, Retryable: true, Message: g.notDone + ": it was canceled while it waited for the connection"}
}

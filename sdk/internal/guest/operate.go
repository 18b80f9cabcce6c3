package guest

import (
	"context"
	"runtime"
)

// Reply is the answer to an operation that was performed.
type Reply struct {
	Head []byte // an object of JSON, see [Members]
	Body []byte
}

// Operator performs operations: a call does.
type Operator interface {
	Operate(ctx context.Context, kind string, head *Head, body []byte) (Reply, error)

	// Park adds so many goroutines, which may be negative, to those that do nothing while an
	// operation is under way. It may stop them.
	Park(goroutines int)
}

// Operate performs an operation. It fails with an *[abi.Fault], or with the error of ctx,
// which is the call or derived from it, when that ends before. A function that has seen the
// end of its call can still perform operations, to tidy up.
func (c *Call) Operate(ctx context.Context, kind string, head *Head, body []byte) (Reply, error) {
	if !c.is(ctx) && ctx.Done() != nil {
		return c.besides(ctx, kind, head, body)
	}
	windsDown, alone := c.state()
	if !alone {
		if windsDown {
			ctx = context.WithoutCancel(ctx)
		}
		return c.besides(ctx, kind, head, body)
	}
	reply, err := c.host.Alone(kind, head.JSON(), body, windsDown)
	if err == context.Canceled {
		return reply, c.Err()
	}
	return reply, err
}

// MaxInFlight is how many operations the goroutines of a call have under way at most: the
// others wait. A host takes 64; the rest is for those that Begin has started.
const MaxInFlight = 48

// besides performs an operation while other goroutines run.
func (c *Call) besides(ctx context.Context, kind string, head *Head, body []byte) (Reply, error) {
	select {
	case c.inFlight <- struct{}{}:
	default:
		select {
		case c.inFlight <- struct{}{}:
		case <-ctx.Done():
			return Reply{}, ctx.Err()
		}
	}
	defer func() { <-c.inFlight }()
	return c.host.Operate(ctx, kind, head.JSON(), body)
}

// Begin starts an operation whose answer [Call.Await] waits for, so that the function can
// compute meanwhile. Where other goroutines can, it waits by itself: Await would stop them.
func (c *Call) Begin(kind string, head *Head, body []byte) (Pending, error) {
	if _, alone := c.state(); !alone {
		reply, err := c.Operate(c, kind, head, body)
		return done(reply), err
	}
	return c.host.Begin(kind, head.JSON(), body)
}

// Await waits for an operation that Begin has started, closes it and sets it to nil, unless
// the call is canceled before: then it can be awaited once more, to tidy up. The body of the
// answer is in the array of into, if that is large enough.
func (c *Call) Await(p *Pending, into []byte) (Reply, error) {
	windsDown, _ := c.state()
	reply, err := (*p).Wait(into, windsDown)
	if err == context.Canceled {
		return reply, c.Err()
	}
	(*p).Close()
	*p = nil
	return reply, err
}

// state reports whether the function has seen the end of its call, and whether no goroutine
// has anything to do while it waits.
func (c *Call) state() (windsDown, alone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err != nil, runtime.NumGoroutine() <= c.idle
}

// Park implements [Operator].
func (c *Call) Park(goroutines int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idle += goroutines
}

// is reports whether ctx is the call, and not just derived from it: [sdk.Context] embeds it.
func (c *Call) is(ctx context.Context) bool {
	own, ok := ctx.(interface{ self() *Call })
	return ok && own.self() == c
}

func (c *Call) self() *Call { return c }

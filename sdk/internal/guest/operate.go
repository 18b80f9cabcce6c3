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
}

// Operate performs an operation. It fails with an *[abi.Fault], or with the error of ctx,
// which is the call or derived from it, when that ends before. A function that has seen the
// end of its call can still perform operations, to tidy up.
func (c *Call) Operate(ctx context.Context, kind string, head *Head, body []byte) (Reply, error) {
	own := ctx == context.Context(c)
	if !own && ctx.Done() != nil {
		return c.host.Operate(ctx, kind, head.JSON(), body)
	}
	windsDown := c.known() != nil
	if runtime.NumGoroutine() > c.goroutines {
		if windsDown {
			ctx = context.WithoutCancel(ctx)
		}
		return c.host.Operate(ctx, kind, head.JSON(), body)
	}
	reply, err := c.host.Alone(kind, head.JSON(), body, windsDown)
	if err == context.Canceled {
		return reply, c.Err()
	}
	return reply, err
}

// Begin starts an operation whose answer [Call.Await] waits for, so that the function can
// compute meanwhile. Where other goroutines can, it waits by itself: Await would stop them.
func (c *Call) Begin(kind string, head *Head, body []byte) (Pending, error) {
	if runtime.NumGoroutine() > c.goroutines {
		reply, err := c.Operate(c, kind, head, body)
		return done(reply), err
	}
	return c.host.Begin(kind, head.JSON(), body)
}

// Await waits for an operation that Begin has started, closes it and sets it to nil, unless
// the call is canceled before: then it can be awaited once more, to tidy up. The body of the
// answer is in the array of into, if that is large enough.
func (c *Call) Await(p *Pending, into []byte) (Reply, error) {
	reply, err := (*p).Wait(into, c.known() != nil)
	if err == context.Canceled {
		return reply, c.Err()
	}
	(*p).Close()
	*p = nil
	return reply, err
}

// known is why the call has ended, as far as the function has looked.
func (c *Call) known() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}

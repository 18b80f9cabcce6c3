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
		return c.host.Operate(ctx, kind, head.JSON(), body)
	}
	c.mu.Lock()
	windsDown, alone := c.err != nil, runtime.NumGoroutine() <= c.idle
	c.mu.Unlock()
	if !alone {
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

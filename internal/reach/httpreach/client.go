package httpreach

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/flowhost/flowhost/internal/reach/gate"
	"github.com/flowhost/flowhost/run/access"
)

// Resolver looks up names. [net.Resolver] is one.
type Resolver interface {
	LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error)
}

// Config is what a Client needs.
type Config struct {
	Secrets  access.Secrets // required
	Resolver Resolver       // default: the system's

	// Proxy is the URL of the operator's HTTP proxy for everything that leaves the host,
	// except by connections of the operator that name another one. Default: none.
	Proxy string
}

// maxTime bounds an operation whose caller has no deadline.
const maxTime = 10 * time.Minute

// Client performs operations.
type Client struct {
	config Config
	proxy  *proxy // of the operator; nil: none
	lanes  lanes
	gates  *gate.Table
	tokens tokens

	now   func() time.Time
	sleep func(context.Context, time.Duration) error

	mu     sync.Mutex
	closed bool
	cancel map[*context.CancelFunc]struct{} // of operations under way
	busy   sync.WaitGroup                   // of the same
}

// New returns a client. It fails when Config.Proxy is not the URL of a proxy.
func New(config Config) (*Client, error) {
	if config.Resolver == nil {
		config.Resolver = net.DefaultResolver
	}
	c := &Client{config: config, gates: gate.NewTable("the request was not sent"), now: time.Now, sleep: sleep, cancel: map[*context.CancelFunc]struct{}{}}
	if config.Proxy != "" {
		var err error
		if c.proxy, err = parseProxy(config.Proxy); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Close cancels the operations that are under way and waits for them.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	for cancel := range c.cancel {
		(*cancel)()
	}
	c.mu.Unlock()
	c.busy.Wait()
	c.lanes.close()
}

// Do performs an operation of kind [access.KindHTTP]. The connection is the one that the head
// names, nil for the grant and when there is none of that name.
func (c *Client) Do(ctx context.Context, caller access.Caller, policy access.Policy, connection *access.Connection, op *access.Operation) access.Answer {
	ctx, done, err := c.begin(ctx)
	if err != nil {
		return faultAnswer(asFault(err))
	}
	defer done()
	x := &exchange{client: c, caller: &caller, connection: connection, cover: newCover(connection), op: op}
	answer, err := x.do(ctx, &policy)
	if err != nil {
		return faultAnswer(x.cover.fault(asFault(err)))
	}
	return answer
}

// begin bounds an operation by Close.
func (c *Client) begin(ctx context.Context) (context.Context, func(), error) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
		return nil, nil, &access.Fault{Code: access.CodeCanceled, Message: "the request was not sent: the host is stopping", Retryable: true}
	}
	c.cancel[&cancel] = struct{}{}
	c.busy.Add(1)
	return ctx, func() {
		c.mu.Lock()
		delete(c.cancel, &cancel)
		c.mu.Unlock()
		cancel()
		c.busy.Done()
	}, nil
}

func (x *exchange) do(ctx context.Context, policy *access.Policy) (access.Answer, error) {
	c, connection := x.client, x.connection
	var err error
	if x.head, err = parseHead(x.op); err != nil {
		return access.Answer{}, err
	}
	if x.permit, err = newPermit(policy, connection, x.head.Connection); err != nil {
		return access.Answer{}, err
	}
	if x.target, err = x.permit.target(x.head.URL); err != nil {
		return access.Answer{}, refusedTarget(x.head.Method, err)
	}
	if err := x.permit.check(x.head.Method, x.target); err != nil {
		return access.Answer{}, err
	}
	if x.headers, err = x.requestHeaders(); err != nil {
		return access.Answer{}, err
	}
	proxy, err := c.proxyOf(ctx, x.caller, connection)
	if err != nil {
		return access.Answer{}, err
	}
	if x.lane, err = c.lanes.take(c, policy, connection, x.permit, proxy); err != nil {
		return access.Answer{}, err
	}
	defer c.lanes.give(x.lane)
	return x.perform(ctx)
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// errOf is the error of an operation whose context has ended, nil otherwise.
func errOf(ctx context.Context) error {
	switch err := ctx.Err(); {
	case err == nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded):
		return &access.Fault{Code: access.CodeTimeout, Message: "the request was not finished: its time is over", Retryable: true}
	default:
		return &access.Fault{Code: access.CodeCanceled, Message: "the request was not finished: it was canceled", Retryable: true}
	}
}

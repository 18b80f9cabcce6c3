package api

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/micro"

	"github.com/flowhost/flowhost/bus"
	"github.com/flowhost/flowhost/bus/internal/creds"
	"github.com/flowhost/flowhost/bus/internal/jskit"
	"github.com/flowhost/flowhost/run"
)

// DialConfig is the address of a host and the credentials for it. The zero value is a server at
// nats.DefaultURL without credentials.
type DialConfig struct {
	URL     string // "nats://host:4222", several with commas between; default nats.DefaultURL
	Creds   string // file with credentials, as nsc writes it, of a key's seed, or a context
	Inbox   string // prefix of the subjects on which answers come; default that of the context, or nats.InboxPrefix
	Context string // file with address and credentials in place of URL and Creds, such as an embedded server leaves: [natsd.ClientContext]
}

// Client asks a host for runs and about them, over NATS. Its methods are safe for
// concurrent use; each is one request, bounded by its context and by a time of its
// own.
type Client struct {
	nc  *nats.Conn
	url string

	mu     sync.Mutex
	asking map[*nats.Msg]context.CancelCauseFunc // requests under way; guarded by mu
}

// UnreachableError reports that a request reached no host.
type UnreachableError struct {
	URL    string
	Reason string
	Err    error // the error of NATS, nil when there is none
}

func (e *UnreachableError) Error() string { return e.Reason }

func (e *UnreachableError) Unwrap() error { return e.Err }

// AnswerError is an error that a host answered with.
type AnswerError struct {
	Code    string // one of the Code constants or of those of run.RequestError
	Message string
	Run     run.ID // the run that it is about, or that was accepted nevertheless
}

func (e *AnswerError) Error() string { return e.Message }

const dialTime = 5 * time.Second

// AnswerTime bounds the wait for an answer: it is longer than a host takes by itself.
const AnswerTime = 30 * time.Second

// Dial connects, once: a server that does not answer is an *UnreachableError, and a file
// with credentials that cannot be used a *bus.CredentialsError. The
// connection, once made, is made again when it breaks, until ctx ends. The caller
// closes the client.
func Dial(ctx context.Context, cfg DialConfig) (*Client, error) {
	d := &dialer{ctx: ctx}
	c := &Client{asking: map[*nats.Msg]context.CancelCauseFunc{}}
	url, opts := cfg.URL, []nats.Option{
		nats.Name("flowhost client"), nats.Timeout(dialTime), nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(), nats.CustomReconnectDelay(jskit.ReconnectDelay),
		nats.SetCustomDialer(d),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { c.disconnected() }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { c.forbidden(err) }),
	}
	login, err := cfg.login()
	if err != nil {
		return nil, err
	}
	if login.By != nil {
		opts = append(opts, login.By)
	}
	if cfg.Context != "" {
		url = login.URL
	}
	cfg.Inbox = cmp.Or(cfg.Inbox, login.Inbox)
	if cfg.Inbox != "" {
		opts = append(opts, nats.CustomInboxPrefix(cfg.Inbox))
	}
	if url == "" {
		url = nats.DefaultURL
	}
	nc, err := nats.Connect(url, opts...)
	if err != nil {
		return nil, refused(url, cmp.Or(d.failed(), err))
	}
	c.nc, c.url = nc, nc.ConnectedUrlRedacted()
	return c, nil
}

// login reads the credentials, as far as there are any.
func (cfg DialConfig) login() (creds.Login, error) {
	switch {
	case cfg.Context != "":
		return creds.ReadContext(cfg.Context)
	case cfg.Creds != "":
		return creds.Read(cfg.Creds)
	}
	return creds.Login{}, nil
}

var errDisconnected = errors.New("disconnected")

// disconnected ends the requests under way: nobody will answer them.
func (c *Client) disconnected() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, end := range c.asking {
		end(errDisconnected)
	}
}

// errForbidden ends a request that the server has not passed on.
var errForbidden = errors.New("the user may not publish there")

// forbidden ends the requests that the server refuses, which nobody will answer. Other
// errors of the connection need nothing: requests end with errors of their own.
func (c *Client) forbidden(err error) {
	if !errors.Is(err, nats.ErrPermissionViolation) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for msg, end := range c.asking {
		if strings.Contains(err.Error(), strconv.Quote(msg.Subject)) {
			end(errForbidden)
		}
	}
}

// request sends a message and gives the answer, unless the connection breaks first.
func (c *Client) request(ctx context.Context, msg *nats.Msg) (*nats.Msg, error) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	c.mu.Lock()
	c.asking[msg] = end
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		delete(c.asking, msg)
		c.mu.Unlock()
	}()
	if err := jskit.Usable(c.nc); err != nil {
		return nil, err
	}
	reply, err := c.nc.RequestMsgWithContext(ctx, msg)
	if err != nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return reply, err
}

func refused(url string, err error) error {
	reason := fmt.Sprintf("no NATS server answers at %s: %s", url, err)
	if errors.Is(err, nats.ErrAuthorization) {
		reason = fmt.Sprintf("the NATS server at %s does not let us in: %s", url, err)
	}
	return &UnreachableError{URL: url, Reason: reason, Err: err}
}

// dialer dials until its context ends, and keeps what nats.go forgets: why it could
// not.
type dialer struct {
	ctx context.Context

	mu   sync.Mutex
	last error // guarded by mu
}

// Dial implements nats.CustomDialer.
func (d *dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: dialTime}).DialContext(d.ctx, network, address)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.last = err
	return conn, err
}

func (d *dialer) failed() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}

// Close ends the connection.
func (c *Client) Close() { c.nc.Close() }

// URL is where the client is connected, without a password.
func (c *Client) URL() string { return c.url }

// ask sends a request of a verb and decodes the answer.
func (c *Client) ask(ctx context.Context, verb string, body, answer any) error {
	return c.askFor(ctx, 0, verb, body, answer)
}

// askFor lets the host wait so long for what is asked for.
func (c *Client) askFor(ctx context.Context, wait time.Duration, verb string, body, answer any) error {
	data, err := run.EncodeJSON(body)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	msg := &nats.Msg{Subject: bus.APISubject(verb), Data: data}
	if wait > 0 {
		msg.Header = nats.Header{bus.HeaderWait: {wait.String()}}
	}
	return c.exchange(ctx, wait, msg, answer)
}

// exchange sends a message to a host, which may wait so long, and decodes the answer.
func (c *Client) exchange(ctx context.Context, wait time.Duration, msg *nats.Msg, answer any) error {
	within, cancel := context.WithTimeout(ctx, wait+AnswerTime)
	defer cancel()
	reply, err := c.request(within, msg)
	switch {
	case err == nil:
		return understand(reply, answer)
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, nats.ErrMaxPayload):
		return &AnswerError{Code: run.RequestSize, Message: fmt.Sprintf("the request has %d bytes and a message may have %d", len(msg.Data), c.nc.MaxPayload())}
	case errors.Is(err, errForbidden):
		return &AnswerError{Code: CodeDenied, Message: fmt.Sprintf("the credentials for %s do not permit requests on %s", c.url, msg.Subject)}
	case errors.Is(err, nats.ErrNoResponders):
		return &UnreachableError{URL: c.url, Err: err, Reason: c.unanswered(ctx, msg.Subject)}
	case errors.Is(err, context.DeadlineExceeded):
		return &UnreachableError{URL: c.url, Err: err, Reason: fmt.Sprintf("the host at %s did not answer within %s; without permission to publish on %s it never does", c.url, wait+AnswerTime, msg.Subject)}
	}
	return &UnreachableError{URL: c.url, Err: err, Reason: fmt.Sprintf("the connection to %s is lost: %s", c.url, err)}
}

// unanswered is why nobody is subscribed to a request: each host answers for its flows.
func (c *Client) unanswered(ctx context.Context, subject string) string {
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if _, err := c.request(ctx, &nats.Msg{Subject: bus.APISubject(VerbFlows), Data: []byte(`{"flow":"-"}`)}); err != nil {
		return fmt.Sprintf("no host answers at %s: NATS is there, flowhost is not, or has not started yet", c.url)
	}
	return fmt.Sprintf("the host at %s is too old for this request: it does not know %s", c.url, subject)
}

func understand(reply *nats.Msg, answer any) error {
	if code := reply.Header.Get(micro.ErrorCodeHeader); code != "" {
		var body ErrorAnswer
		if err := json.Unmarshal(reply.Data, &body); err != nil || body.Error.Message == "" {
			body.Error.Message = reply.Header.Get(micro.ErrorHeader)
		}
		return &AnswerError{Code: code, Message: body.Error.Message, Run: body.Run}
	}
	if err := json.Unmarshal(reply.Data, answer); err != nil {
		return fmt.Errorf("the answer of the host is not understood: %w", err)
	}
	return nil
}

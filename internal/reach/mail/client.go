package mail

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/flowhost/flowhost/internal/reach/gate"
	"github.com/flowhost/flowhost/run/access"
)

// maxTime bounds an operation.
const maxTime = 5 * time.Minute

// Config is what a Client needs of the host.
type Config struct {
	Secrets access.Secrets // required

	// Dial opens the network connection to a server. It decides on addresses: c is the
	// connection as the flow sees it, with the private addresses that both author and
	// operator allow it. Required.
	Dial func(ctx context.Context, c *access.Connection, network, address string) (net.Conn, error)
}

// Client sends mail. It is safe for concurrent use.
type Client struct {
	config Config
	gates  *gate.Table

	mu      sync.Mutex
	busy    sync.WaitGroup
	cancels map[*context.CancelFunc]struct{} // of operations under way
	closed  bool
}

// New returns a Client.
func New(config Config) *Client {
	return &Client{config: config, gates: gate.NewTable("the mail was not sent"), cancels: map[*context.CancelFunc]struct{}{}}
}

// Close cancels the operations under way and waits for them. Later ones fail.
func (c *Client) Close() {
	c.mu.Lock()
	c.closed = true
	for cancel := range c.cancels {
		(*cancel)()
	}
	c.mu.Unlock()
	c.busy.Wait()
}

// Do performs an operation of kind [access.KindMail]. The connection is the one that the
// head names; nil when there is none of that name.
func (c *Client) Do(ctx context.Context, caller access.Caller, policy access.Policy, connection *access.Connection, op *access.Operation) access.Answer {
	ctx, done, fault := c.begin(ctx)
	if fault != nil {
		return failed(fault)
	}
	defer done()
	sent, fault := c.do(ctx, &caller, &policy, connection, op)
	if fault != nil {
		return failed(fault)
	}
	return access.Answer{Head: encode(sent)}
}

// notSent begins faults of operations.
const notSent = "the mail was not sent: "

// Test tries a connection as the given flow sees it: address, TLS and credentials. It sends no
// mail. Its error is an [access.Fault] with addresses, for the operator.
func (c *Client) Test(ctx context.Context, flow string, connection *access.Connection) error {
	ctx, done, fault := c.begin(ctx)
	if fault != nil {
		return fault
	}
	defer done()
	from, ok := parseAddress(connection.SMTP.From)
	if !ok {
		return invalid("from of connection %q is no address: write flows@example.com", connection.Name)
	}
	l, fault := c.credentials(ctx, flow, connection.SMTP)
	if fault != nil {
		return fault
	}
	_, fault = c.converse(ctx, connection, l, from.domain, func(s *session) (string, *access.Fault) {
		if err := s.Quit(); err != nil {
			return "", s.fault("QUIT", err)
		}
		return "", nil
	})
	if fault == nil {
		return nil
	}
	found := *fault.Full()
	found.Message = strings.TrimPrefix(found.Message, notSent)
	return &found
}

// answer is the head of an operation that was performed.
type answer struct {
	MessageID string `json:"message_id"`
	Reply     string `json:"reply"`
}

func failed(fault *access.Fault) access.Answer {
	return access.Answer{Head: encode(fault), Fault: fault}
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, a number and a flag
	}
	return text
}

// begin bounds an operation by time and by Close.
func (c *Client) begin(ctx context.Context) (context.Context, func(), *access.Fault) {
	ctx, cancel := context.WithTimeout(ctx, maxTime)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		cancel()
		return nil, nil, &access.Fault{Code: access.CodeCanceled, Message: "the mail was not sent: the host is shutting down", Retryable: true}
	}
	c.cancels[&cancel] = struct{}{}
	c.busy.Add(1)
	return ctx, func() {
		c.mu.Lock()
		delete(c.cancels, &cancel)
		c.mu.Unlock()
		cancel()
		c.busy.Done()
	}, nil
}

func (c *Client) do(ctx context.Context, caller *access.Caller, policy *access.Policy, connection *access.Connection, op *access.Operation) (*answer, *access.Fault) {
	h, fault := parseHead(op)
	if fault != nil {
		return nil, fault
	}
	if fault := permit(policy, connection, h.Connection); fault != nil {
		return nil, fault
	}
	m, fault := newMessage(h, op.Body, connection.SMTP, caller, op.Number, time.Now())
	if fault != nil {
		return nil, fault
	}
	login, fault := c.credentials(ctx, caller.Flow, connection.SMTP)
	if fault != nil {
		return nil, fault
	}
	g := c.gates.Take(gate.KeyOf(connection, caller.Flow))
	defer c.gates.Give(g)
	if fault := g.Enter(ctx, caller.Flow); fault != nil {
		return nil, fault
	}
	defer g.Leave()
	if fault := g.Start(ctx, caller.Flow); fault != nil {
		return nil, fault
	}
	reply, fault := c.send(ctx, connection, login, m)
	if fault != nil {
		return nil, fault
	}
	return &answer{MessageID: m.id, Reply: reply}, nil
}

// permit refuses what is not granted: the grant and the operator's block, if there is one,
// must both name the connection.
func permit(policy *access.Policy, connection *access.Connection, name string) *access.Fault {
	denied := func(reason, rule, add string) *access.Fault {
		return &access.Fault{Code: access.CodeDenied, Target: name, Rule: rule, Add: add,
			Message: fmt.Sprintf("connection %q refused: %s", name, reason)}
	}
	switch {
	case !slices.Contains(policy.Grants.Connections, name):
		return denied("the task's grant does not name it", "not granted", fmt.Sprintf("connections = [connection.%s]", name))
	case policy.Allow != nil && !access.Names(policy.Allow.Connections, name):
		return denied("the operator's allow block does not name it", fmt.Sprintf("allow %q", policy.Allow.Pattern), fmt.Sprintf("connections = [%q]", name))
	case connection == nil:
		fault := denied("no connection of that name is deployed: declare it and deploy", "not declared", "")
		fault.Retryable = true
		return fault
	case connection.Name != name:
		return invalid("the head of the mail states its connection in several ways: write the member connection once")
	case connection.SMTP == nil:
		return invalid("connection %q is of type %s, not smtp", name, connection.Type)
	}
	return nil
}

// login is what proves to the server who the host is.
type login struct{ user, password string }

// credentials resolves the user and password of a connection; nil: it has none.
func (c *Client) credentials(ctx context.Context, flow string, smtp *access.SMTPConnection) (*login, *access.Fault) {
	if smtp.User == (access.Value{}) && smtp.Password == (access.Value{}) {
		return nil, nil
	}
	var l login
	for _, v := range []struct {
		from *access.Value
		to   *string
	}{{&smtp.User, &l.user}, {&smtp.Password, &l.password}} {
		text, err := v.from.Resolve(ctx, c.config.Secrets, flow)
		if err != nil {
			return nil, asFault(err)
		}
		*v.to = text
	}
	return &l, nil
}

package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/flowhost/flowhost/internal/reach"
	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/internal/reach/mail"
	"github.com/flowhost/flowhost/internal/reach/sqlreach"
	"github.com/flowhost/flowhost/run/access"
)

// Problems of a connection.
const (
	problemDeclared    = "declaration" // it is not declared, or wrong
	problemAllowed     = "operator"    // the operator does not allow it to the flow
	problemSecret      = "secret"      // one cannot be read
	problemName        = "name"        // the host's name does not resolve
	problemAddress     = "address"     // the guard refuses the address
	problemUnreachable = "unreachable" // nothing answers there
	problemTLS         = "tls"         // the server is not recognized
	problemCredentials = "credentials" // the server refuses them
	problemDatabase    = "database"    // there is none of that name
	problemTimeout     = "timeout"     // the server did not answer in time
	problemRefused     = "refused"     // by the server, for another reason
)

// Probe is what a try of a connection has found. Its texts contain no secret.
type Probe struct {
	Connection string  `json:"connection"`
	Type       string  `json:"type,omitempty"`
	Flow       string  `json:"flow"` // as which it was tried
	Works      bool    `json:"works"`
	Reached    string  `json:"reached,omitempty"` // what it is connected to
	Problem    string  `json:"problem,omitempty"` // a word
	Message    string  `json:"message,omitempty"`
	Add        string  `json:"add,omitempty"` // the line that would allow it
	TookMS     float64 `json:"took_ms"`
}

// Test tries a connection as a flow sees it, with pools and clients of its own.
func (o *Outside) Test(ctx context.Context, flow, name string) Probe {
	started := time.Now()
	t := &trial{outside: o, flow: flow}
	t.Connection, t.Flow = name, flow
	fault := t.run(ctx).Full()
	if fault != nil {
		t.blame(fault)
	}
	t.Works = fault == nil
	t.Reached, t.Message, t.Add = o.masker.String(t.Reached), o.masker.String(t.Message), o.masker.String(t.Add)
	t.TookMS = float64(time.Since(started).Microseconds()) / 1000
	return t.Probe
}

// trial is a try of a connection under way.
type trial struct {
	Probe
	outside *Outside
	flow    string
	http    *httpreach.Client

	mu     sync.Mutex
	lookup error  // of a name, the last one
	failed error  // of the last dial
	dialed string // the address of the last connection to a server
}

// run tries the connection. It sets the problem if the fault alone does not say it.
func (t *trial) run(ctx context.Context) *access.Fault {
	o := t.outside
	attempt := o.reach.Open(access.Caller{Flow: t.flow}, access.Grants{Connections: []string{t.Connection}}, nil)
	defer attempt.Close()
	c, fault := attempt.Connection(t.Connection, access.TypeHTTP, access.TypePostgres, access.TypeMySQL, access.TypeSQLite, access.TypeSMTP)
	if fault != nil {
		t.Problem = problemDeclared
		if fault.Rule == access.RuleOperator {
			t.Problem = problemAllowed
		}
		return fault
	}
	t.Type = c.Type
	for _, name := range c.Secrets() {
		if err := o.CheckSecret(ctx, t.flow, name); err != nil {
			t.Problem = problemSecret
			return &access.Fault{Code: access.CodeUnreachable, Message: err.Error()}
		}
	}
	o.mu.Lock()
	proxy := o.current.Proxy
	o.mu.Unlock()
	var err error
	if t.http, err = httpreach.New(httpreach.Config{Secrets: o, Resolver: t, Proxy: proxy}); err != nil {
		t.Problem = problemDeclared
		return reach.FaultOf(err)
	}
	defer t.http.Close()
	switch {
	case c.HTTP != nil:
		return t.request(ctx, attempt.Policy(), c)
	case c.SMTP != nil:
		client := mail.New(mail.Config{Secrets: o, Dial: t.dial})
		defer client.Close()
		t.Reached = "mail server " + c.Target()
		if err := client.Test(ctx, t.flow, c); err != nil {
			return reach.FaultOf(err)
		}
		return nil
	}
	pools := sqlreach.New(sqlreach.Config{Secrets: o, Dial: t.dial})
	defer pools.Close()
	if err := pools.Test(ctx, t.flow, c); err != nil {
		return reach.FaultOf(err)
	}
	t.Reached = c.Type + " database " + c.Target()
	if t.dialed != "" {
		t.Reached += " at " + t.dialed
	}
	return nil
}

// request sends GET to the base URL. Whatever the connection's rules are, that is what a
// person tries first; each answer but a refusal of the credentials is a good one.
func (t *trial) request(ctx context.Context, policy access.Policy, c *access.Connection) *access.Fault {
	base, err := url.Parse(c.HTTP.BaseURL)
	if err != nil {
		t.Problem = problemDeclared
		return &access.Fault{Code: access.CodeInvalid, Message: "base_url is not a URL"}
	}
	path := base.EscapedPath()
	if path == "" {
		path = "/"
	}
	base.Path, base.RawPath = "", ""
	own, inner := *c, *c.HTTP
	inner.BaseURL, inner.Allow, inner.Redirects, inner.Retry = base.String(), []string{"GET /", "GET /**"}, 0, nil
	own.HTTP = &inner
	head, err := json.Marshal(map[string]string{"connection": c.Name, "url": path})
	if err != nil {
		return reach.FaultOf(err)
	}
	answer := t.http.Do(ctx, access.Caller{Flow: t.flow}, policy, &own, &access.Operation{Kind: access.KindHTTP, Head: head})
	if answer.Fault != nil && answer.Fault.Code != access.CodeTooLarge {
		return answer.Fault.Full()
	}
	t.Reached = c.HTTP.BaseURL
	if answer.Fault != nil { // there is a server
		return nil
	}
	var got struct {
		Status int `json:"status"`
	}
	if err := json.Unmarshal(answer.Head, &got); err != nil {
		return reach.FaultOf(err)
	}
	t.Reached += fmt.Sprintf(", which answers GET with %d %s", got.Status, http.StatusText(got.Status))
	if got.Status != http.StatusUnauthorized && got.Status != http.StatusForbidden {
		return nil
	}
	t.Problem = problemCredentials
	message := fmt.Sprintf("%s answers GET with %d %s: ", c.HTTP.BaseURL, got.Status, http.StatusText(got.Status))
	if c.HTTP.Auth == nil {
		message += "it asks for credentials, and the connection has no auth block"
	} else {
		message += "it refuses the credentials of the auth block, or what they may do"
	}
	return &access.Fault{Code: access.CodeRefused, Message: message}
}

// LookupNetIP implements httpreach.Resolver.
func (t *trial) LookupNetIP(ctx context.Context, network, host string) ([]netip.Addr, error) {
	found, err := net.DefaultResolver.LookupNetIP(ctx, network, host)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lookup = err
	return found, err
}

// dial is for the drivers of databases and mail.
func (t *trial) dial(ctx context.Context, c *access.Connection, network, address string) (net.Conn, error) {
	conn, err := t.http.Dial(ctx, c, network, address)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.failed = err; err == nil {
		t.dialed = conn.RemoteAddr().String()
	}
	return conn, err
}

// blame words what went wrong for the operator, who may see names and addresses that guests
// may not.
func (t *trial) blame(fault *access.Fault) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.Reached = ""
	t.Message, t.Add = fault.Message, fault.Add
	if t.Problem != "" {
		return
	}
	var unknown *net.DNSError
	if guard, ok := errors.AsType[*access.Fault](t.failed); ok {
		fault = guard // drivers leave out what only the DSN may name
	}
	text := fault.Message
	switch {
	case errors.As(t.lookup, &unknown):
		t.Problem = problemName
		t.Message = fmt.Sprintf("the name %s does not resolve: check its spelling and the DNS of this machine: %s", strings.TrimSuffix(unknown.Name, "."), unknown.Err)
	case fault.Rule == "private address":
		t.Problem, t.Message, t.Add = problemAddress, fault.Message, fault.Add
	case fault.Rule == "tls", strings.Contains(text, "x509: "), strings.Contains(text, "tls: "):
		t.Problem = problemTLS
	case fault.Code == access.CodeTimeout, fault.Code == access.CodeCanceled:
		t.Problem = problemTimeout
		t.Message = "the server did not answer in time: --timeout waits longer"
	case isCode(fault.Detail, "28P01", "28000", "1044", "1045"):
		t.Problem = problemCredentials
		t.Message = "the database refuses the user or the password of the DSN: check user and password, and that the server admits this user from this host, with or without TLS as the connection has it"
	case isCode(fault.Detail, "535", "534", "530"):
		t.Problem = problemCredentials
	case fault.Code == access.CodeNotFound: // the file of one
		t.Problem = problemDatabase
	case isCode(fault.Detail, "3D000", "1049"):
		t.Problem = problemDatabase
		t.Message = "the database server has no database of the name in the DSN: create it, or correct the name"
	case errors.Is(t.failed, syscall.ECONNREFUSED), strings.Contains(text, "connection refused"):
		t.Problem = problemUnreachable
		if t.failed != nil {
			t.Message = fmt.Sprintf("nothing accepts connections there: check the address, and that the server runs: %v", t.failed)
		}
	case fault.Code == access.CodeUnreachable:
		t.Problem = problemUnreachable
		if t.failed != nil {
			t.Message = t.failed.Error()
		} else if t.dialed != "" {
			t.Message = fmt.Sprintf("%s answers, but not as expected: %s", t.dialed, fault.Message)
		}
	case fault.Code == access.CodeInvalid:
		t.Problem = problemDeclared
	default:
		t.Problem = problemRefused
	}
}

// isCode reports whether what a server has answered begins with one of the codes.
func isCode(detail string, codes ...string) bool {
	first, _, _ := strings.Cut(detail, " ")
	for _, code := range codes {
		if first == code {
			return true
		}
	}
	return false
}

// CheckSecret reports why a secret, as a flow sees it, cannot be resolved. The error names the
// source, and never a value.
func (o *Outside) CheckSecret(ctx context.Context, flow, name string) error {
	return o.inUse.Load().secrets.Check(ctx, flow, name)
}

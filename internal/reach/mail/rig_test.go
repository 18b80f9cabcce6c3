package mail_test

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"net"
	"net/http/httptest"
	netmail "net/mail"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/emersion/go-sasl"
	"github.com/emersion/go-smtp"
	"go.uber.org/goleak"

	"github.com/flowhost/flowhost/internal/reach/mail"
	"github.com/flowhost/flowhost/run/access"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const password = "pl4nted-password"

// server is a mail server that keeps what it gets.
type server struct {
	*smtp.Server
	address string

	mu       sync.Mutex
	methods  []string // of authentication
	refuse   string   // a recipient
	mails    []received
	sessions int
}

type received struct {
	from, user string
	to         []string
	content    string
	encrypted  bool
}

// certificate is one for example.com and 127.0.0.1, and the file that vouches for it.
var certificate = sync.OnceValues(func() (tls.Certificate, []byte) {
	s := httptest.NewTLSServer(nil)
	defer s.Close()
	return s.TLS.Certificates[0], pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
})

// startServer starts a server that ends with the test.
func startServer(t *testing.T, change func(*server)) *server {
	t.Helper()
	s := &server{methods: []string{sasl.Plain}}
	s.Server = smtp.NewServer(s)
	pair, _ := certificate()
	s.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.Domain = "example.com"
	s.ErrorLog = quiet{}
	implicit := false
	if change != nil {
		change(s)
		implicit = s.Network == "implicit"
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.address = listener.Addr().String()
	if implicit {
		listener = tls.NewListener(listener, s.TLSConfig)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(listener) // ends with Close
	}()
	t.Cleanup(func() {
		_ = s.Close() // its sessions may have ended before
		_ = listener.Close()
		<-done
	})
	return s
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}
func (quiet) Println(...any)        {}

func (s *server) NewSession(c *smtp.Conn) (smtp.Session, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sessions++
	_, encrypted := c.TLSConnectionState()
	return &conversation{server: s, mail: received{encrypted: encrypted}, conn: c}, nil
}

func (s *server) got() []received {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.mails)
}

type conversation struct {
	*server
	conn *smtp.Conn
	mail received
}

func (c *conversation) AuthMechanisms() []string { return c.methods }

func (c *conversation) Auth(method string) (sasl.Server, error) {
	check := func(user, given string) error {
		if given != password {
			return &smtp.SMTPError{Code: 535, EnhancedCode: smtp.EnhancedCode{5, 7, 8}, Message: "wrong password " + given}
		}
		c.mail.user = user
		return nil
	}
	if method == sasl.Login {
		return &loginServer{check: check}, nil
	}
	return sasl.NewPlainServer(func(_, user, given string) error { return check(user, given) }), nil
}

// loginServer is AUTH LOGIN, which go-sasl has for clients only.
type loginServer struct {
	check func(user, password string) error
	given []string
}

func (l *loginServer) Next(response []byte) (challenge []byte, done bool, err error) {
	if response == nil && len(l.given) == 0 {
		return []byte("Username:"), false, nil
	}
	if l.given = append(l.given, string(response)); len(l.given) == 1 {
		return []byte("Password:"), false, nil
	}
	return nil, true, l.check(l.given[0], l.given[1])
}

func (c *conversation) Mail(from string, _ *smtp.MailOptions) error {
	c.mail.from = from
	return nil
}

func (c *conversation) Rcpt(to string, _ *smtp.RcptOptions) error {
	if to == c.refuse {
		return &smtp.SMTPError{Code: 550, EnhancedCode: smtp.EnhancedCode{5, 1, 1}, Message: "nobody here, said " + password}
	}
	c.mail.to = append(c.mail.to, to)
	return nil
}

func (c *conversation) Data(r io.Reader) error {
	content, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	c.mail.content = string(content)
	_, c.mail.encrypted = c.conn.TLSConnectionState()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.mails = append(c.mails, c.mail)
	return nil
}

func (c *conversation) Reset()        {}
func (c *conversation) Logout() error { return nil }

// rig is a Client with a connection to a server.
type rig struct {
	*mail.Client
	t          *testing.T
	server     *server
	connection *access.Connection
	policy     access.Policy
	caller     access.Caller

	mu    sync.Mutex
	dials []string
}

type vault map[string]string

func (v vault) Resolve(_ context.Context, _, name string) (string, error) {
	if value, ok := v[name]; ok {
		return value, nil
	}
	return "", &access.Fault{Code: access.CodeDenied, Message: "no secret " + name}
}

func newRig(t *testing.T, change func(*server)) *rig {
	t.Helper()
	r := &rig{t: t, server: startServer(t, change)}
	_, ca := certificate()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ca.pem"), ca, 0o600); err != nil {
		t.Fatal(err)
	}
	r.connection = &access.Connection{
		Name: "alerts", Type: access.TypeSMTP, Folder: dir, TLS: &access.TLS{CA: "ca.pem"},
		SMTP: &access.SMTPConnection{
			Host: "example.com", From: "Flows <flows@example.com>", To: []string{"ops@example.com", "*@Example.org"},
			User: access.Value{Text: "flows"}, Password: access.Value{Secret: "password"},
		},
	}
	r.policy.Grants.Connections = []string{"alerts"}
	r.caller = access.Caller{Flow: "orders", Run: "run-1", Task: "report", Key: "", Attempt: 1}
	r.Client = mail.New(mail.Config{Secrets: vault{"password": password}, Dial: r.dial})
	t.Cleanup(r.Close)
	return r
}

// dial leads to the server, whatever the address.
func (r *rig) dial(ctx context.Context, c *access.Connection, network, address string) (net.Conn, error) {
	r.mu.Lock()
	r.dials = append(r.dials, network+" "+address)
	r.mu.Unlock()
	if c != r.connection {
		return nil, errors.New("it is another connection")
	}
	return new(net.Dialer).DialContext(ctx, network, r.server.address)
}

func (r *rig) dialed() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.dials)
}

// do sends a mail.
func (r *rig) do(head, body string) access.Answer {
	r.t.Helper()
	a := r.Do(r.t.Context(), r.caller, r.policy, r.connection, &access.Operation{Number: 1, Kind: access.KindMail, Head: json.RawMessage(head), Body: []byte(body)})
	if text := string(a.Head) + string(a.Body); strings.Contains(text, password) {
		r.t.Errorf("the answer has the password: %s", text)
	}
	return a
}

// sends expects that a mail arrives, and returns it.
func (r *rig) sends(head, body string) (received, *netmail.Message) {
	r.t.Helper()
	before := len(r.server.got())
	if a := r.do(head, body); a.Fault != nil {
		r.t.Fatalf("%+v", a.Fault)
	}
	all := r.server.got()
	if len(all) != before+1 {
		r.t.Fatalf("%d mails arrived", len(all)-before)
	}
	m, err := netmail.ReadMessage(bytes.NewReader([]byte(all[before].content)))
	if err != nil {
		r.t.Fatal(err)
	}
	return all[before], m
}

// refuses expects a fault, and that nothing arrives.
func (r *rig) refuses(head, body, code, message string) *access.Fault {
	r.t.Helper()
	before := len(r.server.got())
	a := r.do(head, body)
	if a.Fault == nil || a.Fault.Code != code || !strings.Contains(a.Fault.Full().Message, message) {
		r.t.Errorf("%s: %+v, want %s with %q", head, a.Fault, code, message)
		return &access.Fault{}
	}
	if n := len(r.server.got()); n != before {
		r.t.Errorf("%s: %d mails arrived", head, n-before)
	}
	return a.Fault
}

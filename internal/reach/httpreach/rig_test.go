package httpreach_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/run/access"
)

// names is a resolver that counts.
type names struct {
	mu      sync.Mutex
	table   map[string]func() []netip.Addr
	lookups atomic.Int64
}

func (n *names) LookupNetIP(_ context.Context, _, host string) ([]netip.Addr, error) {
	n.lookups.Add(1)
	n.mu.Lock()
	defer n.mu.Unlock()
	if answer := n.table[strings.TrimSuffix(host, ".")]; answer != nil {
		return answer(), nil
	}
	return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
}

func (n *names) set(host string, addresses ...string) {
	all := make([]netip.Addr, len(addresses))
	for i, a := range addresses {
		all[i] = netip.MustParseAddr(a)
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.table[host] = func() []netip.Addr { return all }
}

// vault has the values of secrets.
type vault map[string]string

func (v vault) Resolve(_ context.Context, _, name string) (string, error) {
	if value, ok := v[name]; ok {
		return value, nil
	}
	return "", &access.Fault{Code: access.CodeDenied, Message: "secret " + name + " cannot be resolved", Rule: "secret"}
}

const apiHost = "api.example.com"

// rig is a client, and a server behind the name apiHost that author and operator have opened.
type rig struct {
	testing.TB
	client   *httpreach.Client
	names    *names
	secrets  vault
	server   *httptest.Server
	port     string
	accepted *atomic.Int64 // network connections to the server
	requests atomic.Int64
	policy   access.Policy
	caller   access.Caller
	number   atomic.Int64
}

func newRig(t testing.TB, handler http.HandlerFunc) *rig {
	t.Helper()
	r := &rig{TB: t, names: &names{table: map[string]func() []netip.Addr{}}, secrets: vault{}}
	r.server, r.accepted = serve(t, "127.0.0.1:0", func(w http.ResponseWriter, request *http.Request) {
		r.requests.Add(1)
		if handler != nil {
			handler(w, request)
		}
	})
	r.port = portOf(r.server)
	r.names.set(apiHost, "127.0.0.1")
	r.client = r.newClient(httpreach.Config{})
	r.caller = access.Caller{Flow: "orders", Run: "01JRUN", Task: "price", Key: "eu", Attempt: 1}
	r.policy = access.Policy{
		Grants: access.Grants{Connections: []string{"api"}, HTTP: r.grant()},
		Allow:  &access.Allow{Pattern: "*", Connections: []string{"*"}, HTTP: r.grant(), Private: []string{r.address()}, From: "flowhost.hcl:12"},
	}
	return r
}

// newClient makes a client that ends with the test.
func (r *rig) newClient(config httpreach.Config) *httpreach.Client {
	r.Helper()
	config.Secrets, config.Resolver = r.secrets, r.names
	c, err := httpreach.New(config)
	if err != nil {
		r.Fatal(err)
	}
	r.Cleanup(c.Close)
	return c
}

func (r *rig) address() string { return "127.0.0.1:" + r.port }

// origin is that of the server.
func (r *rig) origin() string { return "http://" + apiHost + ":" + r.port }

func (r *rig) grant() *access.HTTPGrant {
	return &access.HTTPGrant{Allow: []string{"GET,HEAD,POST,PUT,PATCH,DELETE " + r.origin() + "/**"}, Private: []string{r.address()}, MaxBody: 1 << 20}
}

// connection is one to the server, as a flow file has it.
func (r *rig) connection() *access.Connection {
	return &access.Connection{
		Name: "api", Type: access.TypeHTTP, Private: []string{r.address()},
		HTTP: &access.HTTPConnection{BaseURL: r.origin(), Allow: []string{"GET,HEAD,POST,PUT,DELETE /**"}},
	}
}

type fields map[string]any

// do performs an operation. Its connection may be nil.
func (r *rig) do(connection *access.Connection, head fields, body string) access.Answer {
	r.Helper()
	return r.doContext(r.Context(), connection, head, body)
}

func (r *rig) doContext(ctx context.Context, connection *access.Connection, head fields, body string) access.Answer {
	r.Helper()
	if connection != nil && head["connection"] == nil {
		head["connection"] = connection.Name
	}
	text, err := json.Marshal(head)
	if err != nil {
		r.Fatal(err)
	}
	return r.client.Do(ctx, r.caller, r.policy, connection, &access.Operation{
		Number: int(r.number.Add(1)), Kind: access.KindHTTP, Head: text, Body: []byte(body),
	})
}

// get performs a GET under the grant.
func (r *rig) get(url string) access.Answer {
	r.Helper()
	return r.do(nil, fields{"url": url}, "")
}

// untouched fails the test if anything was looked up or dialed.
func (r *rig) untouched() {
	r.Helper()
	if n := r.names.lookups.Load(); n != 0 {
		r.Errorf("%d names were looked up", n)
	}
	r.undialed()
}

func (r *rig) undialed() {
	r.Helper()
	if n := r.accepted.Load(); n != 0 {
		r.Errorf("%d network connections were made", n)
	}
}

type response struct {
	Status  int
	Headers http.Header
	URL     string
	Body    string
}

// wantStatus fails the test unless the operation was answered with that status.
func wantStatus(t testing.TB, answer access.Answer, status int) response {
	t.Helper()
	if answer.Fault != nil {
		t.Fatalf("fault %+v, want status %d", *answer.Fault, status)
	}
	got := response{Body: string(answer.Body)}
	if err := json.Unmarshal(answer.Head, &got); err != nil {
		t.Fatal(err)
	}
	if got.Status != status {
		t.Fatalf("status %d %q, want %d", got.Status, got.Body, status)
	}
	return got
}

// wantFault fails the test unless the operation failed with that code, and with each of the
// parts in its rule or message for the operator.
func wantFault(t testing.TB, answer access.Answer, code string, parts ...string) *access.Fault {
	t.Helper()
	f := answer.Fault.Full()
	if f == nil {
		t.Fatalf("answer %s, want the fault %s", answer.Head, code)
	}
	if f.Code != code {
		t.Fatalf("fault %+v, want code %s", *f, code)
	}
	for _, part := range parts {
		if !strings.Contains(f.Rule+"\n"+f.Message, part) {
			t.Errorf("fault %+v, want %q in it", *f, part)
		}
	}
	if code == access.CodeDenied && f.Rule == "" {
		t.Errorf("fault %+v names no rule", *f)
	}
	var head access.Fault
	guest := *answer.Fault
	guest.Inside = nil
	if err := json.Unmarshal(answer.Head, &head); err != nil || head != guest || len(answer.Body) != 0 {
		t.Errorf("head %s, body %q, want the fault alone", answer.Head, answer.Body)
	}
	return f
}

// serve starts a server at an address and counts its network connections.
func serve(t testing.TB, address string, handler http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	counting := &countingListener{Listener: listener}
	s := httptest.NewUnstartedServer(handler)
	_ = s.Listener.Close()
	s.Listener = counting
	s.Config.ErrorLog = silent
	s.Start()
	t.Cleanup(s.Close)
	return s, &counting.accepted
}

// silent is the log of servers: what clients of these tests do is not worth a line.
var silent = log.New(io.Discard, "", 0)

type countingListener struct {
	net.Listener
	accepted atomic.Int64
}

func (l *countingListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err == nil {
		l.accepted.Add(1)
	}
	return conn, err
}

// serveRaw answers each network connection with what a function does to it, after the head of
// a request.
func serveRaw(t testing.TB, answer func(net.Conn)) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	ended := make(chan struct{})
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { <-ended; _ = conn.Close() })
			all.Go(func() {
				if readHead(conn) == nil {
					answer(conn)
				}
				_ = conn.Close()
			})
		}
	})
	t.Cleanup(func() { _ = listener.Close(); close(ended); all.Wait() })
	return listener.Addr().String()
}

func readHead(conn net.Conn) error {
	var head []byte
	for one := make([]byte, 1); !strings.HasSuffix(string(head), "\r\n\r\n"); {
		if _, err := conn.Read(one); err != nil {
			return err
		}
		if head = append(head, one[0]); len(head) > 1<<20 {
			return errors.New("a head without end")
		}
	}
	return nil
}

// open lets the grant reach an address, in place of the server.
func (r *rig) open(address string) {
	port := netip.MustParseAddrPort(address).Port()
	r.port = strconv.Itoa(int(port))
	r.policy.Grants.HTTP, r.policy.Allow.HTTP, r.policy.Allow.Private = r.grant(), r.grant(), []string{address}
}

func portOf(s *httptest.Server) string {
	return strconv.Itoa(s.Listener.Addr().(*net.TCPAddr).Port)
}

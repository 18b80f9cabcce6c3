package httpreach_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/run/access"
)

// secure is a rig whose server speaks TLS, with files of its certificates.
type secure struct {
	*rig
	dir string
}

func newSecure(t testing.TB, handler http.HandlerFunc) *secure {
	t.Helper()
	s := &secure{rig: newRig(t, handler), dir: t.TempDir()}
	plain := s.server.Config.Handler
	tlsServer := httptest.NewUnstartedServer(plain)
	tlsServer.TLS = &tls.Config{ClientAuth: tls.RequestClientCert}
	tlsServer.EnableHTTP2 = true
	counting := &countingListener{Listener: tlsServer.Listener}
	tlsServer.Listener, s.accepted = counting, &counting.accepted
	tlsServer.Config.ErrorLog = silent
	tlsServer.StartTLS()
	t.Cleanup(tlsServer.Close)
	s.server, s.port = tlsServer, portOf(tlsServer)
	s.write("ca.pem", "CERTIFICATE", tlsServer.Certificate().Raw)
	s.policy.Grants.HTTP, s.policy.Allow.HTTP = s.grant(), s.grant()
	s.policy.Allow.Private = []string{s.address()}
	return s
}

func (s *secure) write(name, kind string, content []byte) {
	s.Helper()
	text := pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content})
	if err := os.WriteFile(filepath.Join(s.dir, name), text, 0o600); err != nil {
		s.Fatal(err)
	}
}

// connection recognizes the server, whose certificate is for example.com.
func (s *secure) connection() *access.Connection {
	c := s.rig.connection()
	c.HTTP.BaseURL = "https://" + apiHost + ":" + s.port
	c.Folder = s.dir
	c.TLS = &access.TLS{CA: "ca.pem", ServerName: "example.com"}
	return c
}

func TestTLS(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(*access.Connection)
		code   string // "": it succeeds
	}{
		"CA and server name":      {change: func(*access.Connection) {}},
		"no CA":                   {func(c *access.Connection) { c.TLS.CA = "" }, access.CodeUnreachable},
		"no settings":             {func(c *access.Connection) { c.TLS = nil }, access.CodeUnreachable},
		"another server name":     {func(c *access.Connection) { c.TLS.ServerName = "other.org" }, access.CodeUnreachable},
		"missing file":            {func(c *access.Connection) { c.TLS.CA = "none.pem" }, access.CodeInvalid},
		"file outside":            {func(c *access.Connection) { c.TLS.CA = "../ca.pem" }, access.CodeInvalid},
		"absolute file":           {func(c *access.Connection) { c.TLS.CA = filepath.Join(c.Folder, "ca.pem") }, access.CodeInvalid},
		"the operator's absolute": {func(c *access.Connection) { c.Operator, c.TLS.CA = true, filepath.Join(c.Folder, "ca.pem") }, ""},
		"no certificate inside":   {func(c *access.Connection) { c.TLS.CA = "key.pem" }, access.CodeInvalid},
		"key without certificate": {func(c *access.Connection) { c.TLS.Key = "key.pem" }, access.CodeInvalid},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSecure(t, nil)
			s.write("key.pem", "EC PRIVATE KEY", []byte("x"))
			c := s.connection()
			test.change(c)
			answer := s.do(c, fields{"url": "/"}, "")
			if test.code == "" {
				wantStatus(t, answer, 200)
				return
			}
			wantFault(t, answer, test.code)
			if n := s.requests.Load(); n != 0 {
				t.Errorf("the server got %d requests", n)
			}
		})
	}
}

func TestHTTP2(t *testing.T) {
	t.Parallel()
	s := newSecure(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	if got := wantStatus(t, s.do(s.connection(), fields{"url": "/"}, ""), 200); got.Body != "HTTP/2.0" {
		t.Errorf("got %s", got.Body)
	}
}

// TestHeadersOfHTTP2 has the bounds of the other protocol, which ends the network connection.
func TestHeadersOfHTTP2(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func(http.Header){
		"1 MB of one": func(h http.Header) { h.Set("X-A", strings.Repeat("x", 1<<20)) },
		"32 769 headers": func(h http.Header) {
			for i := range 32_769 {
				h.Set(fmt.Sprint("X-", i), "1")
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSecure(t, func(w http.ResponseWriter, _ *http.Request) { write(w.Header()) })
			wantFault(t, s.do(s.connection(), fields{"url": "/"}, ""), access.CodeUnreachable)
		})
	}
}

func TestClientCertificate(t *testing.T) {
	t.Parallel()
	s := newSecure(t, func(w http.ResponseWriter, r *http.Request) {
		for _, c := range r.TLS.PeerCertificates {
			_, _ = io.WriteString(w, c.SerialNumber.String())
		}
	})
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(4711), NotAfter: time.Now().Add(time.Hour)}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	s.write("cert.pem", "CERTIFICATE", cert)
	s.write("key.pem", "EC PRIVATE KEY", private)
	c := s.connection()
	c.TLS.Cert, c.TLS.Key = "cert.pem", "key.pem"
	if got := wantStatus(t, s.do(c, fields{"url": "/"}, ""), 200); got.Body != "4711" {
		t.Errorf("the server saw the certificate %q", got.Body)
	}
}

// newProxy is a proxy that connects everything to one address and remembers what it is asked.
func newProxy(t testing.TB, to string) (proxy *httptest.Server, asked func() []string) {
	t.Helper()
	var mu sync.Mutex
	var all []string
	proxy, _ = serve(t, "127.0.0.1:0", func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, r.Method+" "+r.Host+" "+r.Header.Get("Proxy-Authorization"))
		mu.Unlock()
		if r.Method != http.MethodConnect {
			return
		}
		up, err := net.Dial("tcp", to)
		if err != nil {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		defer up.Close()
		down, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			return
		}
		defer down.Close()
		_, _ = io.WriteString(down, "HTTP/1.1 200 OK\r\n\r\n")
		var both sync.WaitGroup
		both.Go(func() { _, _ = io.Copy(up, down); _ = up.Close() })
		_, _ = io.Copy(down, up)
		_ = down.Close()
		both.Wait()
	})
	return proxy, func() []string {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func TestProxyOfConnection(t *testing.T) {
	t.Parallel()
	s := newSecure(t, nil)
	proxy, asked := newProxy(t, s.address())
	address := proxy.Listener.Addr().String()
	s.secrets["proxy"] = "http://me:pass@" + address
	c := s.connection()
	c.Proxy = &access.Value{Secret: "proxy"}
	wantFault(t, s.do(c, fields{"url": "/"}, ""), access.CodeDenied, "private address")
	c.Private, s.policy.Allow.Private = []string{address}, []string{address}
	wantStatus(t, s.do(c, fields{"url": "/"}, ""), 200)
	got := asked()
	if want := "CONNECT " + apiHost + ":" + s.port + " Basic bWU6cGFzcw=="; len(got) != 1 || got[0] != want {
		t.Errorf("the proxy was asked %q, want %q", got, want)
	}
	if n := s.names.lookups.Load(); n != 0 {
		t.Errorf("%d lookups beside the proxy", n)
	}
}

func TestProxyOfOperator(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	proxy, asked := newProxy(t, r.address())
	r.client = r.newClient(httpreach.Config{Proxy: proxy.URL})
	wantStatus(t, r.get(r.origin()+"/"), 200)
	if got := asked(); len(got) != 1 {
		t.Errorf("the proxy was asked %q", got)
	}
	c := r.connection()
	c.Proxy = &access.Value{Text: "http://other.example.com:8080"}
	wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeDenied, "proxy of the operator")
	grant := &access.HTTPGrant{Allow: []string{"GET http://169.254.169.254/**"}}
	r.policy.Grants.HTTP, r.policy.Allow.HTTP = grant, grant
	wantFault(t, r.get("http://169.254.169.254/latest"), access.CodeDenied, "private address")
	r.untouched()
	if got := asked(); len(got) != 1 {
		t.Errorf("the proxy was asked %q", got)
	}
}

func TestWrongProxy(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"proxy:8080", "socks5://proxy:1080", "http://me:secret@proxy/path", "http://me:secret@127.1:80", "http://me:se%zzcret@proxy"} {
		_, err := httpreach.New(httpreach.Config{Proxy: text})
		if err == nil {
			t.Errorf("%s is taken", text)
		} else if contains(err.Error(), "secret") || contains(err.Error(), "cret") {
			t.Errorf("the error %q has the password", err)
		}
	}
}

// TestPolicyOwnsConnections holds that requests of two policies share no network connection.
func TestPolicyOwnsConnections(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	for range 3 {
		wantStatus(t, r.get(r.origin()+"/"), 200)
	}
	if n := r.accepted.Load(); n != 1 {
		t.Errorf("%d network connections for one policy, want 1", n)
	}
	r.policy.Grants.Publish = []string{"a"}
	wantStatus(t, r.get(r.origin()+"/"), 200)
	wantStatus(t, r.do(r.connection(), fields{"url": "/"}, ""), 200)
	if n := r.accepted.Load(); n != 3 {
		t.Errorf("%d network connections for three policies, want 3", n)
	}
	r.policy.Grants.HTTP.Private = nil
	wantFault(t, r.get(r.origin()+"/"), access.CodeDenied, "private address")
}

func TestPoliciesAreBounded(t *testing.T) {
	t.Parallel()
	closed := make(chan struct{}, 2*httpreach.MaxLanes)
	server := httptest.NewUnstartedServer(http.NotFoundHandler())
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateClosed {
			closed <- struct{}{}
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	r := newRig(t, nil)
	r.open(server.Listener.Addr().String())
	for i := range httpreach.MaxLanes + 8 {
		r.policy.Grants.HTTP.MaxBody = int64(1000 + i)
		wantStatus(t, r.get(r.origin()+"/"), 404)
	}
	for range 8 {
		<-closed
	}
	if n := r.client.Lanes(); n != httpreach.MaxLanes {
		t.Errorf("%d transports are kept, want %d", n, httpreach.MaxLanes)
	}
}

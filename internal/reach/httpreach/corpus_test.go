package httpreach_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/run/access"
)

func contains(text, part string) bool { return strings.Contains(text, part) }

// TestNames has hosts that are near the allowed one. PORT is that of its server.
func TestNames(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		url  string
		rule string // "": it is allowed
	}{
		"allowed":             {"http://api.example.com:PORT/", ""},
		"upper case":          {"HTTP://API.Example.COM:PORT/", ""},
		"trailing dot":        {"http://api.example.com.:PORT/", ""},
		"encoded path":        {"http://api.example.com:PORT/%61", ""},
		"full width":          {"http://ａｐｉ.example.com:PORT/", ""},
		"two trailing dots":   {"http://api.example.com..:PORT/", "canonical form"},
		"localhost":           {"http://localhost:PORT/", "no rule"},
		"localhost with dot":  {"http://localhost.:PORT/", "no rule"},
		"LOCALHOST":           {"http://LOCALHOST:PORT/", "no rule"},
		"user":                {"http://api.example.com@localhost:PORT/", "canonical form"},
		"user and password":   {"http://api.example.com:80@localhost:PORT/", "canonical form"},
		"empty user":          {"http://@api.example.com:PORT/", "canonical form"},
		"fragment":            {"http://api.example.com:PORT#@localhost/", "canonical form"},
		"encoded fragment":    {"http://api.example.com%23@localhost:PORT/", "canonical form"},
		"backslash":           {`http://localhost:PORT\@api.example.com/`, "canonical form"},
		"backslash in path":   {`http://api.example.com:PORT/\localhost`, "canonical form"},
		"query before host":   {"http://localhost:PORT?@api.example.com/", "no rule"},
		"tab":                 {"http://api.exam\tple.com:PORT/", "canonical form"},
		"newline":             {"http://api.example.com:PORT/\r\nHost: localhost", "canonical form"},
		"newline in host":     {"http://api.example.com\n:PORT/", "canonical form"},
		"newline in query":    {"http://api.example.com:PORT/?a\r\nb", "canonical form"},
		"NUL":                 {"http://api.example.com\x00:PORT/", "canonical form"},
		"space before":        {" http://api.example.com:PORT/", "canonical form"},
		"Cyrillic letter":     {"http://аpi.example.com:PORT/", "no rule"},
		"punycode of it":      {"http://xn--pi-7kc.example.com:PORT/", "no rule"},
		"wrong punycode":      {"http://xn--a.example.com:PORT/", "canonical form"},
		"dotless i":           {"http://apı.example.com:PORT/", "no rule"},
		"soft hyphen":         {"http://api\u00ad.example.com:PORT/", ""},
		"zero width joiner":   {"http://api\u200d.example.com:PORT/", "canonical form"},
		"subdomain":           {"http://x.api.example.com:PORT/", "no rule"},
		"parent":              {"http://example.com:PORT/", "no rule"},
		"prefix":              {"http://xapi.example.com:PORT/", "no rule"},
		"suffix":              {"http://api.example.com.attacker.com:PORT/", "no rule"},
		"another port":        {"http://api.example.com:1/", "no rule"},
		"another scheme":      {"https://api.example.com:PORT/", "no rule"},
		"file":                {"file:///etc/passwd", "canonical form"},
		"gopher":              {"gopher://api.example.com:PORT/", "canonical form"},
		"relative":            {"/a", "canonical form"},
		"without scheme":      {"//api.example.com:PORT/", "canonical form"},
		"dots in path":        {"http://api.example.com:PORT/a/../../b", "canonical form"},
		"encoded dots":        {"http://api.example.com:PORT/%2e%2e/b", "canonical form"},
		"encoded slash":       {"http://api.example.com:PORT/a%2f..%2fb", "canonical form"},
		"dots with semicolon": {"http://api.example.com:PORT/..;/b", "canonical form"},
		"IPv6 with zone":      {"http://[fe80::1%25lo]:PORT/", "canonical form"},
		"port with sign":      {"http://api.example.com:+PORT/", "canonical form"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			answer := r.get(strings.ReplaceAll(test.url, "PORT", r.port))
			if test.rule == "" {
				if got := wantStatus(t, answer, 200); !strings.HasPrefix(got.URL, r.origin()+"/") {
					t.Errorf("the final URL is %s", got.URL)
				}
				return
			}
			wantFault(t, answer, access.CodeDenied, test.rule)
			r.untouched()
		})
	}
}

// TestPrivateName is a name that leads to a private address, as a CNAME does.
func TestPrivateName(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.names.set("public.example.com", "127.0.0.1")
	grant := &access.HTTPGrant{Allow: []string{"GET http://public.example.com:1/**"}}
	r.policy.Grants.HTTP, r.policy.Allow.HTTP = grant, grant
	wantFault(t, r.get("http://public.example.com:1/"), access.CodeDenied, "private address")
	r.undialed()
}

func TestRedirects(t *testing.T) {
	t.Parallel()
	type want struct {
		status int    // of the answer; 0: a fault
		rule   string // of the fault
		hops   int64  // requests that arrive
	}
	tests := map[string]struct {
		location string // LOCATION of the first answer
		granted  int
		asked    any // "redirects" of the head
		want     want
	}{
		"off":               {"/next", 0, nil, want{302, "", 1}},
		"off, asked for":    {"/next", 0, 5, want{302, "", 1}},
		"on":                {"/next", 3, nil, want{200, "", 2}},
		"on, not asked for": {"/next", 3, 0, want{302, "", 1}},
		"absolute":          {"ORIGIN/next", 1, nil, want{200, "", 2}},
		"without scheme":    {"//api.example.com:PORT/next", 1, nil, want{200, "", 2}},
		"fragment":          {"/next#part", 1, nil, want{200, "", 2}},
		"dots":              {"/a/../next", 1, nil, want{200, "", 2}},
		"another host":      {"http://other.example.com:PORT/", 3, nil, want{0, "no rule", 1}},
		"another scheme":    {"https://api.example.com:PORT/", 3, nil, want{0, "no rule", 1}},
		"another port":      {"http://api.example.com:1/", 3, nil, want{0, "no rule", 1}},
		"address":           {"http://127.0.0.1:PORT/", 3, nil, want{0, "no rule", 1}},
		"metadata":          {"http://169.254.169.254/latest", 3, nil, want{0, "no rule", 1}},
		"odd address":       {"http://127.1:PORT/", 3, nil, want{0, "canonical form", 1}},
		"user":              {"http://me:pass@api.example.com:PORT/", 3, nil, want{0, "canonical form", 1}},
		"encoded dots":      {"/a/%2e%2e/next", 3, nil, want{0, "canonical form", 1}},
		"file":              {"file:///etc/passwd", 3, nil, want{0, "canonical form", 1}},
		"script":            {"javascript:alert(1)", 3, nil, want{0, "canonical form", 1}},
		"not a URL":         {"http://[", 3, nil, want{0, "canonical form", 1}},
		"to itself":         {"/", 3, nil, want{0, "redirects", 4}},
		"20 hops":           {"/", 20, nil, want{0, "redirects", 1 + access.MaxRedirects}},
		"fewer asked for":   {"/", 5, 1, want{0, "redirects", 2}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, connection := range []bool{false, true} {
				var r *rig
				r = newRig(t, func(w http.ResponseWriter, request *http.Request) {
					if request.URL.Path == "/" {
						location := strings.NewReplacer("ORIGIN", r.origin(), "PORT", r.port).Replace(test.location)
						w.Header().Set("Location", location)
						w.WriteHeader(http.StatusFound)
					}
				})
				c, head := (*access.Connection)(nil), fields{"url": r.origin() + "/"}
				if connection {
					c, head = r.connection(), fields{"url": "/"}
					c.HTTP.Redirects = test.granted
				}
				r.policy.Grants.HTTP.Redirects, r.policy.Allow.HTTP.Redirects = test.granted, test.granted
				if test.asked != nil {
					head["redirects"] = test.asked
				}
				answer := r.do(c, head, "")
				switch {
				case test.want.status != 0:
					wantStatus(t, answer, test.want.status)
				case connection && test.want.rule == "no rule":
					wantFault(t, answer, access.CodeDenied, "base URL")
				default:
					wantFault(t, answer, access.CodeDenied, test.want.rule)
				}
				if n := r.requests.Load(); n != test.want.hops {
					t.Errorf("the server got %d requests, want %d", n, test.want.hops)
				}
			}
		})
	}
}

// TestRedirectsNeedBoth holds that the operator's number bounds the author's.
func TestRedirectsNeedBoth(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, request *http.Request) { http.Redirect(w, request, "/", http.StatusFound) })
	r.policy.Grants.HTTP.Redirects = 5
	wantStatus(t, r.get(r.origin()+"/"), http.StatusFound)
	r.policy.Grants.HTTP.Redirects, r.policy.Allow.HTTP.Redirects = 0, 5
	wantStatus(t, r.get(r.origin()+"/"), http.StatusFound)
}

// TestRedirectToPrivateAddress is allowed by name and refused by address.
func TestRedirectToPrivateAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, "http://inner.example.com/", http.StatusFound)
	})
	r.names.set("inner.example.com", "10.0.0.1")
	for _, grant := range []*access.HTTPGrant{r.policy.Grants.HTTP, r.policy.Allow.HTTP} {
		grant.Redirects = 3
		grant.Allow = append(grant.Allow, "GET http://inner.example.com/**")
	}
	wantFault(t, r.get(r.origin()+"/"), access.CodeDenied, "private address", "10.0.0.1")
}

// TestRedirectAcrossOrigins drops what may be a credential of the guest's own.
func TestRedirectAcrossOrigins(t *testing.T) {
	t.Parallel()
	headers := make(chan http.Header, 1)
	other, _ := serve(t, "127.0.0.1:0", func(_ http.ResponseWriter, request *http.Request) { headers <- request.Header })
	port := portOf(other)
	r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/" {
			http.Redirect(w, request, "/same", http.StatusTemporaryRedirect)
			return
		}
		if request.Header.Get("Authorization") != "Bearer mine" {
			t.Error("a redirect within the origin lost its headers")
		}
		http.Redirect(w, request, "http://other.example.com:"+port+"/", http.StatusFound)
	})
	r.names.set("other.example.com", "127.0.0.1")
	for _, grant := range []*access.HTTPGrant{r.policy.Grants.HTTP, r.policy.Allow.HTTP} {
		grant.Redirects = 3
		grant.Allow = append(grant.Allow, "GET http://other.example.com:"+port+"/")
		grant.Private = append(grant.Private, "127.0.0.1:"+port)
	}
	wantStatus(t, r.do(nil, fields{"url": r.origin() + "/", "headers": map[string][]string{
		"Authorization": {"Bearer mine"}, "Cookie": {"a=b"}, "X-Api-Key": {"key"}, "Accept": {"text/plain"},
	}}, ""), 200)
	got := <-headers
	for _, name := range []string{"Authorization", "Cookie", "X-Api-Key", "Referer"} {
		if got.Get(name) != "" {
			t.Errorf("%s: %s was sent to another origin", name, got.Get(name))
		}
	}
	if got.Get("Accept") != "text/plain" {
		t.Errorf("Accept is %q", got.Get("Accept"))
	}
}

func TestRedirectMethods(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		status int
		method string
		want   string
	}{
		{301, "POST", "GET "}, {302, "POST", "GET "}, {303, "POST", "GET "}, {307, "POST", "POST body"}, {308, "POST", "POST body"},
		{301, "PUT", "PUT body"}, {303, "PUT", "GET "}, {303, "HEAD", "HEAD "}, {302, "GET", "GET "},
	} {
		t.Run(fmt.Sprint(test.status, test.method), func(t *testing.T) {
			t.Parallel()
			arrived := make(chan string, 2)
			r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
				if request.URL.Path == "/" {
					http.Redirect(w, request, "/next", test.status)
					return
				}
				body, _ := io.ReadAll(request.Body)
				arrived <- request.Method + " " + string(body)
			})
			r.policy.Grants.HTTP.Redirects, r.policy.Allow.HTTP.Redirects = 1, 1
			body := "body"
			if test.method == "GET" || test.method == "HEAD" {
				body = ""
			}
			wantStatus(t, r.do(nil, fields{"method": test.method, "url": r.origin() + "/"}, body), 200)
			if got := <-arrived; got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestRedirectNeedsRule holds that a method which a redirect changes needs its own rule.
func TestRedirectNeedsRule(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
		http.Redirect(w, request, "/next", http.StatusSeeOther)
	})
	r.policy.Grants.HTTP.Redirects, r.policy.Allow.HTTP.Redirects = 1, 1
	r.policy.Grants.HTTP.Allow = []string{"POST " + r.origin() + "/**"}
	f := wantFault(t, r.do(nil, fields{"method": "POST", "url": r.origin() + "/"}, ""), access.CodeDenied, "no rule")
	if want := `allow = ["GET ` + r.origin() + `/next"]`; f.Add != want {
		t.Errorf("add %s, want %s", f.Add, want)
	}
}

func TestMetaRefreshIsData(t *testing.T) {
	t.Parallel()
	const page = `<meta http-equiv="refresh" content="0;url=http://169.254.169.254/">`
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Refresh", "0;url=http://169.254.169.254/")
		_, _ = io.WriteString(w, page)
	})
	r.policy.Grants.HTTP.Redirects, r.policy.Allow.HTTP.Redirects = 5, 5
	if got := wantStatus(t, r.get(r.origin()+"/"), 200); got.Body != page || r.requests.Load() != 1 {
		t.Errorf("got %q after %d requests", got.Body, r.requests.Load())
	}
}

func TestRefusedHeaders(t *testing.T) {
	t.Parallel()
	many := map[string][]string{}
	for i := range 32_769 {
		many[fmt.Sprint("X-", i)] = []string{"1"}
	}
	tests := map[string]map[string][]string{
		"Host":                     {"Host": {"localhost"}},
		"duplicated Host":          {"Host": {"api.example.com", "localhost"}},
		"host":                     {"hOsT": {"localhost"}},
		":authority":               {":authority": {"localhost"}},
		"Content-Length":           {"Content-Length": {"0"}},
		"Content_Length":           {"Content_Length": {"0"}},
		"Transfer-Encoding":        {"Transfer-Encoding": {"chunked"}},
		"Transfer-Encoding, two":   {"Transfer-Encoding": {"identity", "chunked"}},
		"transfer_encoding":        {"transfer_encoding": {"chunked"}},
		"Transfer-Encoding, space": {"Transfer-Encoding ": {"chunked"}},
		"Transfer-Encoding, tab":   {"\tTransfer-Encoding": {"chunked"}},
		"Connection":               {"Connection": {"X-Secret"}},
		"Keep-Alive":               {"Keep-Alive": {"timeout=9"}},
		"Proxy-Authorization":      {"Proxy-Authorization": {"Basic eA=="}},
		"Proxy-Connection":         {"Proxy-Connection": {"close"}},
		"Proxy":                    {"Proxy-": {"x"}},
		"TE":                       {"TE": {"trailers"}},
		"Trailer":                  {"Trailer": {"X-A"}},
		"Upgrade":                  {"Upgrade": {"websocket"}},
		"HTTP2-Settings":           {"HTTP2-Settings": {"AAA"}},
		"Expect":                   {"Expect": {"100-continue"}},
		"Accept-Encoding":          {"Accept-Encoding": {"br"}},
		"traceparent":              {"traceparent": {"00-0-0-00"}},
		"another method":           {"X-HTTP-Method-Override": {"DELETE"}},
		"another path":             {"X-Original-URL": {"/admin"}},
		"another host":             {"X-Forwarded-Host": {"localhost"}},
		"CRLF in a value":          {"X-A": {"1\r\nHost: localhost"}},
		"LF in a value":            {"X-A": {"1\nX-B: 2"}},
		"CR in a value":            {"X-A": {"1\rX-B: 2"}},
		"NUL in a value":           {"X-A": {"1\x002"}},
		"CRLF in a name":           {"X-A: 1\r\nHost": {"localhost"}},
		"colon in a name":          {"X-A:": {"1"}},
		"empty name":               {"": {"1"}},
		"letters beyond ASCII":     {"X-Ä": {"1"}},
		"32 769 headers":           many,
		"32 769 values":            {"X-A": strings.Split(strings.Repeat("1,", 32_768)+"1", ",")},
		"1 MB of one":              {"X-A": {strings.Repeat("x", 1<<20)}},
		"too many bytes":           {"X-A": {strings.Repeat("x", 40<<10)}, "X-B": {strings.Repeat("x", 40<<10)}},
	}
	for name, headers := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			wantFault(t, r.do(nil, fields{"url": r.origin() + "/", "headers": headers}, ""), access.CodeInvalid)
			r.untouched()
		})
	}
}

func TestSentHeaders(t *testing.T) {
	t.Parallel()
	sent := make(chan *http.Request, 1)
	r := newRig(t, func(_ http.ResponseWriter, request *http.Request) { sent <- request })
	r.caller.Traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	wantStatus(t, r.do(nil, fields{"method": "POST", "url": r.origin() + "/?a=%2F", "headers": map[string][]string{
		"accept": {"text/plain"}, "X-Two": {"1", "2"}, "Cookie": {"a=b"},
	}}, "hello"), 200)
	got := <-sent
	if got.Host != apiHost+":"+r.port || got.ContentLength != 5 || got.RequestURI != "/?a=%2F" {
		t.Errorf("host %s, length %d, URI %s", got.Host, got.ContentLength, got.RequestURI)
	}
	for name, want := range map[string]string{
		"Accept": "text/plain", "X-Two": "1,2", "Cookie": "a=b", "Traceparent": r.caller.Traceparent, "Accept-Encoding": "gzip", "User-Agent": "flowhost",
	} {
		if have := strings.Join(got.Header[name], ","); have != want {
			t.Errorf("%s: %q, want %q", name, have, want)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	sent := make(chan string, 1)
	r := newRig(t, func(_ http.ResponseWriter, request *http.Request) { sent <- request.Header.Get("Idempotency-Key") })
	r.caller.Key = "a/b ü"
	for _, test := range []struct {
		key  any
		want string
	}{{nil, ""}, {false, ""}, {"mine", "mine"}, {true, "01JRUN/price/a%2Fb%20%C3%BC/4"}} {
		wantStatus(t, r.do(nil, fields{"method": "POST", "url": r.origin() + "/", "idempotency_key": test.key}, ""), 200)
		if got := <-sent; got != test.want {
			t.Errorf("%v: got %q, want %q", test.key, got, test.want)
		}
	}
}

func TestAnswerHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		for name, value := range map[string]string{
			"Set-Cookie": "a=b", "Set-Cookie2": "a=b", "Keep-Alive": "timeout=9", "Proxy-Authenticate": "Basic", "X-Kept": "1", "Upgrade": "h2c",
		} {
			w.Header().Set(name, value)
		}
		w.Header().Add("X-Kept", "2")
		w.WriteHeader(http.StatusNotFound)
	})
	got := wantStatus(t, r.get(r.origin()+"/?q"), http.StatusNotFound)
	for _, name := range []string{"Set-Cookie", "Set-Cookie2", "Keep-Alive", "Proxy-Authenticate", "Upgrade", "Connection"} {
		if got.Headers[name] != nil {
			t.Errorf("%s is in the answer", name)
		}
	}
	if strings.Join(got.Headers["X-Kept"], ",") != "1,2" || got.URL != r.origin()+"/?q" {
		t.Errorf("headers %v, URL %s", got.Headers, got.URL)
	}
}

func TestHostileAnswers(t *testing.T) {
	t.Parallel()
	const ok = "HTTP/1.1 200 OK\r\n"
	tests := map[string]struct {
		answer string
		code   string
	}{
		"32 769 headers":   {ok + strings.Repeat("X-A: 1\r\n", 32_769) + "\r\n", access.CodeTooLarge},
		"1 MB of one":      {ok + "X-A: " + strings.Repeat("x", 1<<20) + "\r\n\r\n", access.CodeTooLarge},
		"300 headers":      {ok + strings.Repeat("X-A: 1\r\n", 300) + "\r\n", access.CodeTooLarge},
		"early end":        {ok + "Content-Length: 100\r\n\r\nshort", access.CodeUnreachable},
		"two lengths":      {ok + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", access.CodeUnreachable},
		"negative length":  {ok + "Content-Length: -1\r\n\r\nhello", access.CodeUnreachable},
		"length too large": {ok + "Content-Length: 9999999999\r\n\r\n", access.CodeTooLarge},
		"wrong chunks":     {ok + "Transfer-Encoding: chunked\r\n\r\nzz\r\n", access.CodeUnreachable},
		"unknown encoding": {ok + "Transfer-Encoding: gzip\r\n\r\nx", access.CodeUnreachable},
		"not HTTP":         {"SSH-2.0-OpenSSH_9\r\n\r\n", access.CodeUnreachable},
		"nothing":          {"", access.CodeUnreachable},
		"another protocol": {"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n", access.CodeUnreachable},
		"1000 times 100":   {strings.Repeat("HTTP/1.1 100 Continue\r\n\r\n", 100_000), access.CodeTooLarge},
		"not gzip":         {ok + "Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\nhello, hello, hello!", access.CodeRefused},
		"cut gzip":         {ok + "Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n" + string(packed("hello"))[:20], access.CodeUnreachable},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.open(serveRaw(t, func(conn net.Conn) { _, _ = io.WriteString(conn, test.answer) }))
			f := wantFault(t, r.get(r.origin()+"/"), test.code)
			if len(f.Message) > 1000 {
				t.Errorf("the message has %d bytes", len(f.Message))
			}
		})
	}
}

func packed(text string) []byte {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	return out.Bytes()
}

func TestBodies(t *testing.T) {
	t.Parallel()
	const most = 1 << 20 // the grant's max_body
	zeros := strings.Repeat("\x00", most)
	tests := map[string]struct {
		encoding string
		body     string
		want     string // "": too large
	}{
		"plain":             {"", "hello", "hello"},
		"identity":          {"identity", "hello", "hello"},
		"gzip":              {"gzip", string(packed("hello")), "hello"},
		"GZIP":              {"GZip", string(packed("hello")), "hello"},
		"gzip in two parts": {"gzip", string(packed("hel")) + string(packed("lo")), "hello"},
		"other encoding":    {"br", "data", "data"},
		"at the bound":      {"", zeros, zeros},
		"above the bound":   {"", zeros + "x", ""},
		"gzip at the bound": {"gzip", string(packed(zeros)), zeros},
		"gzip above it":     {"gzip", string(packed(zeros + "x")), ""},
		"gzip 1:1000":       {"gzip", string(packed(strings.Repeat(zeros, 100))), ""},
		"empty gzip parts":  {"gzip", strings.Repeat(string(packed("")), 60_000), ""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
				if test.encoding != "" {
					w.Header().Set("Content-Encoding", test.encoding)
				}
				_, _ = io.WriteString(w, test.body)
			})
			answer := r.get(r.origin() + "/")
			if test.want == "" {
				wantFault(t, answer, access.CodeTooLarge, "max_body")
				return
			}
			got := wantStatus(t, answer, 200)
			if got.Body != test.want {
				t.Errorf("got %d bytes, want %d", len(got.Body), len(test.want))
			}
			if got.Headers.Get("Content-Length") != "" || strings.EqualFold(got.Headers.Get("Content-Encoding"), "gzip") {
				t.Errorf("headers %v describe another body", got.Headers)
			}
		})
	}
}

func TestEndlessBody(t *testing.T) {
	t.Parallel()
	for name, encoding := range map[string]string{"plain": "", "gzip": "gzip"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
				var to io.Writer = w
				if encoding != "" {
					w.Header().Set("Content-Encoding", encoding)
					to = gzip.NewWriter(w)
				}
				block := make([]byte, 64<<10)
				for request.Context().Err() == nil {
					if _, err := to.Write(block); err != nil {
						return
					}
				}
			})
			wantFault(t, r.get(r.origin()+"/"), access.CodeTooLarge, "max_body")
		})
	}
}

func TestBodyOfHead(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		w.Header().Set("Content-Length", "99999999999")
	})
	got := wantStatus(t, r.do(nil, fields{"method": "HEAD", "url": r.origin() + "/"}, ""), 200)
	if got.Body != "" || got.Headers.Get("Content-Length") != "99999999999" {
		t.Errorf("body %q, headers %v", got.Body, got.Headers)
	}
}

// TestSlowServers pause past the deadline: of the operation, of the try, of the attempt.
func TestSlowServers(t *testing.T) {
	t.Parallel()
	stages := map[string]string{
		"before the head": "",
		"within the head": "HTTP/1.1 200 OK\r\nX-A: ",
		"before the body": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
		"within the body": "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhello",
		"within gzip":     "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + string(packed("hello"))[:15],
	}
	for name, part := range stages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			ended := make(chan struct{})
			defer close(ended)
			r.open(serveRaw(t, func(conn net.Conn) {
				_, _ = io.WriteString(conn, part)
				<-ended
			}))
			url := r.origin() + "/"
			f := wantFault(t, r.do(nil, fields{"url": url, "timeout_ms": 50}, ""), access.CodeTimeout)
			if !f.Retryable {
				t.Error("it cannot be tried again")
			}
			c := r.connection()
			c.HTTP.Timeout = 50 * time.Millisecond
			wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeTimeout, "in time")
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			defer cancel()
			wantFault(t, r.doContext(ctx, nil, fields{"url": url}, ""), access.CodeTimeout)
			ctx, stop := context.WithCancel(t.Context())
			stop()
			wantFault(t, r.doContext(ctx, nil, fields{"url": url}, ""), access.CodeCanceled)
		})
	}
}

func TestUnreachable(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.server.Close()
	f := wantFault(t, r.get(r.origin()+"/?secret=1"), access.CodeUnreachable, "refused")
	if !f.Retryable || contains(f.Message, "secret") {
		t.Errorf("fault %+v", *f)
	}
	r.policy.Grants.HTTP.Allow = []string{"GET http://none.example.com/**"}
	r.policy.Allow.HTTP.Allow = r.policy.Grants.HTTP.Allow
	wantFault(t, r.get("http://none.example.com/"), access.CodeUnreachable, "no such host")
}

func TestClose(t *testing.T) {
	t.Parallel()
	arrived := make(chan struct{})
	r := newRig(t, func(_ http.ResponseWriter, request *http.Request) {
		close(arrived)
		<-request.Context().Done()
	})
	answer := make(chan access.Answer, 1)
	go func() { answer <- r.get(r.origin() + "/") }()
	<-arrived
	r.client.Close()
	wantFault(t, <-answer, access.CodeCanceled)
	wantFault(t, r.get(r.origin()+"/"), access.CodeCanceled, "stopping")
	r.client.Close()
}

// TestCloseDuringHandshake has a server that accepts and never speaks TLS.
func TestCloseDuringHandshake(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	r := newRig(t, nil)
	c := r.connection()
	c.Private = []string{listener.Addr().String()}
	c.HTTP.BaseURL = strings.Replace("https://"+listener.Addr().String(), "127.0.0.1", apiHost, 1)
	r.policy.Allow.Private = c.Private
	answer := make(chan access.Answer, 1)
	go func() { answer <- r.do(c, fields{"url": "/"}, "") }()
	server, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	r.client.Close()
	wantFault(t, <-answer, access.CodeCanceled)
	if _, err := io.Copy(io.Discard, server); err != nil {
		t.Errorf("the end of the network connection: %v", err)
	}
}

// TestDialEndsWithOperation has a name whose lookup does not end by itself.
func TestDialEndsWithOperation(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	ended := make(chan struct{})
	client, err := httpreach.New(httpreach.Config{Secrets: r.secrets, Resolver: slowResolver(ended)})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	r.client = client
	wantFault(t, r.do(nil, fields{"url": r.origin() + "/", "timeout_ms": 20}, ""), access.CodeTimeout)
	<-ended
}

type slowResolver chan struct{}

func (s slowResolver) LookupNetIP(ctx context.Context, _, _ string) ([]netip.Addr, error) {
	<-ctx.Done()
	close(s)
	return nil, ctx.Err()
}

func TestIPv6(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "[::1]:0")
	if errors.Is(err, syscall.EADDRNOTAVAIL) || errors.Is(err, syscall.EAFNOSUPPORT) {
		t.Skip("this machine has no IPv6")
	}
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	serve(t, address, func(w http.ResponseWriter, request *http.Request) { _, _ = io.WriteString(w, request.Host) })
	r := newRig(t, nil)
	grant := &access.HTTPGrant{Allow: []string{"GET http://" + address + "/"}, Private: []string{address}}
	r.policy.Grants.HTTP, r.policy.Allow.HTTP = grant, grant
	if got := wantStatus(t, r.get("http://"+address+"/"), 200); got.Body != address {
		t.Errorf("host %s", got.Body)
	}
}

// FuzzHead holds that whatever a guest sends is answered, and what is refused is invalid.
func FuzzHead(f *testing.F) {
	f.Add([]byte(`{"connection":"api","method":"GET","url":"/a","headers":{"A":["1"]},"idempotency_key":true,"timeout_ms":1,"redirects":1}`))
	f.Add([]byte(`{"url":"http://a/","URL":"http://b/","url":"http://c/"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		err := httpreach.ParseHead(text)
		fault, ok := err.(*access.Fault)
		if err != nil && (!ok || fault.Code != access.CodeInvalid || len(fault.Message) > 1000) {
			t.Fatalf("%q: %v", text, err)
		}
	})
}

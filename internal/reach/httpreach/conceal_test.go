package httpreach_test

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run/access"
)

// wantNoAddress looks for the address of the server in all that a guest gets.
func wantNoAddress(t *testing.T, r *rig, answer access.Answer) {
	t.Helper()
	fault, err := json.Marshal(answer.Fault)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{apiHost, "127.0.0.1", r.port, "/hidden", "://"} {
		for what, text := range map[string]string{"head": string(answer.Head), "fault": string(fault)} {
			if strings.Contains(strings.ToLower(text), part) {
				t.Errorf("the %s has %q: %s", what, part, text)
			}
		}
	}
}

// hidden is a connection below a path of the server.
func (r *rig) hidden() *access.Connection {
	c := r.connection()
	c.HTTP.BaseURL += "/hidden/v3"
	return c
}

// TestAnswersHideTheAddress has a server that names itself in all of its headers.
func TestAnswersHideTheAddress(t *testing.T) {
	t.Parallel()
	var origin string
	r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
		h := w.Header()
		h.Set("Content-Location", request.URL.Path)
		h.Set("Link", "<"+origin+"/hidden/v3/items?page=2>; rel=\"next\", </hidden/v3/items?page=9>; rel=last")
		h.Set("X-Served-By", "node 7 of "+strings.ToUpper(apiHost))
		h.Set("Via", "1.1 "+request.Host)
		h.Set("X-Count", "3")
		h.Set("X-"+apiHost, "3")
		switch request.URL.Path {
		case "/hidden/v3/moved":
			http.Redirect(w, request, origin+"/hidden/v3/items?page=1#top", http.StatusFound)
		case "/hidden/v3/out":
			http.Redirect(w, request, "/hidden/other", http.StatusFound)
		case "/hidden/v3/upgrade":
			http.Redirect(w, request, "https://"+request.Host+"/hidden/v3/items", http.StatusFound)
		case "/hidden/v3/elsewhere":
			h.Del("Link")
			http.Redirect(w, request, "//cdn.example.org/x", http.StatusFound)
		}
	})
	origin = r.origin()
	for _, tt := range []struct {
		url, shown, location string
		status               int
		redirects            int
	}{
		{url: "/items?page=1", shown: "/items?page=1", status: 200},
		{url: "/moved", shown: "/moved", location: "/items?page=1#top", status: 302},
		{url: "/moved", shown: "/items?page=1", status: 200, redirects: 1},
		{url: "/out", shown: "/out", status: 302},
		{url: "/upgrade", shown: "/upgrade", status: 302},
		{url: "/elsewhere", shown: "/elsewhere", location: "//cdn.example.org/x", status: 302},
	} {
		c := r.hidden()
		c.HTTP.Redirects = tt.redirects
		answer := r.do(c, fields{"url": tt.url}, "")
		got := wantStatus(t, answer, tt.status)
		if got.URL != tt.shown || got.Headers.Get("Location") != tt.location || got.Headers.Get("X-Count") != "3" {
			t.Errorf("%s: url %q, location %q, headers %v", tt.url, got.URL, got.Headers.Get("Location"), got.Headers)
		}
		if link := got.Headers.Get("Link"); tt.url != "/elsewhere" && link != `</items?page=2>; rel="next", </items?page=9>; rel=last` {
			t.Errorf("%s: link %s", tt.url, link)
		}
		wantNoAddress(t, r, answer)
	}
}

// TestFaultsHideTheAddress has operations fail in each way: the guest sees no address, and the
// operator sees it.
func TestFaultsHideTheAddress(t *testing.T) {
	t.Parallel()
	broken := func(w http.ResponseWriter, request *http.Request) {
		switch request.URL.Path {
		case "/hidden/v3/breaks":
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		case "/hidden/v3/slow":
			<-request.Context().Done()
		case "/hidden/v3/large":
			_, _ = w.Write(make([]byte, 2<<20))
		case "/hidden/v3/headers":
			w.Header().Set("X-Large", strings.Repeat("x", 100<<10))
		case "/hidden/v3/gzip":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write([]byte(strings.Repeat("plain", 10)))
		case "/hidden/v3/later":
			w.Header().Set("Retry-After", "3600")
			w.WriteHeader(http.StatusServiceUnavailable)
		case "/hidden/v3/out":
			http.Redirect(w, request, "http://"+request.Host+"/hidden/other", http.StatusFound)
		case "/hidden/v3/odd":
			http.Redirect(w, request, "ftp://"+request.Host+"/hidden/other", http.StatusFound)
		case "/hidden/v3/loop":
			http.Redirect(w, request, request.URL.Path, http.StatusFound)
		}
	}
	for name, tt := range map[string]struct {
		url    string
		code   string
		change func(t *testing.T, r *rig, c *access.Connection)
		full   string // what the operator sees; default the host's name
	}{
		"connection refused": {code: access.CodeUnreachable, full: "connection refused", change: func(_ *testing.T, r *rig, _ *access.Connection) { r.server.Close() }},
		"no such name": {code: access.CodeUnreachable, change: func(_ *testing.T, r *rig, _ *access.Connection) {
			delete(r.names.table, apiHost)
		}},
		"not in TLS": {code: access.CodeUnreachable, change: func(_ *testing.T, _ *rig, c *access.Connection) {
			c.HTTP.BaseURL = strings.Replace(c.HTTP.BaseURL, "http:", "https:", 1)
		}},
		"a certificate": {code: access.CodeUnreachable, full: "x509", change: certified},
		"private":       {code: access.CodeDenied, full: "127.0.0.1", change: func(_ *testing.T, _ *rig, c *access.Connection) { c.Private = nil }},
		"a literal": {code: access.CodeDenied, full: "127.0.0.1", change: func(_ *testing.T, r *rig, c *access.Connection) {
			c.HTTP.BaseURL, c.Private = "http://"+r.address()+"/hidden/v3", nil
		}},
		"a proxy": {code: access.CodeUnreachable, full: "127.0.0.1", change: func(_ *testing.T, r *rig, c *access.Connection) {
			c.Proxy = &access.Value{Text: "http://" + r.address()}
			r.server.Close()
		}},
		"no rule": {url: "/b", code: access.CodeDenied, change: func(_ *testing.T, _ *rig, c *access.Connection) { c.HTTP.Allow = []string{"GET /a"} }},
		"no token": {code: access.CodeRefused, change: func(_ *testing.T, r *rig, c *access.Connection) {
			r.secrets["key"] = secretValue
			c.HTTP.Auth = &access.Auth{Kind: access.AuthOAuth2, TokenURL: r.origin() + "/hidden/v3/later", ClientID: access.Value{Text: "x"}, ClientSecret: access.Value{Secret: "key"}}
		}},
		"breaks":         {url: "/breaks", code: access.CodeUnreachable},
		"slow":           {url: "/slow", code: access.CodeTimeout},
		"large":          {url: "/large", code: access.CodeTooLarge},
		"headers":        {url: "/headers", code: access.CodeTooLarge},
		"gzip":           {url: "/gzip", code: access.CodeRefused},
		"later":          {url: "/later", code: access.CodeRefused},
		"redirected out": {url: "/out", code: access.CodeDenied},
		"redirected odd": {url: "/odd", code: access.CodeDenied},
		"redirected on":  {url: "/loop", code: access.CodeDenied},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, broken)
			c := r.hidden()
			c.HTTP.Redirects, c.HTTP.MaxBody, c.HTTP.Retry = 2, 1<<20, &access.Retry{Attempts: 2, Delay: 1}
			if name == "slow" {
				c.HTTP.Timeout = 20 * time.Millisecond
			}
			if tt.change != nil {
				tt.change(t, r, c)
			}
			if tt.url == "" {
				tt.url = "/a"
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			answer := r.doContext(ctx, c, fields{"url": tt.url}, "")
			f := wantFault(t, answer, tt.code)
			wantNoAddress(t, r, answer)
			if tt.full == "" {
				tt.full = apiHost
			}
			if !strings.Contains(f.Message+f.Target, tt.full) {
				t.Errorf("the operator sees %+v", f)
			}
		})
	}
}

// certified is a server whose certificate nobody knows.
func certified(t *testing.T, r *rig, c *access.Connection) {
	t.Helper()
	s := httptest.NewUnstartedServer(http.NotFoundHandler())
	s.Config.ErrorLog = silent
	s.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	r.open(netip.MustParseAddrPort(s.Listener.Addr().String()).String())
	*c = *r.hidden()
	c.HTTP.BaseURL = strings.Replace(c.HTTP.BaseURL, "http:", "https:", 1)
}

package httpreach_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowhost/flowhost/internal/reach/httpreach"
	"github.com/flowhost/flowhost/run/access"
)

const secretValue = "s3cr3t/value+\"1\""

func TestCredentials(t *testing.T) {
	t.Parallel()
	secret := access.Value{Secret: "key"}
	tests := map[string]struct {
		auth *access.Auth
		want string // Authorization, X-Api-Key, query
	}{
		"none":   {nil, "||a=1"},
		"basic":  {&access.Auth{Kind: access.AuthBasic, User: access.Value{Text: "me"}, Password: secret}, "Basic " + base64.StdEncoding.EncodeToString([]byte("me:"+secretValue)) + "||a=1"},
		"bearer": {&access.Auth{Kind: access.AuthBearer, Token: secret}, "Bearer " + secretValue + "||a=1"},
		"header": {&access.Auth{Kind: access.AuthHeader, Name: "x-api-key", Value: secret}, "|" + secretValue + "|a=1"},
		"query":  {&access.Auth{Kind: access.AuthQuery, Name: "api key", Value: secret}, "||a=1&api+key=s3cr3t%2Fvalue%2B%221%22"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := make(chan string, 1)
			r := newRig(t, func(_ http.ResponseWriter, request *http.Request) {
				sent <- request.Header.Get("Authorization") + "|" + request.Header.Get("X-Api-Key") + "|" + request.URL.RawQuery
			})
			r.secrets["key"] = secretValue
			c := r.connection()
			c.HTTP.Auth = test.auth
			answer := wantStatus(t, r.do(c, fields{"url": "/?a=1"}, ""), 200)
			if got := <-sent; got != test.want {
				t.Errorf("sent %s, want %s", got, test.want)
			}
			if answer.URL != "/?a=1" {
				t.Errorf("the final URL is %s", answer.URL)
			}
		})
	}
}

func TestConnectionHeaders(t *testing.T) {
	t.Parallel()
	sent := make(chan string, 1)
	r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
		sent <- request.Header.Get("X-Tenant") + "|" + request.Header.Get("X-Key")
		w.Header().Set("X-Echo", request.Header.Get("X-Key"))
		_, _ = io.WriteString(w, request.Header.Get("X-Tenant"))
	})
	r.secrets["key"] = secretValue
	c := r.connection()
	c.HTTP.Headers = map[string]access.Value{"X-Tenant": {Text: "acme"}, "x-key": {Secret: "key"}}
	got := wantStatus(t, r.do(c, fields{"url": "/"}, ""), 200)
	if have, want := <-sent, "acme|"+secretValue; have != want {
		t.Errorf("sent %s, want %s", have, want)
	}
	if got.Body != "acme" || got.Headers.Get("X-Echo") != "***" {
		t.Errorf("body %q, X-Echo %q", got.Body, got.Headers.Get("X-Echo"))
	}
}

// TestFilledByConnection refuses what a guest would put in a credential's place.
func TestFilledByConnection(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		auth   access.Auth
		header string
		query  string
	}{
		"basic":                  {auth: access.Auth{Kind: access.AuthBasic}, header: "Authorization"},
		"bearer":                 {auth: access.Auth{Kind: access.AuthBearer}, header: "authorization"},
		"oauth2":                 {auth: access.Auth{Kind: access.AuthOAuth2, TokenURL: "https://example.com/"}, header: "Authorization"},
		"header":                 {auth: access.Auth{Kind: access.AuthHeader, Name: "X-Api-Key"}, header: "x-api-KEY"},
		"header with underscore": {auth: access.Auth{Kind: access.AuthHeader, Name: "X-Api-Key"}, header: "X_Api_Key"},
		"aws date":               {auth: access.Auth{Kind: access.AuthAWS}, header: "X-Amz-Date"},
		"aws":                    {auth: access.Auth{Kind: access.AuthAWS}, header: "Authorization"},
		"of the connection":      {header: "X-Tenant"},
		"query":                  {auth: access.Auth{Kind: access.AuthQuery, Name: "key"}, query: "?key=1"},
		"query, encoded":         {auth: access.Auth{Kind: access.AuthQuery, Name: "key"}, query: "?a=1&%6bey=1"},
		"query, semicolon":       {auth: access.Auth{Kind: access.AuthQuery, Name: "key"}, query: "?a=1;key=1"},
		"query, without value":   {auth: access.Auth{Kind: access.AuthQuery, Name: "key"}, query: "?key"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c := r.connection()
			c.HTTP.Headers = map[string]access.Value{"X-Tenant": {Text: "acme"}}
			if test.auth.Kind != "" {
				c.HTTP.Auth = &test.auth
			}
			head := fields{"url": "/" + test.query}
			if test.header != "" {
				head["headers"] = map[string][]string{test.header: {"mine"}}
			}
			wantFault(t, r.do(c, head, ""), access.CodeInvalid, "filled by the connection")
			r.untouched()
		})
	}
}

func TestSecretsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.secrets["key"] = "two\r\nX-A: lines"
	c := r.connection()
	c.HTTP.Auth = &access.Auth{Kind: access.AuthBearer, Token: access.Value{Secret: "key"}}
	if f := wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeInvalid); contains(f.Message, "two") {
		t.Errorf("the message %q has the secret", f.Message)
	}
	c.HTTP.Auth.Token.Secret = "none"
	wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeDenied, "cannot be resolved")
	c.HTTP.Auth.Kind = "kerberos"
	wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeInvalid, "kerberos")
	r.untouched()
}

// TestEchoes has servers that repeat the credential.
func TestEchoes(t *testing.T) {
	t.Parallel()
	inBase64 := func(text string) string { return base64.StdEncoding.EncodeToString([]byte(text)) }
	inJSON, _ := json.Marshal(secretValue)
	forms := map[string]string{
		"value":            secretValue,
		"twice":            secretValue + secretValue,
		"within a text":    "token=" + secretValue + ";",
		"base64":           inBase64(secretValue),
		"base64, one":      inBase64("x" + secretValue),
		"base64, two":      inBase64("xy" + secretValue + "z"),
		"base64 for URLs":  base64.URLEncoding.EncodeToString([]byte(secretValue)),
		"base64, unpadded": base64.RawStdEncoding.EncodeToString([]byte(secretValue)),
		"query":            url.QueryEscape(secretValue),
		"path":             url.PathEscape(secretValue),
		"query, lower":     strings.ToLower(url.QueryEscape(secretValue)),
		"JSON":             string(inJSON),
	}
	for name, form := range forms {
		for place, write := range map[string]func(http.ResponseWriter){
			"body":   func(w http.ResponseWriter) { _, _ = io.WriteString(w, form) },
			"gzip":   func(w http.ResponseWriter) { w.Header().Set("Content-Encoding", "gzip"); _, _ = w.Write(packed(form)) },
			"header": func(w http.ResponseWriter) { w.Header().Set("X-Echo", form) },
			"error":  func(w http.ResponseWriter) { http.Error(w, form, http.StatusForbidden) },
			"status": func(w http.ResponseWriter) { w.Header().Set("Location", "/"+form); w.WriteHeader(http.StatusFound) },
		} {
			t.Run(name+" in "+place, func(t *testing.T) {
				t.Parallel()
				r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { write(w) })
				r.secrets["key"] = secretValue
				c := r.connection()
				c.HTTP.Auth = &access.Auth{Kind: access.AuthBearer, Token: access.Value{Secret: "key"}}
				answer := r.do(c, fields{"url": "/"}, "")
				text := string(answer.Head) + string(answer.Body)
				if answer.Fault != nil || !contains(text, "***") {
					t.Errorf("answer %s", text)
				}
				if contains(text, form) || contains(text, "s3cr3t") || contains(text, inBase64(secretValue)[3:12]) {
					t.Errorf("the credential is in %s", text)
				}
			})
		}
	}
}

func TestEchoesElsewhere(t *testing.T) {
	t.Parallel()
	t.Run("unknown encoding", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "br")
			_, _ = io.WriteString(w, "data")
		})
		r.secrets["key"] = secretValue
		c := r.connection()
		c.HTTP.Auth = &access.Auth{Kind: access.AuthBearer, Token: access.Value{Secret: "key"}}
		wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeRefused, "not asked for")
	})
	t.Run("redirect with the query", func(t *testing.T) {
		t.Parallel()
		var queries sync.Map
		r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
			queries.Store(request.URL.Path, request.URL.RawQuery)
			if request.URL.Path == "/" {
				http.Redirect(w, request, "/next?"+request.URL.RawQuery, http.StatusFound)
			}
		})
		r.secrets["key"] = secretValue
		c := r.connection()
		c.HTTP.Redirects = 1
		c.HTTP.Auth = &access.Auth{Kind: access.AuthQuery, Name: "key", Value: access.Value{Secret: "key"}}
		got := wantStatus(t, r.do(c, fields{"url": "/?a=1"}, ""), 200)
		if want := "/next?a=1"; got.URL != want {
			t.Errorf("the final URL is %s, want %s", got.URL, want)
		}
		if q, _ := queries.Load("/next"); strings.Count(fmt.Sprint(q), "key=") != 1 {
			t.Errorf("the second query is %s", q)
		}
	})
	t.Run("refused redirect", func(t *testing.T) {
		t.Parallel()
		r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
			http.Redirect(w, request, "http://other.example.com/"+strings.TrimPrefix(request.Header.Get("Authorization"), "Bearer "), http.StatusFound)
		})
		r.secrets["key"] = "s3cr3tvalue"
		c := r.connection()
		c.HTTP.Redirects = 1
		c.HTTP.Auth = &access.Auth{Kind: access.AuthBearer, Token: access.Value{Secret: "key"}}
		answer := r.do(c, fields{"url": "/"}, "")
		wantFault(t, answer, access.CodeDenied, "base URL")
		if contains(string(answer.Head), "s3cr3t") {
			t.Errorf("the fault %s has the credential", answer.Head)
		}
	})
}

func TestOAuth2(t *testing.T) {
	t.Parallel()
	var fetched, asked atomic.Int64
	var valid atomic.Value
	valid.Store("")
	r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/token" {
			id, secret, _ := request.BasicAuth()
			if id != "me" || secret != url.QueryEscape(secretValue) || request.FormValue("grant_type") != "client_credentials" || request.FormValue("scope") != "a b" || request.FormValue("audience") != "https://x" {
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			token := fmt.Sprint("token-", fetched.Add(1))
			valid.Store(token)
			_, _ = fmt.Fprintf(w, `{"access_token":%q,"token_type":"Bearer","expires_in":3600}`, token)
			return
		}
		asked.Add(1)
		if request.Header.Get("Authorization") != "Bearer "+valid.Load().(string) {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = io.WriteString(w, "hello "+valid.Load().(string))
	})
	r.secrets["key"] = secretValue
	c := r.connection()
	c.HTTP.Auth = &access.Auth{
		Kind: access.AuthOAuth2, TokenURL: r.origin() + "/token", ClientID: access.Value{Text: "me"}, ClientSecret: access.Value{Secret: "key"},
		Scopes: []string{"a", "b"}, Audience: "https://x",
	}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			if answer := r.do(c, fields{"url": "/a"}, ""); answer.Fault != nil || string(answer.Body) != "hello ***" {
				t.Errorf("answer %s %s", answer.Head, answer.Body)
			}
		})
	}
	all.Wait()
	if n := fetched.Load(); n != 1 {
		t.Errorf("%d tokens were fetched for 8 requests at once, want 1", n)
	}
	valid.Store("revoked")
	wantStatus(t, r.do(c, fields{"method": "POST", "url": "/a"}, ""), 200)
	if n := fetched.Load(); n != 2 {
		t.Errorf("%d tokens were fetched after one was refused, want 2", n)
	}
	r.client.SetNow(func() time.Time { return time.Now().Add(2 * time.Hour) })
	wantStatus(t, r.do(c, fields{"url": "/a"}, ""), 200)
	if n := fetched.Load(); n != 3 {
		t.Errorf("%d tokens were fetched after one expired, want 3", n)
	}
	r.secrets["key"] = "rotated"
	wantFault(t, r.do(c, fields{"url": "/a"}, ""), access.CodeRefused, "401")
}

// TestRefusedToken gives up after one new token.
func TestRefusedToken(t *testing.T) {
	t.Parallel()
	var fetched atomic.Int64
	r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/token" {
			_, _ = fmt.Fprintf(w, `{"access_token":"token-%d","token_type":"bearer"}`, fetched.Add(1))
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
	})
	c := r.connection()
	c.HTTP.Auth = &access.Auth{Kind: access.AuthOAuth2, TokenURL: r.origin() + "/token"}
	wantStatus(t, r.do(c, fields{"url": "/"}, ""), http.StatusUnauthorized)
	if n := fetched.Load(); n != 2 {
		t.Errorf("%d tokens were fetched, want 2", n)
	}
}

func TestWrongTokens(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"not JSON": "<html>", "no token": `{}`, "another type": `{"access_token":"a","token_type":"mac"}`,
		"two lines": `{"access_token":"a\r\nb","token_type":"bearer"}`, "endless": strings.Repeat(" ", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, answer) })
			c := r.connection()
			c.HTTP.Auth = &access.Auth{Kind: access.AuthOAuth2, TokenURL: r.origin() + "/token"}
			wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeRefused, "bearer token")
		})
	}
}

// TestTokenAddress checks the token server's address as it does any other.
func TestTokenAddress(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.connection()
	c.HTTP.Auth = &access.Auth{Kind: access.AuthOAuth2, TokenURL: "http://169.254.169.254/token"}
	wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeDenied, "private address")
	r.names.set("login.example.com", "10.0.0.1")
	c.HTTP.Auth.TokenURL = "http://login.example.com/token"
	wantFault(t, r.do(c, fields{"url": "/"}, ""), access.CodeDenied, "private address")
	r.undialed()
}

// FuzzEchoes holds that no credential stays in a text.
func FuzzEchoes(f *testing.F) {
	f.Add("a", secretValue, "b")
	f.Add("\x00\x01", "aaaaaaaa", "aaaa")
	f.Fuzz(func(t *testing.T, before, value, after string) {
		if len(value) < 8 || contains("***", value) || len(value) > 1000 {
			return
		}
		for _, form := range []string{value, base64.StdEncoding.EncodeToString([]byte(before + value + after)), url.QueryEscape(value)} {
			text := httpreach.Clean(before+form+after, value)
			if contains(text, value) && !contains(value, "*") {
				t.Fatalf("%q is in %q", value, text)
			}
			if !contains(text, "***") {
				t.Fatalf("nothing was found in %q", before+form+after)
			}
		}
	})
}

// FuzzWithoutParameter holds that net/url sees no such parameter any more.
func FuzzWithoutParameter(f *testing.F) {
	f.Add("a=1&key=2", "key")
	f.Add("a=1;%6bey=2&key", "key")
	f.Fuzz(func(t *testing.T, query, name string) {
		if name == "" {
			return
		}
		values, _ := url.ParseQuery(httpreach.WithoutParameter(query, name))
		if values.Has(name) {
			t.Fatalf("%q still has %q", httpreach.WithoutParameter(query, name), name)
		}
	})
}

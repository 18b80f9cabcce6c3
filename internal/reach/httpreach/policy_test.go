package httpreach_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run/access"
)

func TestGrant(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(r *rig)
		rule   string // "": it is allowed
		add    string
	}{
		"both":                   {func(*rig) {}, "", ""},
		"nothing granted":        {func(r *rig) { r.policy.Grants.HTTP = nil }, "no rule", `allow = ["GET ORIGIN/data/a"]`},
		"no rule":                {func(r *rig) { r.policy.Grants.HTTP.Allow = nil }, "no rule", `allow = ["GET ORIGIN/data/a"]`},
		"empty list":             {func(r *rig) { r.policy.Grants.HTTP.Allow = []string{} }, "no rule", `allow = ["GET ORIGIN/data/a"]`},
		"another method":         {func(r *rig) { r.policy.Grants.HTTP.Allow = []string{"POST " + r.origin() + "/**"} }, "no rule", `allow = ["GET ORIGIN/data/a"]`},
		"another path":           {func(r *rig) { r.policy.Grants.HTTP.Allow = []string{"GET " + r.origin() + "/b/**"} }, "no rule", `allow = ["GET ORIGIN/data/a"]`},
		"operator without http":  {func(r *rig) { r.policy.Allow.HTTP = nil }, `allow "*" (flowhost.hcl:12)`, `allow = ["GET ORIGIN/data/a"]`},
		"operator without rule":  {func(r *rig) { r.policy.Allow.HTTP.Allow = nil }, `allow "*"`, `allow = ["GET ORIGIN/data/a"]`},
		"operator, another path": {func(r *rig) { r.policy.Allow.HTTP.Allow = []string{"GET " + r.origin() + "/b"} }, `allow "*"`, `allow = ["GET ORIGIN/data/a"]`},
		"empty policy":           {func(r *rig) { r.policy = access.Policy{} }, "no rule", `allow = ["GET ORIGIN/data/a"]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			test.change(r)
			answer := r.get(r.origin() + "/data/a?token=1")
			if test.rule == "" {
				wantStatus(t, answer, 200)
				return
			}
			f := wantFault(t, answer, access.CodeDenied, test.rule)
			if want := strings.ReplaceAll(test.add, "ORIGIN", r.origin()); f.Add != want {
				t.Errorf("add %s, want %s", f.Add, want)
			}
			if want := "GET " + r.origin() + "/data/a"; f.Target != want {
				t.Errorf("target %s, want %s", f.Target, want)
			}
			r.untouched()
		})
	}
}

func TestConnection(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change func(r *rig, c *access.Connection)
		code   string // "": it is allowed
		rule   string
		add    string
	}{
		"both":                 {func(*rig, *access.Connection) {}, "", "", ""},
		"by name":              {func(r *rig, _ *access.Connection) { r.policy.Allow.Connections = []string{"api"} }, "", "", ""},
		"not granted":          {func(r *rig, _ *access.Connection) { r.policy.Grants.Connections = nil }, access.CodeDenied, "not granted", "connections = [connection.api]"},
		"a star is no grant":   {func(r *rig, _ *access.Connection) { r.policy.Grants.Connections = []string{"*"} }, access.CodeDenied, "not granted", "connections = [connection.api]"},
		"another is granted":   {func(r *rig, _ *access.Connection) { r.policy.Grants.Connections = []string{"apis"} }, access.CodeDenied, "not granted", "connections = [connection.api]"},
		"operator names none":  {func(r *rig, _ *access.Connection) { r.policy.Allow.Connections = nil }, access.CodeDenied, `allow "*"`, `connections = ["api"]`},
		"operator, another":    {func(r *rig, _ *access.Connection) { r.policy.Allow.Connections = []string{"b"} }, access.CodeDenied, `allow "*"`, `connections = ["api"]`},
		"no rule":              {func(_ *rig, c *access.Connection) { c.HTTP.Allow = nil }, access.CodeDenied, "no rule", `allow = ["GET /data/a"]`},
		"another path":         {func(_ *rig, c *access.Connection) { c.HTTP.Allow = []string{"GET /b"} }, access.CodeDenied, "no rule", `allow = ["GET /data/a"]`},
		"another type":         {func(_ *rig, c *access.Connection) { c.HTTP, c.Type = nil, "postgres" }, access.CodeInvalid, "postgres", ""},
		"wrong base URL":       {func(_ *rig, c *access.Connection) { c.HTTP.BaseURL = "api" }, access.CodeInvalid, "base URL", ""},
		"wrong rule":           {func(_ *rig, c *access.Connection) { c.HTTP.Allow = []string{"GET"} }, access.CodeInvalid, "rule", ""},
		"the grant is no help": {func(r *rig, c *access.Connection) { c.HTTP.Allow = []string{"GET /b"}; r.policy.Allow.HTTP = nil }, access.CodeDenied, "no rule", `allow = ["GET /data/a"]`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c := r.connection()
			test.change(r, c)
			answer := r.do(c, fields{"url": "/data/a"}, "")
			if test.code == "" {
				wantStatus(t, answer, 200)
				return
			}
			if f := wantFault(t, answer, test.code, test.rule); f.Add != test.add {
				t.Errorf("add %s, want %s", f.Add, test.add)
			}
			r.untouched()
		})
	}
}

func TestConnectionTargets(t *testing.T) {
	t.Parallel()
	for _, url := range []string{
		"data", "http://127.0.0.1/", "//other.example.com/", "@other.example.com/", ".other.example.com/", ":1/", "/../x", "/a/%2e%2e/%2e%2e/x", `/\other`, "/a#b", "",
	} {
		t.Run(url, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			c := r.connection()
			c.HTTP.BaseURL += "/v3"
			if answer := r.do(c, fields{"url": url}, ""); answer.Fault == nil {
				t.Errorf("it is answered %s", answer.Head)
			}
			r.untouched()
		})
	}
}

func TestMissingConnection(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	f := wantFault(t, r.do(nil, fields{"connection": "api", "url": "/"}, ""), access.CodeDenied, "not declared")
	if !f.Retryable {
		t.Error("the next deployment may declare it")
	}
	wantFault(t, r.do(nil, fields{"connection": "none", "url": "/"}, ""), access.CodeDenied, "not granted")
	wantFault(t, r.do(r.connection(), fields{"connection": "", "url": "/"}, ""), access.CodeInvalid)
	wantFault(t, r.do(r.connection(), fields{"connection": "other", "url": "/"}, ""), access.CodeInvalid)
	r.untouched()
}

func TestHeads(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"not JSON":            `{`,
		"a list":              `[]`,
		"null":                `null`,
		"two objects":         `{}{}`,
		"no URL":              `{"method":"GET"}`,
		"unknown member":      `{"url":"http://a/","proxy":"http://b"}`,
		"other case":          `{"URL":"http://a/"}`,
		"method in lower":     `{"url":"http://a/","method":"get"}`,
		"method CONNECT":      `{"url":"http://a/","method":"CONNECT"}`,
		"method with space":   `{"url":"http://a/","method":"GET /x HTTP/1.1\r\nHost: b"}`,
		"headers as strings":  `{"url":"http://a/","headers":{"A":"1"}}`,
		"negative timeout":    `{"url":"http://a/","timeout_ms":-1}`,
		"timeout as a string": `{"url":"http://a/","timeout_ms":"1"}`,
		"negative redirects":  `{"url":"http://a/","redirects":-1}`,
		"fraction":            `{"url":"http://a/","redirects":1.5}`,
		"key as a number":     `{"url":"http://a/","idempotency_key":1}`,
		"empty key":           `{"url":"http://a/","idempotency_key":""}`,
		"key with a newline":  `{"url":"http://api.example.com/","idempotency_key":"a\r\nb"}`,
		"connection, quotes":  `{"url":"/","connection":"a\"]\n"}`,
		"too long":            `{"url":"` + strings.Repeat("a", 1<<20) + `"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.policy.Grants.HTTP.Allow = []string{"GET http://api.example.com/"}
			r.policy.Allow.HTTP.Allow = r.policy.Grants.HTTP.Allow
			wantFault(t, r.client.Do(t.Context(), r.caller, r.policy, nil, &access.Operation{Kind: access.KindHTTP, Head: json.RawMessage(text)}), access.CodeInvalid)
			r.untouched()
		})
	}
}

func TestWrongKind(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	wantFault(t, r.client.Do(t.Context(), r.caller, r.policy, nil, &access.Operation{Kind: access.KindKVGet, Head: json.RawMessage(`{}`)}), access.CodeInvalid)
}

// TestLessIsNeverMore leaves optional keys out of grants that are drawn at random: never does
// the server get more requests for it.
func TestLessIsNeverMore(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, request *http.Request) {
		if request.URL.Path == "/a" {
			http.Redirect(w, request, "/b", http.StatusFound)
		}
		_, _ = w.Write(make([]byte, 2000))
	})
	random := rand.New(rand.NewPCG(1, 2))
	maybe := func() bool { return random.IntN(4) > 0 }
	drawn := func() *access.HTTPGrant {
		g := &access.HTTPGrant{}
		if maybe() {
			g.Allow = []string{"GET " + r.origin() + "/a"}
		}
		if maybe() {
			g.Allow = append(g.Allow, "GET "+r.origin()+"/b")
		}
		if maybe() {
			g.Private = []string{r.address()}
		}
		if maybe() {
			g.Redirects = 1
		}
		return g
	}
	allowed, reduced := 0, 0
	for range 300 {
		r.policy = access.Policy{Grants: access.Grants{HTTP: drawn()}, Allow: &access.Allow{HTTP: drawn(), Connections: []string{"api"}, Private: []string{r.address()}}}
		c := (*access.Connection)(nil)
		if random.IntN(2) == 0 {
			c = r.connection()
			c.HTTP.Allow, c.HTTP.Redirects = []string{"GET /a", "GET /b"}, 1
			r.policy.Grants.Connections = []string{"api"}
		}
		more := r.reach(c)
		for _, leave := range omissions(&r.policy, c) {
			undo := leave()
			less := r.reach(c)
			undo()
			if less > more {
				t.Fatalf("reach %d with less and %d with more: %+v", less, more, r.policy)
			}
			if less < more {
				reduced++
			}
		}
		if more > 0 {
			allowed++
		}
	}
	if allowed < 30 || reduced < 30 {
		t.Errorf("only %d grants allowed anything, and %d omissions took something: this proves nothing", allowed, reduced)
	}
}

// reach is how many requests an operation makes: 0 denied, 1 the first, 2 with its redirect.
func (r *rig) reach(c *access.Connection) int64 {
	r.Helper()
	url := "/a"
	if c == nil {
		url = r.origin() + url
	}
	before := r.requests.Load()
	answer := r.do(c, fields{"url": url}, "")
	made := r.requests.Load() - before
	if made == 0 && answer.Fault == nil {
		r.Fatalf("answer %s without a request", answer.Head)
	}
	return made
}

// omissions leave out one key each, and return how to put it back.
func omissions(p *access.Policy, c *access.Connection) []func() func() {
	all := []func() func(){
		omit(&p.Grants.HTTP), omit(&p.Allow.HTTP), omit(&p.Allow.Connections), omit(&p.Allow.Private), omit(&p.Grants.Connections),
		omit(&p.Grants.HTTP.Allow), omit(&p.Grants.HTTP.Private), omit(&p.Grants.HTTP.Redirects),
		omit(&p.Allow.HTTP.Allow), omit(&p.Allow.HTTP.Private), omit(&p.Allow.HTTP.Redirects),
	}
	if c != nil {
		all = append(all, omit(&c.Private), omit(&c.HTTP.Allow), omit(&c.HTTP.Redirects))
	}
	return all
}

func omit[T any](field *T) func() func() {
	return func() func() {
		var zero T
		kept := *field
		*field = zero
		return func() { *field = kept }
	}
}

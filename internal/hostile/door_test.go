package hostile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
)

// outsideFlows are granted something of each kind. PORT is that of a server on this machine.
const outsideFlows = `
secret "legacy" {
  file = "SECRET"
}

connection "api" {
  type     = "http"
  base_url = "http://api.example.com/base"
  allow    = ["GET /open/*"]

  auth {
    bearer = secret.legacy
  }
}

connection "inner" {
  type     = "http"
  base_url = "http://127.0.0.1:PORT"
  allow    = ["GET /**"]
}

connection "stock" {
  type   = "sqlite"
  path   = "stock.db"
  access = "rw"
}

connection "archive" {
  type = "sqlite"
  path = "archive.db"
}

connection "link" {
  type   = "sqlite"
  path   = "link.db"
  access = "rw"
}

connection "warehouse" {
  type = "postgres"
  dsn  = "postgres://reader@127.0.0.1:PORT/stock"
}

connection "lake" {
  type = "mysql"
  dsn  = "reader@tcp(127.0.0.1:PORT)/stock"
}

connection "post" {
  type = "smtp"
  host = "127.0.0.1"
  port = PORT
  from = "flows@example.com"
  to   = ["*@example.com"]
  starttls = "none"
}

connection "ungranted" {
  type     = "http"
  base_url = "http://ungranted.example.com"
  allow    = ["GET /**"]
}

flow "granted" {
  task "do" {
    plugin   = "./door.wasm"
    function = "operations"
    input    = trigger.payload

    grant {
      connections = [connection.api, connection.inner, connection.stock, connection.archive, connection.link, connection.warehouse, connection.lake, connection.post]
      kv          = { counters = "rw", prices = "ro" }
      publish     = ["orders.priced.*"]
      request     = ["pricing.v2.*"]
      secrets     = { token = secret.legacy }
      artifacts   = true

      http {
        allow = ["GET http://public.example.com/data/**", "GET http://127.0.0.1:PORT/**", "GET http://169.254.169.254/**"]
      }
    }
  }
}

flow "bare" {
  task "do" {
    plugin   = "./door.wasm"
    function = "operations"
    input    = trigger.payload
  }
}
`

// outside counts what leaves the host: by HTTP it is the requests that the operator's proxy
// gets, which is asked for names and addresses, otherwise the connections to a listener.
type outside struct {
	proxied, dialed atomic.Int64
	proxy, direct   string // addresses
}

func newOutside(t *testing.T) *outside {
	t.Helper()
	o := &outside{}
	proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		o.proxied.Add(1)
		fmt.Fprint(w, "{}")
	}))
	t.Cleanup(proxy.Close)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			o.dialed.Add(1)
			conn.Close()
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-ended
	})
	o.proxy, o.direct = proxy.Listener.Addr().String(), listener.Addr().String()
	return o
}

func (o *outside) all() int64 { return o.proxied.Load() + o.dialed.Load() }

// newOutsideStage starts a host with flows that reach outside.
func newOutsideStage(ctx context.Context, t *testing.T, o *outside, flows, settings string) *stage {
	t.Helper()
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	files := filepath.Join(dir, "flows")
	_, port, _ := net.SplitHostPort(o.direct)
	in := strings.NewReplacer("PORT", port, "PROXY", o.proxy, "SECRET", secret)
	err := errors.Join(
		os.MkdirAll(files, 0o700), os.WriteFile(secret, []byte("s3cret-of-the-corpus"), 0o600),
		os.WriteFile(filepath.Join(files, "flowhost.hcl"), []byte(in.Replace(settings)), 0o600),
		os.WriteFile(filepath.Join(files, "elsewhere.db"), nil, 0o600), os.WriteFile(filepath.Join(files, "archive.db"), nil, 0o600),
		os.Symlink("elsewhere.db", filepath.Join(files, "link.db")),
		os.Link(filepath.Join(built.guests, "door.wasm"), filepath.Join(files, "door.wasm")),
	)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStage(ctx, dir, in.Replace(flows))
	if s != nil {
		t.Cleanup(func() {
			if err := s.close(); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// outsideSettings allow what the flows are granted, and more. Everything by HTTP goes through
// the proxy.
const outsideSettings = `
log_level = "debug"

egress {
  proxy = "http://PROXY"
}

allow "*" {
  connections = ["*"]
  kv          = { "*" = "rw" }
  publish     = ["orders.>"]
  request     = ["pricing.>"]
  secrets     = ["legacy"]
  artifacts   = true
  sources { file = ["SECRET"] }

  http {
    allow = ["GET,POST http://*.example.com/**", "GET http://127.0.0.1:PORT/**", "GET http://169.254.169.254/**"]
  }
}
`

// operation is what the guest does, without an SDK.
type operation struct {
	Kind   string `json:"kind"`
	Head   string `json:"head"`
	Body   string `json:"body,omitempty"`
	Filler int    `json:"filler,omitempty"`
	Times  int    `json:"times,omitempty"`
}

// operate runs a flow that performs operations.
func (s *stage) operate(ctx context.Context, flow string, all ...operation) (run string, answers []string, err error) {
	payload, err := json.Marshal(all)
	if err != nil {
		return "", nil, err
	}
	r, err := ask[struct {
		Run, State string
		Output     struct{ Do []string }
		Error      json.RawMessage
	}](ctx, s.operator, "fh.v1.api.run."+flow, string(payload), nats.Header{"Fh-Wait": {"60s"}})
	if err == nil && (r.State != "succeeded" || len(r.Output.Do) != len(all)) {
		err = fmt.Errorf("the run is %+v: %s", r, r.Error)
	}
	return r.Run, r.Output.Do, err
}

// codeOf is the code of an answer that is a fault.
func codeOf(answer string) (code, rule string) {
	var fault struct{ Code, Rule string }
	if json.Unmarshal([]byte(answer), &fault) != nil {
		return answer, "" // a number
	}
	return fault.Code, fault.Rule
}

// TestDoor has guests that ask for what they must not have, through the whole program. Each
// is refused with the code of the fault, found in the host's log and, where it is denied, in
// that of the attempt; nothing leaves the host; and a neighbor's flow is served meanwhile.
func TestDoor(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	o := newOutside(t)
	s := newOutsideStage(ctx, t, o, outsideFlows, outsideSettings)

	// What is granted leaves the host: the counters count.
	for _, granted := range []operation{
		{Kind: "http", Head: `{"url":"http://public.example.com/data/x"}`},
		{Kind: "http", Head: `{"connection":"api","url":"/open/x"}`},
	} {
		before := o.all()
		if _, answers, err := s.operate(ctx, "granted", granted); err != nil || !strings.Contains(answers[0], `"status":200`) || o.all() != before+1 {
			t.Fatalf("%s: %v %v, %d left the host", granted.Head, answers, err, o.all()-before)
		}
	}
	for _, flow := range []string{"granted", "bare"} {
		for _, c := range doorCases() {
			if flow == "bare" && c.bare == "" {
				continue
			}
			want := c.code
			if flow == "bare" {
				want = c.bare
			}
			before := o.all()
			run, answers, err := s.operate(ctx, flow, c.operation)
			if err != nil {
				t.Errorf("%s: %s: %v", flow, c.name, err)
				continue
			}
			code, rule := codeOf(answers[0])
			if code != want || flow == "granted" && !strings.Contains(rule, c.rule) {
				t.Errorf("%s: %s: %q by %q, want %q by %q: %.300s", flow, c.name, code, rule, want, c.rule, answers[0])
			}
			if n := o.all() - before; n != 0 {
				t.Errorf("%s: %s: %d requests or connections left the host", flow, c.name, n)
			}
			if code == "denied" {
				s.wantDenied(ctx, t, flow+": "+c.name, run)
			} else if !strings.HasPrefix(answers[0], "-") && !s.logged(ctx, regexp.MustCompile(`operation failed.*run=`+run+`.*code=`+code)) {
				t.Errorf("%s: %s: not in the log of the host", flow, c.name)
			}
		}
		if _, err := s.honest(ctx, s.operator, 7); err != nil {
			t.Error(err)
		}
	}
	if err := s.alive(); err != nil {
		t.Error(err)
	}
	if text, err := os.ReadFile(s.log()); err != nil || strings.Contains(string(text), "s3cret-of-the-corpus") {
		t.Error("the log of the host has the secret, or cannot be read:", err)
	}
}

// wantDenied looks for a denial in the log of the host and in that of the attempt.
func (s *stage) wantDenied(ctx context.Context, t *testing.T, what, run string) {
	t.Helper()
	if !s.logged(ctx, regexp.MustCompile(`level=WARN msg="operation denied".*run=`+run)) {
		t.Errorf("%s: not in the log of the host", what)
	}
	page, err := ask[struct{ Lines []struct{ Message string } }](ctx, s.operator, "fh.v1.api.logs", fmt.Sprintf(`{"run":%q}`, run), nil)
	if err != nil {
		t.Error(what, err)
	}
	for _, line := range page.Lines {
		if strings.HasPrefix(line.Message, "denied: ") {
			return
		}
	}
	t.Errorf("%s: not in the log of the attempt: %+v", what, page)
}

// logged reports whether the log of the host has a line, as soon as it has it: the host has
// written it before it answered, but it comes through a pipe.
func (s *stage) logged(ctx context.Context, line *regexp.Regexp) bool {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for ctx.Err() == nil {
		if text, err := os.ReadFile(s.log()); err == nil && line.Match(text) {
			return true
		}
		waitFor(ctx, askPace)
	}
	return false
}

type doorCase struct {
	name string
	operation
	code string
	rule string // part of the fault's rule
	bare string // code without any grant; "": not tried
}

// doorCases are the attacks of guests, by kind.
func doorCases() []doorCase {
	var all []doorCase
	add := func(name, kind, head, body, code, rule, bare string) {
		all = append(all, doorCase{name: kind + " " + name, operation: operation{Kind: kind, Head: head, Body: body}, code: code, rule: rule, bare: bare})
	}
	head := func(members ...any) string {
		fields := map[string]any{}
		for i := 0; i < len(members); i += 2 {
			fields[members[i].(string)] = members[i+1]
		}
		text, _ := json.Marshal(fields)
		return string(text)
	}
	for name, url := range map[string]string{
		"127.1": "http://127.1/", "hex": "http://0x7f.1/", "octal": "http://0177.0.0.1/", "number": "http://2130706433/", "zone": "http://[fe80::1%25lo]/",
		"user": "http://public.example.com@127.0.0.1/data/x", "fragment": "http://127.0.0.1#@public.example.com/data/x", "tab": "http://public.exam\tple.com/data/x",
		"newline": "http://public.example.com/data/x\r\nHost: other", "two dots": "http://public.example.com../data/x", "up": "http://public.example.com/data/../etc",
		"encoded up": "http://public.example.com/data/%2e%2e/etc", "encoded slash": "http://public.example.com/data/a%2f..%2f..%2fetc",
		"backslash": `http://public.example.com\@127.0.0.1/data/x`, "file": "file:///etc/passwd", "gopher": "gopher://public.example.com/data/x", "relative": "/data/x",
	} {
		add(name, "http", head("url", url), "", "denied", "canonical form", "denied")
	}
	for name, url := range map[string]string{
		"unspecified": "http://0.0.0.0/", "IPv6 loopback": "http://[::1]/", "mapped": "http://[::ffff:10.0.0.1]/", "NAT64": "http://[64:ff9b::a9fe:a9fe]/",
		"6to4": "http://[2002:7f00:1::]/", "broadcast": "http://255.255.255.255/", "shared": "http://100.64.0.1/", "localhost": "http://localhost./", "bare domain": "http://example.com/data/x",
		"homoglyph": "http://рublic.example.com/data/x", "other path": "http://public.example.com/database", "other port": "http://public.example.com:8080/data/x",
		"other scheme": "https://public.example.com/data/x", "subdomain": "http://x.public.example.com/data/x",
	} {
		add(name, "http", head("url", url), "", "denied", "", "denied")
	}
	add("loopback", "http", head("url", "http://127.0.0.1:PORT/x"), "", "denied", "", "denied")
	add("metadata", "http", head("url", "http://169.254.169.254/latest"), "", "denied", "private address", "denied")
	add("method", "http", head("url", "http://public.example.com/data/x", "method", "POST"), "x", "denied", "no rule", "denied")
	add("HEAD for GET", "http", head("url", "http://public.example.com/data/x", "method", "HEAD"), "", "denied", "no rule", "denied")
	add("odd method", "http", head("url", "http://public.example.com/data/x", "method", "GET /etc HTTP/1.1"), "", "invalid", "", "invalid")
	for name, values := range map[string]map[string][]string{
		"Host": {"Host": {"other"}}, "line break": {"X-A": {"b\r\nHost: other"}}, "Transfer-Encoding": {"Transfer-Encoding": {"chunked"}}, "Connection": {"Connection": {"X-Secret"}},
		"Proxy-Authorization": {"Proxy-Authorization": {"Basic x"}}, "Content-Length": {"Content-Length": {"1"}}, "Accept-Encoding": {"Accept-Encoding": {"br"}},
		"odd name": {"X A": {"b"}}, "pseudo": {":authority": {"other"}},
	} {
		add("header "+name, "http", head("url", "http://public.example.com/data/x", "headers", values), "", "invalid", "", "")
	}
	many := map[string][]string{}
	for i := range 3_000 {
		many[fmt.Sprint("X-", i)] = []string{"v"}
	}
	add("3000 headers", "http", head("url", "http://public.example.com/data/x", "headers", many), "", "invalid", "", "")
	add("connection of nobody", "http", head("connection", "nothing", "url", "/x"), "", "denied", "not granted", "denied")
	add("connection that is not granted", "http", head("connection", "ungranted", "url", "/x"), "", "denied", "not granted", "denied")
	add("connection in two spellings", "http", `{"connection":"api","Connection":"ungranted","url":"/open/x"}`, "", "denied", "not granted", "denied")
	add("connection twice", "http", `{"connection":"api","connection":"ungranted","url":"/open/x"}`, "", "denied", "not granted", "denied")
	add("connection that is null at last", "http", `{"connection":"api","connection":null,"url":"http://ungranted.example.com/"}`, "", "denied", "canonical form", "denied")
	add("connection of a database", "http", head("connection", "stock", "url", "/x"), "", "invalid", "", "denied")
	add("beside the base", "http", head("connection", "api", "url", "/../other"), "", "denied", "canonical form", "denied")
	add("absolute for a connection", "http", head("connection", "api", "url", "http://other.example.com/base/open/x"), "", "denied", "", "denied")
	add("beyond the rule", "http", head("connection", "api", "url", "/open/x/y"), "", "denied", "no rule", "denied")
	add("credential of the host", "http", head("connection", "api", "url", "/open/x", "headers", map[string][]string{"Authorization": {"Bearer mine"}}), "", "invalid", "", "denied")
	add("private connection", "http", head("connection", "inner", "url", "/x"), "", "denied", "private address", "denied")
	add("unknown member", "http", head("url", "http://public.example.com/data/x", "proxy", "http://127.0.0.1"), "", "invalid", "", "invalid")

	for name, sql := range map[string]string{
		"two statements": "SELECT 1; DROP TABLE a", "ATTACH": "ATTACH '/etc/passwd' AS p", "PRAGMA": "PRAGMA writable_schema = 1", "VACUUM INTO": "VACUUM INTO 'copy.db'",
		"BEGIN": "BEGIN", "COMMIT": "COMMIT", "comment first": "/* SELECT */ ATTACH 'x' AS y", "load_extension": "SELECT load_extension('x')", "DETACH": "DETACH main",
		"COPY": "COPY a TO PROGRAM 'sh'", "SET ROLE": "SET ROLE admin", "LOAD DATA": "LOAD DATA LOCAL INFILE '/etc/passwd' INTO TABLE a",
	} {
		add(name, "sql.query", head("connection", "stock", "sql", sql), "", "denied", "", "denied")
	}
	add("empty", "sql.query", head("connection", "stock", "sql", " -- nothing"), "", "invalid", "", "denied")
	add("write to what is read", "sql.exec", head("connection", "archive", "sql", "CREATE TABLE a (b)"), "", "denied", "", "denied")
	add("through a link", "sql.exec", head("connection", "link", "sql", "CREATE TABLE a (b)"), "", "denied", "path", "denied")
	add("not granted", "sql.query", head("connection", "ungranted", "sql", "SELECT 1"), "", "denied", "not granted", "denied")
	add("no database", "sql.query", head("connection", "api", "sql", "SELECT 1"), "", "invalid", "", "denied")
	add("private postgres", "sql.query", head("connection", "warehouse", "sql", "SELECT 1"), "", "denied", "private address", "denied")
	add("private mysql", "sql.query", head("connection", "lake", "sql", "SELECT 1"), "", "denied", "private address", "denied")
	add("cursor of nobody", "sql.next", head("connection", "stock", "cursor", 7), "", "conflict", "", "denied")
	add("commit without begin", "sql.commit", head("connection", "stock"), "", "conflict", "", "denied")

	add("private server", "mail", head("connection", "post", "to", []string{"a@example.com"}, "subject", "s"), "x", "denied", "private address", "denied")
	add("another recipient", "mail", head("connection", "post", "to", []string{"a@example.org"}, "subject", "s"), "x", "denied", "", "denied")
	add("line break in the subject", "mail", head("connection", "post", "to", []string{"a@example.com"}, "subject", "s\r\nBcc: b@example.org"), "x", "invalid", "", "denied")
	add("line break in a recipient", "mail", head("connection", "post", "to", []string{"a@example.com\r\nRCPT TO:<b@example.org>"}, "subject", "s"), "x", "invalid", "", "denied")
	add("connection of http", "mail", head("connection", "api", "to", []string{"a@example.com"}), "x", "invalid", "", "denied")

	for name, bucket := range map[string]string{"up": "..", "wildcard": "*", "all": ">", "of the host": "FH_HISTORY", "dot": "a.b", "none": "", "long": strings.Repeat("a", 65)} {
		add("bucket "+name, "kv.get", head("bucket", bucket, "key", "a"), "", "invalid", "", "invalid")
	}
	for name, key := range map[string]string{"wildcard": "a.*", "all": ">", "dots": "a..b", "ends with a dot": "a.", "space": "a b", "64 KB": strings.Repeat("k", 60<<10), "none": ""} {
		add("key "+name, "kv.put", head("bucket", "counters", "key", key), "v", "invalid", "", "invalid")
	}
	add("another bucket", "kv.get", head("bucket", "other", "key", "a"), "", "denied", "not granted", "denied")
	add("what is read", "kv.put", head("bucket", "prices", "key", "a"), "v", "denied", "not granted", "denied")
	add("what is read, too", "kv.delete", head("bucket", "prices", "key", "a"), "", "denied", "not granted", "denied")
	add("unknown operation", "kv.purge", head("bucket", "counters"), "", "invalid", "", "invalid")

	for name, subject := range map[string]string{
		"all": ">", "any": "*", "wildcard inside": "orders.priced.*", "empty token": "orders..priced", "JetStream": "$JS.API.STREAM.DELETE.FH_JOURNAL", "system": "$SYS.REQ.SERVER.PING",
		"inbox": "_INBOX.x", "API": "fh.v1.api.cancel", "trigger": "fh.v1.trigger.bare", "KV": "$KV.FH_KV_counters.a", "space": "orders.priced.a b", "line break": "orders.priced.a\r\nPUB x 0",
		"long": "orders.priced." + strings.Repeat("a", 300),
	} {
		add("to "+name, "publish", head("subject", subject), "x", "invalid", "", "invalid")
		add("to "+name, "request", head("subject", subject), "x", "invalid", "", "invalid")
	}
	add("elsewhere", "publish", head("subject", "orders.other"), "x", "denied", "not granted", "denied")
	add("deeper", "publish", head("subject", "orders.priced.a.b"), "x", "denied", "not granted", "denied")
	add("what is published", "request", head("subject", "orders.priced.a"), "x", "denied", "not granted", "denied")
	for _, name := range []string{"Nats-Msg-Id", "nats-expected-stream", "Nats-TTL", "Nats-Schedule", "Fh-Hops", "Nats-Rollup", "Reply-To", "Status"} {
		add("header "+name, "publish", head("subject", "orders.priced.a", "headers", map[string][]string{name: {"x"}}), "x", "invalid", "", "denied")
	}
	add("reply subject", "publish", head("subject", "orders.priced.a", "reply", "orders.other"), "x", "invalid", "", "invalid")
	add("endless", "request", head("subject", "pricing.v2.a", "timeout_ms", 1<<40), "x", "invalid", "", "denied")

	add("by its other name", "secret", head("name", "legacy"), "", "denied", "not granted", "denied")
	add("of the environment", "secret", head("name", "HOME"), "", "denied", "not granted", "denied")
	add("with more members", "secret", head("name", "token", "flow", "other"), "", "invalid", "", "invalid")

	add("by a digest", "artifact.open", head("digest", "sha256:"+strings.Repeat("a", 64)), "", "not_found", "", "denied")
	add("by a path", "artifact.open", head("digest", "../../nats-context.json"), "", "invalid", "", "")
	add("handle of nobody", "artifact.read", head("handle", 9), "", "invalid", "", "")
	add("negative handle", "artifact.write", head("handle", -1), "x", "invalid", "", "")

	add("unknown kind", "exec", head("path", "/bin/sh"), "", "denied", "unknown kind", "denied")
	add("kind in capitals", "HTTP", head("url", "http://public.example.com/data/x"), "", "denied", "unknown kind", "denied")
	add("word of a kind", "http.get", head("url", "http://public.example.com/data/x"), "", "invalid", "", "invalid")
	add("no kind", "", "{}", "", "-28", "", "-28")
	add("no object", "http", "[]", "", "-28", "", "-28")
	add("deep head", "http", `{"a":`+strings.Repeat("[", 20_000)+strings.Repeat("]", 20_000)+"}", "", "-28", "", "-28")
	add("large head", "http", head("url", strings.Repeat("a", 300<<10)), "", "-1", "", "-1")
	return all
}

// A guest that is denied again and again does not fill the log of the host.
func TestDenialsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s := newOutsideStage(ctx, t, newOutside(t), outsideFlows, strings.ReplaceAll(outsideSettings, `"debug"`, `"info"`))
	name := strings.Repeat("n", 200<<10)
	if _, _, err := s.operate(ctx, "bare", operation{Kind: "secret", Head: `{"name":"` + name + `"}`, Times: 500}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(s.log())
	if n := strings.Count(string(text), "operation denied"); err != nil || n < 1 || n > 100 || len(text) > 1<<20 {
		t.Errorf("%d denials are in a log of %d bytes, %v", n, len(text), err)
	}
}

// TestBodiesAreBoundedTogether is measured, and so not beside other tests. It has 64 requests
// under way at once whose answers never end, and requests with the largest bodies: the host
// takes no more memory than one call may hold.
func TestBodiesAreBoundedTogether(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for part := make([]byte, 1<<20); r.Context().Err() == nil; {
			if _, err := w.Write(part); err != nil {
				return
			}
		}
	}))
	t.Cleanup(server.Close)
	s := newOutsideStage(ctx, t, newOutside(t), `
flow "endless" {
  task "do" {
    plugin   = "./door.wasm"
    function = "together"
    input    = trigger.payload

    grant {
      connections = [connection.endless]
    }
    limits {
      memory = "64MiB"
    }
  }
}
`, `
connection "endless" {
  type     = "http"
  base_url = "`+server.URL+`"
  allow    = ["GET,POST /**"]
  max_body = "64MiB"

  limit {
    concurrency = 1000
  }
}
`)
	if _, err := s.honest(ctx, s.operator, 1); err != nil {
		t.Fatal(err)
	}
	for _, o := range []operation{
		{Kind: "http", Head: `{"connection":"endless","url":"/x"}`, Times: 64},
		{Kind: "http", Head: `{"connection":"endless","url":"/x","method":"POST"}`, Filler: 16 << 20, Times: 64},
	} {
		s.resetPeak()
		payload, _ := json.Marshal(o)
		r, err := ask[struct {
			State  string
			Output struct{ Do []string }
		}](ctx, s.operator, "fh.v1.api.run.endless", string(payload), nats.Header{"Fh-Wait": {"60s"}})
		if err != nil || r.State != "succeeded" || len(r.Output.Do) != 64 {
			t.Fatalf("%+v %v", r, err)
		}
		codes := map[string]int{}
		for _, answer := range r.Output.Do {
			code, _ := codeOf(answer)
			codes[code]++
		}
		if codes["budget"]+codes["-51"]+codes["too_large"] != 64 {
			t.Errorf("answers: %v", codes)
		}
		peak := s.resident("VmHWM:") // 0 elsewhere than on Linux
		t.Logf("%v, %d MiB of memory", codes, peak)
		if peak > 1_000 { // without the bound it is nine times as much
			t.Errorf("%d MiB of memory", peak)
		}
		if _, err := s.honest(ctx, s.operator, 2); err != nil {
			t.Error(err)
		}
	}
}

// keys are the arguments of a grant of which each opens something, with an operation that
// shows it.
var keys = []struct {
	grant string
	operation
}{
	{`connections = [connection.api, connection.stock]`, operation{Kind: "http", Head: `{"connection":"api","url":"/open/x"}`}},
	{`kv = { counters = "rw", prices = "ro" }`, operation{Kind: "kv.put", Head: `{"bucket":"counters","key":"a"}`, Body: "1"}},
	{`publish = ["orders.priced.*"]`, operation{Kind: "publish", Head: `{"subject":"orders.priced.a"}`}},
	{`request = ["pricing.v2.*"]`, operation{Kind: "request", Head: `{"subject":"pricing.v2.a","timeout_ms":1000}`}},
	{`secrets = { token = secret.legacy }`, operation{Kind: "secret", Head: `{"name":"token"}`}},
	{`artifacts = true`, operation{Kind: "artifact.create", Head: `{"name":"a"}`}},
	{"http {\n allow = [\"GET http://public.example.com/data/**\"]\n }", operation{Kind: "http", Head: `{"url":"http://public.example.com/data/x"}`}},
}

// TestAbsentMeansDenied grants every set of keys to a flow: exactly those open something. So
// leaving out a key never allows more.
func TestAbsentMeansDenied(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	connections, _, _ := strings.Cut(outsideFlows, `flow "granted"`)
	sets := 1 << len(keys)
	var flows strings.Builder
	flows.WriteString(connections)
	var probes []operation
	for _, k := range keys {
		probes = append(probes, k.operation)
	}
	for set := range sets {
		fmt.Fprintf(&flows, "flow \"set-%d\" {\n task \"do\" {\n plugin = \"./door.wasm\"\n function = \"operations\"\n input = trigger.payload\n grant {\n", set)
		for i, k := range keys {
			if set>>i&1 == 1 {
				flows.WriteString(k.grant + "\n")
			}
		}
		flows.WriteString(" }\n }\n}\n")
	}
	s := newOutsideStage(ctx, t, newOutside(t), flows.String(), outsideSettings)
	for set := range sets {
		_, answers, err := s.operate(ctx, fmt.Sprint("set-", set), probes...)
		if err != nil {
			t.Fatal(err)
		}
		for i, answer := range answers {
			code, _ := codeOf(answer)
			if granted := set>>i&1 == 1; granted == (code == "denied") {
				t.Errorf("with set %b, %s gives %s", set, probes[i].Kind, answer)
			}
		}
	}
}

// TestAbsentInTheAllowBlock leaves each key out of the operator's block: the host does not
// take flows that are granted it.
func TestAbsentInTheAllowBlock(t *testing.T) {
	t.Parallel()
	o := &outside{proxy: "127.0.0.1:1", direct: "127.0.0.1:2"}
	in := strings.NewReplacer("PORT", "2", "PROXY", o.proxy, "SECRET", "/dev/null")
	validate := func(settings string) (string, error) {
		dir := t.TempDir()
		err := errors.Join(
			os.WriteFile(filepath.Join(dir, "flowhost.hcl"), []byte(in.Replace(settings)), 0o600),
			os.WriteFile(filepath.Join(dir, "flow.hcl"), []byte(in.Replace(outsideFlows)), 0o600),
			os.Link(filepath.Join(built.guests, "door.wasm"), filepath.Join(dir, "door.wasm")))
		if err != nil {
			t.Fatal(err)
		}
		cmd := built.program.Command("validate", dir, "--config", filepath.Join(dir, "flowhost.hcl"))
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	if text, err := validate(outsideSettings); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	for _, line := range strings.Split(outsideSettings, "\n") {
		key, _, found := strings.Cut(strings.TrimSpace(line), " ")
		if !found || !strings.HasPrefix(line, "  ") || key == "proxy" {
			continue
		}
		less := strings.Replace(outsideSettings, line+"\n", "", 1)
		if key == "http" {
			block := outsideSettings[strings.Index(outsideSettings, "  http {"):]
			less = strings.Replace(outsideSettings, block, "}\n", 1)
		}
		text, err := validate(less)
		if err == nil || !strings.Contains(text, "allow") {
			t.Errorf("without %s the block allows as much: %v\n%s", key, err, text)
		}
	}
}

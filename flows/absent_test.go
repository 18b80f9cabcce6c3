package flows

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// stated are values of the arguments of blocks about what is reached, each of which opens more
// than its absence. The keys are paths of the schemas: a new argument needs a value here, or a
// place in unbounded.
var stated = map[string]string{
	"grant.connections": `[connection.web, connection.db, connection.file, connection.mail]`, "grant.files": `{ "./data" = "rw" }`, "grant.kv": `{ bin = "rw" }`,
	"grant.publish": `["orders.*"]`, "grant.request": `["pricing.*"]`, "grant.secrets": `{ token = secret.own }`, "grant.env": `{ REGION = "eu" }`,
	"grant.clock": `"real"`, "grant.random": `"real"`, "grant.artifacts": `true`,
	"grant.http.allow": `["GET https://example.com/**"]`, "grant.http.private": `["10.0.0.5:80"]`, "grant.http.redirects": `3`, "grant.http.max_body": `"32MiB"`,

	"allow.connections": `["*"]`, "allow.files": `{ "." = "rw" }`, "allow.kv": `{ "*" = "rw" }`,
	"allow.publish": `["orders.>"]`, "allow.request": `["pricing.>"]`, "allow.secrets": `["own"]`, "allow.env": `["*"]`,
	"allow.clock": `"real"`, "allow.random": `"real"`, "allow.artifacts": `true`, "allow.private": `["10.0.0.6:443", "10.0.0.7:5432", "10.0.0.8:25"]`,
	"allow.http.allow": `["GET https://example.com/**"]`, "allow.http.private": `["10.0.0.5:80"]`, "allow.http.redirects": `5`, "allow.http.max_body": `"64MiB"`,
	"allow.sources.env": `["OWN", "HEADER", "KEY"]`, "allow.sources.file": `["/run/credentials/**"]`, "allow.sources.age": `["/run/age/**"]`, "allow.sources.vault": `["kv/data/**"]`,

	"http.base_url": `"https://api.example.com/v1"`, "http.allow": `["GET /a/**", "POST /b"]`, "http.headers": `{ X-Own = secret.header }`, "http.redirects": `2`,
	"http.max_body": `"32MiB"`, "http.private": `["10.0.0.6:443"]`, "http.auth.bearer": `secret.bearer`,
	"postgres.dsn": `secret.dsn`, "postgres.access": `"rw"`, "postgres.private": `["10.0.0.7:5432"]`, "postgres.tls.mode": `"require"`,
	"sqlite.path": `"./a.db"`, "sqlite.access": `"rw"`,
	"smtp.host": `"mail.example.com"`, "smtp.port": `25`, "smtp.from": `"flows@example.com"`, "smtp.to": `["*@example.com"]`, "smtp.user": `"flows"`,
	"smtp.password": `secret.password`, "smtp.starttls": `"none"`, "smtp.private": `["10.0.0.8:25"]`,
}

// unbounded are arguments that open nothing: they bound amounts and times, for which others have
// a default, or state how a server is recognized, which is strictest without them.
var unbounded = map[string]string{
	"http.timeout": "time", "http.retry.attempts": "amount", "http.retry.delay": "time", "limit.concurrency": "amount", "limit.rate": "amount",
	"postgres.max_open": "amount", "postgres.max_idle": "time", "proxy": "way", "tls.ca": "recognition", "tls.cert": "recognition", "tls.key": "recognition",
	"tls.server_name": "recognition", "http.tls.mode": "an error", "smtp.tls.mode": "an error",
}

// kinds of blocks of credentials have one shape each; the bearer stands for all.
var otherCredentials = []string{access.AuthBasic, access.AuthHeader, access.AuthQuery, access.AuthOAuth2, access.AuthAWS}

// site is flow files and settings of what is stated, but for one path or all below it.
type site struct{ without string }

func (s site) block(path string, schema *lang.Schema, only func(word string) bool) string {
	var out strings.Builder
	for _, a := range schema.Arguments {
		if value, ok := stated[path+"."+a.Name]; ok && path+"."+a.Name != s.without && only(a.Name) {
			fmt.Fprintf(&out, "%s = %s\n", a.Name, value)
		}
	}
	for _, b := range schema.Blocks {
		if inner := path + "." + b.Name; inner != s.without && only(b.Name) {
			if text := s.block(inner, b.Body, func(string) bool { return true }); text != "" {
				fmt.Fprintf(&out, "%s {\n%s}\n", b.Name, text)
			}
		}
	}
	return out.String()
}

var connectionTypes = map[string]string{"web": access.TypeHTTP, "db": access.TypePostgres, "file": access.TypeSQLite, "mail": access.TypeSMTP}

func (s site) flows() string {
	all := func(string) bool { return true }
	var out strings.Builder
	for name, source := range map[string]string{
		"own": `env = "OWN"`, "header": `env = "HEADER"`, "bearer": "vault = \"kv/data/web\"\nkey = \"token\"", "dsn": `file = "/run/credentials/dsn"`,
		"password": "age = \"/run/age/mail\"\nkey = \"password\"",
	} {
		fmt.Fprintf(&out, "secret %q {\n%s\n}\n", name, source)
	}
	for name, typ := range connectionTypes {
		fmt.Fprintf(&out, "connection %q {\ntype = %q\n%s}\n", name, typ, s.block(typ, reachspec.Connection, func(word string) bool { return reachspec.Has(typ, word) }))
	}
	fmt.Fprintf(&out, "flow \"f\" {\ntask \"t\" {\nplugin = \"./greet.wasm\"\ninput = { name = \"x\" }\ngrant {\n%s}\n}\n}\n", s.block("grant", reachspec.Grant, all))
	return out.String()
}

func (s site) settings() string {
	return "allow \"f\" {\n" + s.block("allow", reachspec.Allow, func(string) bool { return true }) + "}\n"
}

// paths are all paths of a schema, those of blocks among them.
func paths(path string, schema *lang.Schema) []string {
	var all []string
	for _, a := range schema.Arguments {
		all = append(all, path+"."+a.Name)
	}
	for _, b := range schema.Blocks {
		if inner := path + "." + b.Name; !slices.Contains(otherCredentials, b.Name) {
			all = append(append(all, inner), paths(inner, b.Body)...)
		}
	}
	return all
}

// TestEveryArgumentIsStated holds that the property below covers each argument of each block.
func TestEveryArgumentIsStated(t *testing.T) {
	t.Parallel()
	all := slices.Concat(paths("grant", reachspec.Grant), paths("allow", reachspec.Allow))
	for _, path := range paths("connection", reachspec.Connection) {
		word := strings.TrimPrefix(path, "connection.")
		outer, _, _ := strings.Cut(word, ".")
		for _, typ := range connectionTypes {
			if reachspec.Has(typ, outer) {
				all = append(all, typ+"."+word)
			}
		}
	}
	covers := func(of map[string]string, path string) bool {
		_, whole := of[path]
		_, rest, _ := strings.Cut(path, ".")
		_, word := of[rest]
		return whole || word
	}
	isBlock := func(path string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return strings.HasPrefix(other, path+".") })
	}
	for _, path := range all {
		if !isBlock(path) && !strings.HasSuffix(path, ".type") && !covers(stated, path) && !covers(unbounded, path) {
			t.Errorf("what does %s open? State a value of it, or why leaving it out opens nothing", path)
		}
	}
	for path := range stated {
		if !slices.Contains(all, path) {
			t.Errorf("there is no %s", path)
		}
	}
}

// TestLeavingOutNeverAllowsMore leaves each argument and each block out of a grant, of
// connections and of an allow block: what is then allowed was allowed before.
func TestLeavingOutNeverAllowsMore(t *testing.T) {
	t.Parallel()
	whole, diags := allowed(t, site{})
	if len(diags) > 0 || len(whole) < 30 {
		t.Fatalf("%d rights: %v\n%s", len(whole), diags, slices.Sorted(maps.Keys(whole)))
	}
	var all []string
	for path := range stated {
		for ; strings.Contains(path, "."); path = path[:strings.LastIndex(path, ".")] {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	for _, path := range slices.Compact(all) {
		less, diags := allowed(t, site{without: path})
		for right := range less {
			if !whole[right] {
				t.Errorf("without %s, the task may %s", path, right)
			}
		}
		if len(less) >= len(whole) && len(diags) == 0 {
			t.Errorf("without %s, the task may do as much: what is stated opens nothing", path)
		}
	}
}

// allowed is what the task of a site may do by grant and allow block together, each right as a
// sentence, also if the files do not load: the host decides on operations by the same blocks.
func allowed(t *testing.T, s site) (rights map[string]bool, complaint []string) {
	t.Helper()
	o, diags := readOperator(t, s.settings())
	complaint = complaints(diags)
	set, diags := Load(t.Context(), []string{folder(t, map[string]string{"data/x": "", "f.hcl": s.flows()})}, Options{Catalog: modules, Operator: o})
	complaint = append(complaint, complaints(diags)...)
	rights = map[string]bool{}
	f := set.Flow("f")
	if f == nil || len(f.Tasks) == 0 {
		return rights, complaint
	}
	allow, err := set.Allow("f")
	if err != nil {
		t.Fatal(err)
	}
	may := rightsOf(&f.Tasks[0].Grants, allow, func(name string) *access.Connection { return set.Connection("f", name) }, func(name string) *access.Secret { return set.Secret("f", name) })
	for _, right := range may {
		rights[right] = true
	}
	return rights, complaint
}

// rightsOf are probes of all that the sites state.
func rightsOf(granted *run.Grants, allow *access.Allow, connection func(string) *access.Connection, secret func(string) *access.Secret) []string {
	var all []string
	note := func(ok bool, format string, args ...any) {
		if ok {
			all = append(all, fmt.Sprintf(format, args...))
		}
	}
	g := &granted.Grants
	excess := func(one access.Grants) bool { return len(allow.Excess(&one, nil)) == 0 }
	for _, f := range granted.Files {
		note(allow.IncludesFiles(f.Path, access.ReadOnly), "read %s", f.Path)
		note(f.Write && allow.IncludesFiles(f.Path, access.ReadWrite), "write %s", f.Path)
	}
	for bucket, mode := range g.KV {
		note(excess(access.Grants{KV: map[string]access.Mode{bucket: mode}}), "use bucket %s as %s", bucket, mode)
	}
	for _, subject := range g.Publish {
		note(excess(access.Grants{Publish: []string{subject}}), "publish to %s", subject)
	}
	for _, subject := range g.Request {
		note(excess(access.Grants{Request: []string{subject}}), "send requests to %s", subject)
	}
	readable := func(name string) bool {
		s := secret(name)
		return s != nil && allow.SourceExcess(s) == nil
	}
	for guest, name := range g.Secrets {
		note(excess(access.Grants{Secrets: map[string]string{guest: name}}) && readable(name), "get secret %s", name)
	}
	for name, value := range g.Env {
		note(excess(access.Grants{Env: map[string]string{name: value}}), "see %s", name)
	}
	note(g.Clock != "" && excess(access.Grants{Clock: g.Clock}), "see the clock")
	note(g.Random != "" && excess(access.Grants{Random: g.Random}), "see random numbers")
	note(g.Artifacts && excess(access.Grants{Artifacts: true}), "store artifacts")
	if h, bound := g.HTTP, allow.HTTP; h != nil && bound != nil {
		for _, rule := range h.Allow {
			if !access.RuleIncludes(bound.Allow, rule) {
				continue
			}
			note(true, "request %s", rule)
			for _, address := range h.Private {
				note(slices.Contains(bound.Private, address), "request %s at %s", rule, address)
			}
			for n := range min(h.Redirects, bound.Redirects) {
				note(true, "follow %d redirects", n+1)
			}
			for size := int64(access.DefaultBody); size < min(h.Body(), bound.Body()); size += 8 << 20 {
				note(true, "receive more than %d", size)
			}
		}
	}
	for _, name := range g.Connections {
		c := connection(name)
		if c == nil || !excess(access.Grants{Connections: []string{name}}) || slices.ContainsFunc(c.Secrets(), func(name string) bool { return !readable(name) }) {
			continue
		}
		all = append(all, through(c, allow)...)
	}
	return all
}

// through is what a connection that may be used opens.
func through(c *access.Connection, allow *access.Allow) []string {
	all := []string{"use " + c.Name}
	for _, name := range c.Secrets() {
		all = append(all, c.Name+": be known by "+name)
	}
	for _, address := range c.Private {
		if slices.Contains(allow.Private, address) {
			all = append(all, c.Name+": reach "+address)
		}
	}
	switch {
	case c.HTTP != nil && c.HTTP.BaseURL != "":
		for _, rule := range c.HTTP.Allow {
			all = append(all, c.Name+": request "+rule+" below "+c.HTTP.BaseURL)
		}
		for n := range c.HTTP.Redirects {
			all = append(all, fmt.Sprintf("%s: follow %d", c.Name, n+1))
		}
		for size := int64(access.DefaultBody); size < c.HTTP.MaxBody; size += 8 << 20 {
			all = append(all, fmt.Sprintf("%s: receive more than %d", c.Name, size))
		}
	case c.SQL != nil && (c.SQL.Path != "" || c.SQL.DSN != access.Value{}):
		all = append(all, c.Name+": read "+c.Target())
		if c.SQL.Access == access.ReadWrite {
			all = append(all, c.Name+": write "+c.Target())
		}
		if c.TLS != nil && c.TLS.Mode == access.TLSRequire {
			all = append(all, c.Name+": trust whoever answers")
		}
	case c.SMTP != nil && c.SMTP.Host != "" && c.SMTP.From != "":
		for _, to := range c.SMTP.To {
			all = append(all, fmt.Sprintf("%s: mail to %s", c.Name, to))
		}
		if c.SMTP.Port == 25 {
			all = append(all, c.Name+": use port 25")
		}
		if c.SMTP.User != (access.Value{}) {
			all = append(all, c.Name+": log in")
		}
		if c.SMTP.StartTLS == "none" {
			all = append(all, c.Name+": send in the clear")
		}
	}
	return all
}

package flows

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

const connecting = `
variable "stage" {
  default = "test"
}
locals {
  agent = "flows/${var.stage}"
}
secret "token" {
  env = "TOKEN_${upper(var.stage)}"
}
secret "mounted" {
  file = "/run/credentials/x"
}
secret "old" {
  age = "secrets.age"
  key = "old"
}
secret "stripe" {
  vault = "kv/data/stripe"
  key   = "live"
}
connection "api" {
  type      = "http"
  base_url  = "https://${var.stage}.example.com/v1"
  allow     = ["POST,GET /a/*", "GET /%7Euser/**"]
  redirects = 2
  max_body  = "1MiB"
  timeout   = "5s"
  private   = ["10.0.0.5:443", "[fd00::5]:443"]
  proxy     = "http://proxy.example.com:3128"
  headers = {
    User-Agent = local.agent
    "X-Key"    = secret.mounted
  }
  auth {
    oauth2 {
      token_url     = "https://id.example.com/token"
      client_id     = "me"
      client_secret = secret.token
      scopes        = ["read"]
      audience      = "api"
    }
  }
  retry {
    attempts = 3
    delay    = "1s"
  }
  limit {
    rate        = "50/s"
    concurrency = 8
  }
  tls {
    ca   = "ca.pem"
    cert = "tls/cert.pem"
    key  = "tls/key.pem"
  }
}
connection "warehouse" {
  type     = "postgres"
  dsn      = secret.stripe
  max_open = 4
  max_idle = "1m"
  tls {
    mode = "require"
  }
}
connection "shop" {
  type   = "mysql"
  dsn    = "reader@tcp(db.example.com:3306)/shop"
  access = "rw"
}
connection "stock" {
  type = "sqlite"
  path = "./data/stock.db"
}
connection "mail" {
  type     = "smtp"
  host     = "mail.example.com"
  from     = "flows@example.com"
  to       = ["*@example.com"]
  user     = secret.old
  password = secret.old
}
flow "f" {
  task "t" {
    plugin = "./greet.wasm"
    grant {
      connections = [connection.warehouse, connection.stock]
    }
  }
}
`

func TestConnections(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"billing/f.hcl": connecting, "billing/greet.wasm": ""})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	if len(diags) > 0 {
		t.Fatal(text(set, diags))
	}
	at := filepath.Join(dir, "billing")
	proxy := access.Value{Text: "http://proxy.example.com:3128"}
	want := []access.Connection{
		{
			Name: "api", Type: access.TypeHTTP, Folder: at, Private: []string{"10.0.0.5:443", "[fd00::5]:443"}, Proxy: &proxy,
			HTTP: &access.HTTPConnection{
				BaseURL: "https://test.example.com/v1", Allow: []string{"GET,POST /a/*", "GET /~user/**"}, Redirects: 2, MaxBody: 1 << 20, Timeout: 5 * time.Second,
				Headers: map[string]access.Value{"User-Agent": {Text: "flows/test"}, "X-Key": {Secret: "mounted"}},
				Auth: &access.Auth{Kind: access.AuthOAuth2, TokenURL: "https://id.example.com/token", ClientID: access.Value{Text: "me"},
					ClientSecret: access.Value{Secret: "token"}, Scopes: []string{"read"}, Audience: "api"},
				Retry: &access.Retry{Attempts: 3, Delay: time.Second},
			},
			Limit: access.Limit{Concurrency: 8, Rate: 50, Burst: 50}, TLS: &access.TLS{CA: "ca.pem", Cert: "tls/cert.pem", Key: "tls/key.pem"},
		},
		{Name: "mail", Type: access.TypeSMTP, Folder: at, SMTP: &access.SMTPConnection{
			Host: "mail.example.com", Port: 587, From: "flows@example.com", To: []string{"*@example.com"},
			User: access.Value{Secret: "old"}, Password: access.Value{Secret: "old"}, StartTLS: "required",
		}},
		{Name: "shop", Type: access.TypeMySQL, Folder: at, SQL: &access.SQLConnection{DSN: access.Value{Text: "reader@tcp(db.example.com:3306)/shop"}, Access: access.ReadWrite}},
		{Name: "stock", Type: access.TypeSQLite, Folder: at, SQL: &access.SQLConnection{Path: "./data/stock.db", Access: access.ReadOnly}},
		{Name: "warehouse", Type: access.TypePostgres, Folder: at, TLS: &access.TLS{Mode: access.TLSRequire},
			SQL: &access.SQLConnection{DSN: access.Value{Secret: "stripe"}, Access: access.ReadOnly, MaxOpen: 4, MaxIdle: time.Minute}},
	}
	var got []access.Connection
	for _, c := range set.Connections() {
		got = append(got, c.Connection)
		if c.Prefix != "billing/" || set.Connection("billing/f", c.Name) != &c.Connection {
			t.Errorf("%s has the prefix %q", c.Name, c.Prefix)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for name, want := range map[string]access.Secret{
		"token": {Env: "TOKEN_TEST"}, "mounted": {File: "/run/credentials/x"}, "old": {Age: "secrets.age", Key: "old"}, "stripe": {Vault: "kv/data/stripe", Key: "live"},
	} {
		want.Name, want.Folder = name, at
		if diff := cmp.Diff(&want, set.Secret("billing/f", name)); diff != "" {
			t.Error(diff)
		}
	}
	f := set.Flow("billing/f")
	if diff := cmp.Diff(run.Grants{Grants: access.Grants{Connections: []string{"stock", "warehouse"}}}, f.Tasks[0].Grants); diff != "" {
		t.Error(diff)
	}
	if f.Definition.Folder != "" {
		t.Error("the definition depends on where the files are")
	}
	again, diags := Restore(t.Context(), f.Definition, Options{Catalog: byDigest{modules}})
	if len(diags) > 0 || again.Flow("billing/f") == nil || again.Flows[0].DefinitionDigest != f.DefinitionDigest {
		t.Error(text(again, diags))
	}
}

// TestKindsOfCredentials reads each kind of auth block.
func TestKindsOfCredentials(t *testing.T) {
	t.Parallel()
	s := access.Value{Secret: "s"}
	for block, want := range map[string]access.Auth{
		"bearer = secret.s": {Kind: access.AuthBearer, Token: s},
		"basic {\n user = \"u\"\n password = secret.s\n}":       {Kind: access.AuthBasic, User: access.Value{Text: "u"}, Password: s},
		"header {\n name = \"X-Api-Key\"\n value = secret.s\n}": {Kind: access.AuthHeader, Name: "X-Api-Key", Value: s},
		"query {\n name = \"key\"\n value = secret.s\n}":        {Kind: access.AuthQuery, Name: "key", Value: s},
		"aws_sigv4 {\n region = \"eu\"\n service = \"s3\"\n access_key = secret.s\n secret_key = secret.s\n session_token = secret.s\n}": {Kind: access.AuthAWS, Region: "eu", Service: "s3", AccessKey: s, SecretKey: s, SessionToken: s},
	} {
		dir := folder(t, map[string]string{"f.hcl": "secret \"s\" {\n  env = \"S\"\n}\n" + inConnection("auth {\n"+block+"\n}")})
		set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
		if len(diags) > 0 {
			t.Error(text(set, diags))
			continue
		}
		if diff := cmp.Diff(&want, set.Connections()[0].HTTP.Auth); diff != "" {
			t.Errorf("%s: %s", block, diff)
		}
	}
}

// TestConnectionsInJSON writes references as the JSON syntax does.
func TestConnectionsInJSON(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"f.hcl.json": `{
		"secret": {"dsn": {"env": "DSN"}, "token": {"env": "TOKEN"}},
		"connection": {"db": {"type": "postgres", "dsn": "secret.dsn"}, "api": {"type": "http", "base_url": "https://example.com", "allow": ["GET /x"],
			"headers": {"X-Key": "${secret.token}", "Accept": "secretly"}, "auth": {"bearer": "secret.token"}}},
		"flow": {"f": {"task": {"t": {"plugin": "./greet.wasm", "grant": {"connections": ["connection.db", "${connection.api}"], "http": {"allow": ["GET https://example.com/"]}}}}}}
	}`}, Options{})
	f := onlyFlow(t, set)
	if diff := cmp.Diff([]string{"api", "db"}, f.Tasks[0].Grants.Connections); diff != "" {
		t.Error(diff)
	}
	if c := set.Connection("f", "db"); c == nil || c.SQL.DSN != (access.Value{Secret: "dsn"}) {
		t.Errorf("%+v", c)
	}
	want := map[string]access.Value{"X-Key": {Secret: "token"}, "Accept": {Text: "secretly"}}
	if c := set.Connection("f", "api"); c == nil || c.HTTP.Auth.Token.Secret != "token" || !maps.Equal(c.HTTP.Headers, want) {
		t.Errorf("%+v", c)
	}
}

// TestOneFileOfConnections loads a file that uses what others of its directory declare.
func TestOneFileOfConnections(t *testing.T) {
	t.Parallel()
	const flow = "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    grant {\n      connections = [connection.db]\n    }\n  }\n}\n"
	for name, other := range map[string]string{
		"a.hcl":      "secret \"dsn\" {\n  env = \"DSN\"\n}\nconnection \"db\" {\n  type = \"postgres\"\n  dsn  = secret.dsn\n}\nconnection \"unused\" {\n  type = \"wrong\"\n}\n",
		"a.hcl.json": `{"secret": {"dsn": {"env": "DSN"}}, "connection": {"db": {"type": "postgres", "dsn": "secret.dsn"}}}`,
	} {
		dir := folder(t, map[string]string{"f.hcl": flow, name: other})
		set, diags := Load(t.Context(), []string{filepath.Join(dir, "f.hcl")}, Options{Catalog: modules})
		if len(diags) > 0 {
			t.Error(text(set, diags))
		}
		if set.Connection("f", "db") == nil || set.Secret("f", "dsn") == nil {
			t.Errorf("%s: not deployed", name)
		}
	}
}

// operator reads settings, which must have no errors.
func operator(t *testing.T, src string) *Operator {
	t.Helper()
	o, diags := readOperator(t, src)
	if len(diags) > 0 {
		t.Fatal(diags)
	}
	return o
}

func readOperator(t *testing.T, src string) (*Operator, hcl.Diagnostics) {
	t.Helper()
	file, diags := hclsyntax.ParseConfig([]byte(src), "flowhost.hcl", hcl.InitialPos)
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	return ReadOperator(t.Context(), file.Body.(*hclsyntax.Body).Blocks, "flowhost.hcl")
}

const shared = `
connection "shared" {
  type    = "postgres"
  dsn     = secret.shared
  private = ["10.0.0.5:5432"]
}
secret "shared" {
  env = "SHARED"
}
`

func TestOperator(t *testing.T) {
	t.Parallel()
	here, err := filepath.Abs(".")
	if err != nil {
		t.Fatal(err)
	}
	o := operator(t, shared+`
allow "billing/*" {
  connections = ["*"]
  files       = { "./data/" = "rw", "." = "ro" }
  kv          = { "*" = "ro", counters = "rw" }
  publish     = ["orders.>"]
  request     = ["pricing.*"]
  secrets     = ["legacy"]
  env         = ["*"]
  private     = ["10.0.0.9:443"]
  clock       = "real"
  random      = "virtual"
  artifacts   = true
  http {
    allow     = ["POST,GET https://Example.com/a"]
    redirects = 3
  }
  sources {
    env   = ["BILLING_*"]
    file  = ["/run/credentials/**", "keys/"]
    age   = ["./secrets.age"]
    vault = ["kv/data/billing/*"]
  }
}
allow "*" {
}
`)
	want := []access.Allow{{
		Pattern: "billing/*", Connections: []string{"*"}, Files: map[string]access.Mode{"data": "rw", ".": "ro"}, KV: map[string]access.Mode{"*": "ro", "counters": "rw"},
		Publish: []string{"orders.>"}, Request: []string{"pricing.*"}, Secrets: []string{"legacy"}, Env: []string{"*"}, Private: []string{"10.0.0.9:443"},
		Clock: access.Real, Artifacts: true, HTTP: &access.HTTPGrant{Allow: []string{"GET,POST https://example.com/a"}, Redirects: 3}, From: "flowhost.hcl:11",
		Sources: &access.Sources{Env: []string{"BILLING_*"}, File: []string{"/run/credentials/**", here + "/keys"}, Age: []string{here + "/secrets.age"}, Vault: []string{"kv/data/billing/*"}},
	}, {Pattern: "*", From: "flowhost.hcl:34"}}
	if diff := cmp.Diff(want, o.Allow); diff != "" {
		t.Error(diff)
	}
	connection := access.Connection{Name: "shared", Type: access.TypePostgres, Operator: true, Folder: here, Private: []string{"10.0.0.5:5432"},
		SQL: &access.SQLConnection{DSN: access.Value{Secret: "shared"}, Access: access.ReadOnly}}
	if diff := cmp.Diff([]*access.Connection{&connection}, o.Connections); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]*access.Secret{{Name: "shared", Env: "SHARED", Folder: here, Operator: true}}, o.Secrets); diff != "" {
		t.Error(diff)
	}
}

func TestWrongSettingsOfTheOperator(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"allow \"\" {\n}":                                                    "flowhost.hcl:1 name",
		"allow \"a b\" {\n}":                                                 "flowhost.hcl:1 name",
		"allow \"a**\" {\n}":                                                 "flowhost.hcl:1 name",
		"allow \"/a\" {\n}":                                                  "flowhost.hcl:1 name",
		"allow \"a\" {\n}\nallow \"a\" {\n}":                                 "flowhost.hcl:3 duplicate",
		"allow \"a\" {\n  connection = [\"x\"]\n}":                           "flowhost.hcl:2 unknown-argument",
		"allow \"a\" {\n  connections = [connection.x]\n}":                   "flowhost.hcl:2 misplaced",
		"allow \"a\" {\n  secrets = [secret.x]\n}":                           "flowhost.hcl:2 misplaced",
		"allow \"a\" {\n  publish = [\">\"]\n}":                              "flowhost.hcl:2 value",
		"allow \"a\" {\n  private = [\"localhost:80\"]\n}":                   "flowhost.hcl:2 value",
		"allow \"a\" {\n  files = { \"../x\" = \"ro\" }\n}":                  "flowhost.hcl:2 value",
		"allow \"a\" {\n  kv = { x = \"all\" }\n}":                           "flowhost.hcl:2 value",
		"allow \"a\" {\n  clock = \"wall\"\n}":                               "flowhost.hcl:2 value",
		"allow \"a\" {\n  http {\n  }\n}":                                    "flowhost.hcl:2 missing",
		"allow \"a\" {\n  sources {\n    env = [\"A*B\"]\n  }\n}":            "flowhost.hcl:3 value",
		"allow \"a\" {\n  sources {\n    file = [\"/run/../etc/*\"]\n  }\n}": "flowhost.hcl:3 value",
		"allow \"a\" {\n  sources {\n    vault = [\"kv/**/x\"]\n  }\n}":      "flowhost.hcl:3 value",
		"allow \"a\" {\n  sources {\n    path = [\"/run/*\"]\n  }\n}":        "flowhost.hcl:3 unknown-argument",
		"secret \"s\" {\n  env = var.name\n}":                                "flowhost.hcl:2 misplaced",
		"connection \"c\" {\n  type = \"postgres\"\n  dsn = secret.lost\n}":  "flowhost.hcl:3 unknown-name",
		"connection \"c\" {\n  type = \"postgres\"\n}":                       "flowhost.hcl:1 missing",
	} {
		if _, diags := readOperator(t, src); !slices.Equal(complaints(diags), []string{want}) {
			t.Errorf("%s: %v, want %s", src, complaints(diags), want)
		}
	}
}

// TestNamesOfTheOperator has a directory declare names of the settings, and use them.
func TestNamesOfTheOperator(t *testing.T) {
	t.Parallel()
	options := Options{Catalog: modules, Operator: operator(t, shared)}
	use := grantingTask("f", "connections = [connection.shared]")
	set := load(t, map[string]string{"f.hcl": use}, options)
	if c := set.Connection("f", "shared"); c == nil || !c.Operator || set.Connection("another", "shared") != c || len(set.Connections()) != 0 {
		t.Errorf("%+v", c)
	}
	if set.Secret("f", "shared") == nil || set.Secret("f", "lost") != nil || set.Connection("f", "lost") != nil {
		t.Error("secrets")
	}
	for src, want := range map[string]string{
		"connection \"shared\" {\n  type = \"sqlite\"\n  path = \"a.db\"\n}\n":      "f.hcl:1 duplicate",
		"secret \"shared\" {\n  env = \"X\"\n}\n":                                   "f.hcl:1 duplicate",
		"connection \"mine\" {\n  type = \"postgres\"\n  dsn  = secret.shared\n}\n": "f.hcl:3 misplaced",
		"connection \"mine\" {\n  type = \"postgres\"\n  dsn  = secret.shraed\n}\n": "f.hcl:3 unknown-name",
	} {
		set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": src + use})}, options)
		if !slices.Equal(complaints(diags), []string{want}) {
			t.Errorf("%s", text(set, diags))
		}
		if strings.Contains(want, "duplicate") && !strings.Contains(text(set, diags), "flowhost.hcl:") {
			t.Errorf("the other place is not named: %s", text(set, diags))
		}
	}
	f := onlyFlow(t, set)
	if again, diags := Restore(t.Context(), f.Definition, Options{Catalog: byDigest{modules}}); len(diags) > 0 {
		t.Errorf("a run does not begin again without the connection: %s", text(again, diags))
	}
}

// grantingTask is a flow whose task is granted something by itself.
func grantingTask(name, lines string) string {
	return fmt.Sprintf("flow %q {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    grant {\n      %s\n    }\n  }\n}\n", name, lines)
}

// TestWhatAFlowSees has directories with connections of the same name, one of them in two
// places.
func TestWhatAFlowSees(t *testing.T) {
	t.Parallel()
	db := func(path string) string {
		return "connection \"db\" {\n  type = \"sqlite\"\n  path = \"" + path + "\"\n}\n"
	}
	one := folder(t, map[string]string{"f.hcl": db("one.db") + smallFlow("f"), "deep/f.hcl": db("deep.db") + strings.ReplaceAll(smallFlow("f"), "./greet", "../greet")})
	two := folder(t, map[string]string{"g.hcl": db("two.db") + smallFlow("g")})
	for _, tt := range []struct {
		paths []string
		want  map[string]string
	}{
		{[]string{one, two}, map[string]string{"f": "one.db", "g": "two.db", "deep/f": "deep.db", "deep/gone": "deep.db", "gone": "", "else/gone": ""}},
		{[]string{one}, map[string]string{"f": "one.db", "gone": "one.db"}},
	} {
		set, diags := Load(t.Context(), tt.paths, Options{Catalog: modules})
		if len(diags) > 0 {
			t.Fatal(text(set, diags))
		}
		for flow, want := range tt.want {
			got := ""
			if c := set.Connection(flow, "db"); c != nil {
				got = c.SQL.Path
			}
			if got != want {
				t.Errorf("%s sees %q, want %q", flow, got, want)
			}
		}
	}
}

// TestAllow has an operator bound what a flow is granted.
func TestAllow(t *testing.T) {
	t.Parallel()
	const own = "connection \"inner\" {\n  type    = \"sqlite\"\n  path    = \"a.db\"\n}\nsecret \"s\" {\n  env = \"S\"\n}\n" +
		"connection \"web\" {\n  type = \"http\"\n  base_url = \"https://example.com\"\n  allow = [\"GET /\"]\n  auth {\n    bearer = secret.web\n  }\n}\nsecret \"web\" {\n  vault = \"kv/data/web\"\n  key = \"token\"\n}\n"
	for name, tt := range map[string]struct {
		operator, grant string
		want            []string // lines to add
	}{
		"no block":               {"", `publish = ["a.b"]`, nil},
		"no block, a secret":     {"", `secrets = { token = secret.s }`, []string{`secrets = ["s"]`}},
		"another flow's block":   {"allow \"g\" {\n}", `publish = ["a.b"]`, []string{`publish = ["a.b"]`}},
		"an empty block":         {"allow \"f\" {\n}", `connections = [connection.inner]`, []string{`connections = ["inner"]`}},
		"an empty grant":         {"allow \"f\" {\n}", ``, nil},
		"a wide block":           {"allow \"*\" {\n  publish = [\"a.>\"]\n}", `publish = ["a.b"]`, nil},
		"the most specific":      {"allow \"*\" {\n  publish = [\"a.>\"]\n}\nallow \"f\" {\n}", `publish = ["a.b"]`, []string{`publish = ["a.b"]`}},
		"a tie":                  {"allow \"f*\" {\n}\nallow \"*f\" {\n}", `publish = ["a.b"]`, []string{"both match flow \"f\""}},
		"a directory":            {"allow \"f\" {\n  files = { \"./data\" = \"ro\" }\n}", `files = { "./data" = "rw" }`, []string{`files = { "./data" = "rw" }`}},
		"a directory below":      {"allow \"f\" {\n  files = { \".\" = \"rw\" }\n}", `files = { "./data" = "rw" }`, nil},
		"a secret with its key":  {"allow \"f\" {\n  secrets = [\"*\"]\n  sources {\n    env = [\"S\"]\n  }\n}", `secrets = { token = secret.s }`, nil},
		"a secret's source":      {"allow \"f\" {\n  secrets = [\"*\"]\n}", `secrets = { token = secret.s }`, []string{`sources { env = ["S"] }`}},
		"another source":         {"allow \"f\" {\n  secrets = [\"*\"]\n  sources {\n    env = [\"T*\"]\n    file = [\"/**\"]\n  }\n}", `secrets = { token = secret.s }`, []string{`sources { env = ["S"] }`}},
		"a connection's source":  {"allow \"f\" {\n  connections = [\"*\"]\n}", `connections = [connection.web]`, []string{`sources { vault = ["kv/data/web"] }`}},
		"all sources of Vault":   {"allow \"f\" {\n  connections = [\"*\"]\n  sources {\n    vault = [\"kv/data/**\"]\n  }\n}", `connections = [connection.web]`, nil},
		"a clock with its key":   {"allow \"f\" {\n  clock = \"real\"\n  publish = [\"a\"]\n}", "clock = \"real\"\n      publish = [\"a\"]", nil},
		"a clock without a key":  {"", "clock = \"real\"\n      publish = [\"a\"]", []string{`clock = "real"`}},
		"a clock without a net":  {"", "clock = \"real\"\n      connections = [connection.inner]", nil},
		"a shared connection":    {shared + "allow \"f\" {\n  connections = [\"shared\"]\n}", `connections = [connection.shared]`, nil},
		"without an allow block": {shared, `connections = [connection.shared]`, nil},
	} {
		dir := folder(t, map[string]string{"f.hcl": own + grantingTask("f", tt.grant)})
		set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules, Operator: operator(t, tt.operator)})
		if len(diags) != len(tt.want) {
			t.Errorf("%s: %s", name, text(set, diags))
			continue
		}
		for i, line := range tt.want {
			if RuleOf(diags[i]) != RuleAllow || !strings.Contains(diags[i].Detail, line) {
				t.Errorf("%s: %s", name, text(set, diags))
			}
		}
	}
}

// TestAllowIsReportedOnce has many tasks with the grant of one plugin.
func TestAllowIsReportedOnce(t *testing.T) {
	t.Parallel()
	src := "plugin \"p\" {\n  source = \"./greet.wasm\"\n  grant {\n    publish = [\"a\"]\n  }\n}\nflow \"f\" {\n"
	for i := range 20 {
		src += fmt.Sprintf("  task \"t%d\" {\n    plugin = plugin.p\n  }\n", i)
	}
	set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": src + "}\n"})}, Options{Catalog: modules, Operator: operator(t, "allow \"g\" {\n}")})
	if diff := cmp.Diff([]string{"f.hcl:4 allow"}, complaints(diags)); diff != "" {
		t.Error(diff, text(set, diags))
	}
}

// TestRunsBeganBeforeTheAllowBlock restores a flow that would not be loaded any more: the
// host decides on its operations.
func TestRunsBeganBeforeTheAllowBlock(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"f.hcl": grantingTask("f", `publish = ["a"]`)}, Options{})
	again, diags := Restore(t.Context(), onlyFlow(t, set).Definition, Options{Catalog: byDigest{modules}, Operator: operator(t, "allow \"f\" {\n}")})
	if len(diags) > 0 || onlyFlow(t, again).Tasks[0].Grants.Publish == nil {
		t.Error(text(again, diags))
	}
	if a, err := again.Allow("f"); err != nil || a == nil || a.Publish != nil {
		t.Errorf("%+v %v", a, err)
	}
}

// TestDeployedIsASet holds what the host asks of a set.
func TestDeployedIsASet(t *testing.T) {
	t.Parallel()
	var _ access.Deployed = new(Set)
	if new(Set).Connection("f", "x") != nil || new(Set).Secret("f", "x") != nil {
		t.Error("an empty set has connections")
	}
}

// FuzzOperator reads blocks of settings: whatever they hold, nothing panics and every
// diagnostic is complete.
func FuzzOperator(f *testing.F) {
	f.Add(shared)
	f.Add("allow \"*\" {\n  files = { \".\" = \"ro\" }\n  http {\n    allow = [\"GET https://example.com/**\"]\n  }\n}\n")
	if src, err := os.ReadFile("testdata/diagnostics/connections.hcl"); err == nil {
		f.Add(string(src))
	}
	f.Fuzz(func(t *testing.T, src string) {
		file, diags := hclsyntax.ParseConfig([]byte(src), "flowhost.hcl", hcl.InitialPos)
		body, ok := file.Body.(*hclsyntax.Body)
		if diags.HasErrors() || !ok {
			return
		}
		o, diags := ReadOperator(t.Context(), body.Blocks, "flowhost.hcl")
		for _, d := range diags {
			if RuleOf(d) == "" || d.Subject == nil {
				t.Fatalf("incomplete: %#v", d)
			}
		}
		if diags.HasErrors() {
			return
		}
		for _, c := range o.Connections {
			if !c.Operator || c.Folder == "" || (c.HTTP != nil) == (c.SQL != nil) && c.SMTP == nil {
				t.Fatalf("%+v", c)
			}
		}
		for i := range o.Allow {
			if x := o.Allow[i].Excess(&access.Grants{}, nil); x != nil {
				t.Fatalf("%+v", x)
			}
		}
	})
}

package settings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const reaching = `
workers = 2
connection "warehouse" {
  type = "postgres"
  dsn  = secret.dsn
}
secret "dsn" {
  env = "DSN"
}
allow "*" {
  connections = ["warehouse"]
}
secrets {
  age_identities = ["id.txt", "/etc/id.txt"]
  vault {
    address    = "https://vault.example.com:8200"
    token_file = "token"
    namespace  = "flows"
    ca         = "ca.pem"
  }
}
egress {
  proxy = "http://proxy.example.com:3128"
}
`

func TestReach(t *testing.T) {
	t.Parallel()
	s, diags := decodeSettings([]byte(reaching), filepath.Join("etc", "flowhost.hcl"))
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	at := func(name string) string { return filepath.Join("etc", name) }
	want := Secrets{
		Identities: []string{at("id.txt"), "/etc/id.txt"},
		Vault:      Vault{Address: "https://vault.example.com:8200", TokenFile: at("token"), Namespace: "flows", CA: at("ca.pem")},
	}
	if diff := cmp.Diff(want, s.Secrets); diff != "" {
		t.Error(diff)
	}
	if s.Proxy != "http://proxy.example.com:3128" || s.Workers == nil || *s.Workers != 2 {
		t.Errorf("%+v", s)
	}
	o := s.Operator
	if o == nil || len(o.Connections) != 1 || len(o.Secrets) != 1 || len(o.Allow) != 1 {
		t.Fatalf("%+v", o)
	}
	if dir, err := filepath.Abs("etc"); err != nil || o.Connections[0].Folder != dir || o.Secrets[0].Folder != dir || !o.Connections[0].Operator {
		t.Errorf("%+v %+v", o.Connections[0], o.Secrets[0])
	}
}

func TestWrongReach(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"connection \"x\" {\n  type = \"postgres\"\n}":               `needs the argument "dsn"`,
		"conection \"x\" {\n}":                                       "Unsupported block type",
		"egress {\n  proxy = \"socks5://x:1\"\n}":                    `"proxy" must be the URL of a server`,
		"egress {\n  proxy = \"http://u:hunter2@x\"\n}":              `"proxy" must not contain credentials`,
		"secrets {\n  vault {\n    address = \"vault:8200\"\n  }\n}": `"address" must be the URL of a server`,
		"allow \"a b\" {\n}":                                         `matches no flow`,
		"secret \"x\" {\n  env = \"X\"\n  file = \"y\"\n}":           `leave "env" or "file" out`,
	} {
		_, diags := decodeSettings([]byte(source), "flowhost.hcl")
		if out := diags.Error(); !diags.HasErrors() || !strings.Contains(out, want) || strings.Contains(out, "hunter2") {
			t.Errorf("%s: %v", source, diags)
		}
	}
}

// TestChangesOfReach shows names, and that something of them has changed.
func TestChangesOfReach(t *testing.T) {
	t.Parallel()
	before := decoded(t, reaching)
	for replaced, want := range map[string]string{
		`"DSN"|"OTHER"`:                       "secret",
		`["warehouse"]|["*"]`:                 "allow",
		`= "postgres"|= "mysql"`:              "connection",
		`proxy.example.com|proxy.example.org`: "egress.proxy",
		`"id.txt", |`:                         "secrets.age_identities",
		`vault.example.com|vault.example.org`: "secrets.vault.address",
		`"flows"|"other"`:                     "secrets.vault.namespace",
	} {
		old, now, _ := strings.Cut(replaced, "|")
		changes := Changes(before, decoded(t, strings.Replace(reaching, old, now, 1)))
		if len(changes) != 1 || changes[0].Name != want || !changes[0].Live || changes[0].Before == changes[0].Now {
			t.Errorf("%s: %+v", replaced, changes)
		}
	}
	changes := Changes(before, decoded(t, "workers = 2"))
	for _, c := range changes {
		if c.Now != "none" && c.Now != "default" {
			t.Errorf("%+v", c)
		}
	}
	if len(changes) != 9 {
		t.Errorf("%+v", changes)
	}
}

// TestConnectionsOfTheDocs loads the settings of docs/connections.md.
func TestConnectionsOfTheDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "connections.md"))
	if err != nil {
		t.Fatal(err)
	}
	samples := strings.Split(string(page), "```hcl settings\n")[1:]
	if len(samples) < 2 {
		t.Fatalf("%d samples", len(samples))
	}
	for _, sample := range samples {
		sample, _, _ = strings.Cut(sample, "```")
		decoded(t, sample)
	}
}

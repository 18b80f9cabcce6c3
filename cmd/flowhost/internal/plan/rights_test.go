package plan

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/bus/api"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

func TestRightsOfEveryKind(t *testing.T) {
	t.Parallel()
	r := rights{task: "t"}
	secrets := func(name string) *access.Secret {
		return map[string]*access.Secret{
			"dsn": {Name: "dsn", Vault: "kv/data/dsn", Key: "url"}, "legacy": {Name: "legacy", Env: "LEGACY"}, "shared": {Name: "shared", Env: "SHARED", Operator: true},
		}[name]
	}
	r.files([]run.FileGrant{{Path: "in"}, {Path: "out", Write: true}})
	r.grants(&access.Grants{
		Connections: []string{"github"},
		HTTP:        &access.HTTPGrant{Allow: []string{"GET https://example.com/"}, Private: []string{"10.0.0.5:80"}, Redirects: 2, MaxBody: 32 << 20},
		KV:          map[string]access.Mode{"a": "ro", "b": "rw"}, Publish: []string{"o.>"}, Request: []string{"p"},
		Secrets: map[string]string{"token": "legacy"}, Env: map[string]string{"REGION": "eu"}, Clock: access.Real, Random: access.Real, Artifacts: true,
	})
	r.sources([]string{"legacy", "shared", "gone"}, secrets)
	r.through("github", &access.Connection{Type: access.TypeHTTP, Private: []string{"10.0.0.6:443"}, HTTP: &access.HTTPConnection{BaseURL: "https://api.example.com/v1/", Allow: []string{"GET,POST /a"}, Redirects: 1}}, secrets)
	r.through("db", &access.Connection{Type: access.TypePostgres, SQL: &access.SQLConnection{DSN: access.Value{Secret: "dsn"}, Access: access.ReadWrite}}, secrets)
	r.through("mail", &access.Connection{Type: access.TypeSMTP, SMTP: &access.SMTPConnection{Host: "mail.example.com", Port: 587, To: []string{"*@example.com"}}}, secrets)
	r.through("shared", &access.Connection{Type: access.TypePostgres, Operator: true, SQL: &access.SQLConnection{DSN: access.Value{Text: "x"}}}, secrets)
	r.through("gone", nil, secrets)
	var got []string
	for _, right := range r.all {
		got = append(got, right.Right+" "+right.To)
	}
	want := []string{
		"read ./in", "read ./out", "write ./out", "use connection.github", "request GET https://example.com/", "follow up to 2 redirects",
		"receive up to 32 MiB in a response", "reach 10.0.0.5:80", "read keys of bucket a", "read keys of bucket b", "write keys of bucket b",
		"publish to o.>", "send requests to p", "get the value of secret.legacy", "see variable REGION", "see the real clock", "see real random numbers", "store artifacts",
		"use secrets from env LEGACY",
		"reach with connection.github 10.0.0.6:443", "request with connection.github GET,POST https://api.example.com/v1/a", "follow with connection.github up to 1 redirects",
		"use secrets with connection.db from vault kv/data/dsn, key url", "read with connection.db secret.dsn", "write with connection.db secret.dsn", "mail with connection.mail *@example.com through mail.example.com:587",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		before, after string // "right | to", with ; between
		want          string
	}{
		{"", "read | ./in", "+read ./in"},
		{"read | ./in", "read | ./in/deep", "-read ./in"},
		{"read | ./in/deep", "read | ./in", "+read ./in"},
		{"publish to | o.>", "publish to | o.*", "-publish to o.>"},
		{"publish to | o.*", "publish to | o.>", "+publish to o.>"},
		{"send requests to | o.a", "send requests to | o.b", "+send requests to o.b -send requests to o.a"},
		{"request | GET https://*.example.com/**", "request | GET https://a.example.com/x", "-request GET https://*.example.com/**"},
		{"request | GET https://a.example.com/x; request | POST https://a.example.com/x", "request | GET,POST https://a.example.com/x", ""},
		{"request | GET https://a.example.com/x", "request | GET,POST https://a.example.com/x", "+request GET,POST https://a.example.com/x"},
		{"request with connection.a | GET https://a.example.com/x", "request with connection.b | GET https://a.example.com/x", "+request with connection.b GET https://a.example.com/x -request with connection.a GET https://a.example.com/x"},
		{"follow | up to 3 redirects", "follow | up to 2 redirects", "-follow up to 3 redirects"},
		{"follow | up to 2 redirects", "follow | up to 10 redirects", "+follow up to 10 redirects"},
		{"mail with connection.m | *@example.com through a:25", "mail with connection.m | x@example.com through a:25", "-mail with connection.m *@example.com through a:25"},
		{"mail with connection.m | x@example.com through a:25", "mail with connection.m | x@example.com through b:25", "+mail with connection.m x@example.com through b:25 -mail with connection.m x@example.com through a:25"},
		{"read with connection.d | db", "read with connection.d | db/other", "+read with connection.d db/other -read with connection.d db"},
		{"read keys of | bucket a", "write keys of | bucket a", "+write keys of bucket a -read keys of bucket a"},
	} {
		var got []string
		for _, g := range grantChanges(rightsOf(tt.before), rightsOf(tt.after)) {
			sign := "-"
			if g.Grows {
				sign = "+"
			}
			got = append(got, sign+g.Right.Right+" "+g.To)
		}
		if diff := cmp.Diff(tt.want, strings.Join(got, " ")); diff != "" {
			t.Errorf("%s to %s: %s", tt.before, tt.after, diff)
		}
	}
}

func rightsOf(text string) []api.Right {
	var all []api.Right
	for one := range strings.SplitSeq(text, "; ") {
		if right, to, ok := strings.Cut(one, " | "); ok {
			all = append(all, api.Right{Task: "t", Right: right, To: to})
		}
	}
	return all
}

// TestConnectionsAreShownWithoutCredentials holds for whatever a connection contains.
func TestConnectionsAreShownWithoutCredentials(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]*access.Connection{
		"unknown":                                nil,
		"http https://example.com":               {Type: "http", HTTP: &access.HTTPConnection{BaseURL: "https://example.com", Headers: map[string]access.Value{"X": {Text: "hunter2"}}}},
		"postgres db.example.com:5432/stock, ro": {Type: "postgres", SQL: &access.SQLConnection{DSN: access.Value{Text: "postgres://app@db.example.com:5432/stock?user=hunter2"}, Access: "ro"}},
		"mysql tcp(db:3306)/shop, rw":            {Type: "mysql", SQL: &access.SQLConnection{DSN: access.Value{Text: "hunter2@tcp(db:3306)/shop?x=hunter2"}, Access: "rw"}},
		"postgres a database, ro":                {Type: "postgres", SQL: &access.SQLConnection{DSN: access.Value{Text: "host=db user=hunter2"}, Access: "ro"}},
		"postgres secret.dsn, ro":                {Type: "postgres", SQL: &access.SQLConnection{DSN: access.Value{Secret: "dsn"}, Access: "ro"}},
		"sqlite ./a.db, ro":                      {Type: "sqlite", SQL: &access.SQLConnection{Path: "./a.db", Access: "ro"}},
		"smtp mail:25":                           {Type: "smtp", SMTP: &access.SMTPConnection{Host: "mail", Port: 25, User: access.Value{Text: "hunter2"}}},
		"mysql, of the settings of the host":     {Type: "mysql", Operator: true, SQL: &access.SQLConnection{DSN: access.Value{Text: "hunter2"}}},
	} {
		if got := describe(c); got != want || strings.Contains(fmt.Sprint(got), "hunter2") {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

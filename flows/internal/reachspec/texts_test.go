package reachspec

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/internal/httprule"
	"github.com/flowhost/flowhost/run/access"
)

func TestTexts(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("a", MaxName+1)
	for name, tt := range map[string]struct {
		check        func(string) error
		right, wrong []string
	}{
		"address": {Address, []string{"10.0.0.5:5432", "[fd00::5]:1", "127.0.0.1:80", "[::1]:65535"}, []string{
			"", "10.0.0.5", "10.0.0.5:", "10.0.0.5:0", "10.0.0.5:65536", "localhost:80", "010.0.0.5:80", "127.1:80", "[::ffff:10.0.0.1]:80", "0.0.0.0:80", "[::]:80",
			"[fe80::1%lo]:80", "[FD00::5]:80", "[fd00:0::5]:80", "224.0.0.1:80", "10.0.0.5:080", " 10.0.0.5:80", "10.0.0.0/8:80",
		}},
		"subject": {Subject, []string{"a", "a.b", "a.*.c", "a.>", "orders-v1.x_y"}, []string{
			"", ".", "a.", ".a", "a..b", "a b", "a\tb", "a\x00", "a\u007f", "a.>.b", "a*", "a.b>", ">", "*", "*.a", "$JS.API.>", "$SYS.>", "_INBOX.>", "fh.v1.>", "fh",
		}},
		"bucket":   {Bucket, []string{"a", "A_b-9"}, []string{"", "..", "a.b", "a/b", "*", ">", "ä", long}},
		"variable": {Variable, []string{"A", "_a9"}, []string{"", "9A", "A=B", "A-B", "*", "A B", "Ä", long}},
		"header":   {Header, []string{"X-Api-Key", "accept"}, []string{"", "X Y", "X:Y", "X\r\nY", "ä", long}},
		"dsn": {DSN, []string{"postgres://app@db.example.com/x", "host=db.example.com user=app", "app@tcp(db.example.com:3306)/x", "tcp(db:3306)/x"}, []string{
			"postgres://app:pw@db.example.com/x", "postgres://db.example.com/x?password=pw", "host=db password=pw", "host=db PASSWORD = pw", "app:pw@tcp(db:3306)/x",
		}},
		"url":       {BaseURL, []string{"https://example.com", "http://example.com:8080/v1", "https://example.com/v1/"}, []string{"", "example.com", "ftp://example.com", "https://", "https://u:p@example.com", "https://u@example.com", "https://example.com/?a=b", "https://example.com/#a", "https://example.com/a/../b", "https://example.com//a", "https:example.com", "https://127.1/", "https://exa mple.com"}},
		"mailbox":   {Mailbox, []string{"ops@example.com", "a+b@example.com"}, []string{"", "ops", "@example.com", "ops@", "Ops <ops@example.com>", "a@b@c", "a b@c", "a@b\r\nBcc: x@y", "*@example.com", "a@.b", "ä@example.com", "a,b@example.com"}},
		"recipient": {Recipient, []string{"ops@example.com", "*@example.com"}, []string{"", "*", "*@", "*ops@example.com", "*@*", "*@example.com,x@y"}},
		"host":      {Host, []string{"mail.example.com", "10.0.0.5", "fd00::5", "localhost"}, []string{"", "mail.example.com:25", "https://mail", "a..b", ".a", "a.", "ä.example.com", "a b", "a/b"}},
		"pattern":   {Pattern, []string{"*", "a", "billing/*", "*/a", "a*b"}, []string{"", "a b", "**", "a.b", "/a", "a/", "a//b", "a>"}},
		"below":     {Below, []string{"a", "./a/b.db", "a/../b"}, []string{"", ".", "..", "../a", "/etc/x", "a/../../b", "a\\b", "a\x00"}},
		"file":      {File, []string{"/run/x", "a"}, []string{"", "a\x00"}},
		"vault":     {VaultPath, []string{"kv/data/stripe"}, []string{"", "/kv", "kv/", "kv/../sys", "kv?x", "kv#x", "kv//x", "kv/%2e%2e", "a b"}},
		"proxy":     {Proxy, []string{"http://proxy.example.com:3128"}, []string{"", "socks5://proxy", "http://u:p@proxy", "proxy:3128"}},
		"directory": {Directory, []string{".", "./", "a", "./a/"}, []string{"..", "/", "../a"}},
		"variables": {VariablePattern, []string{"A", "A_*", "*"}, []string{"", "**", "*A", "A*B", "A-*", "9*"}},
		"files": {func(text string) error { _, err := FilePattern("/srv")(text); return err }, []string{"/run/x", "/run/*/x", "/run/**", "a", "./a/**", "/**"}, []string{
			"", "/run/../etc/x", "..", "../x", "/run/**/x", "/run/a*", "/run/***", "/a\x00", "/a\n/b",
		}},
		"paths of vault": {VaultPattern, []string{"kv/data/a", "kv/data/*/b", "kv/data/**"}, []string{"", "/kv", "kv/../sys", "kv/**/a", "kv/a*", "kv//a"}},
		"any":            {AnyVariable, []string{"*", "A"}, []string{"**", "A*"}},
	} {
		for _, text := range tt.right {
			if err := tt.check(text); err != nil {
				t.Errorf("%s %q: %v", name, text, err)
			}
		}
		for _, text := range tt.wrong {
			if tt.check(text) == nil {
				t.Errorf("%s %q is taken", name, text)
			}
		}
	}
}

// TestErrorsDoNotRepeatCredentials holds for texts that may contain them.
func TestErrorsDoNotRepeatCredentials(t *testing.T) {
	t.Parallel()
	for _, check := range []func(string) error{BaseURL, Proxy, DSN} {
		for _, text := range []string{"https://u:hunter2@example.com", "https://u:hunter2@exa mple.com", "://u:hunter2@x", "postgres://u:hunter2@%zz/", "u:hunter2@tcp(x)/y"} {
			if err := check(text); err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("%q: %v", text, err)
			}
		}
	}
}

// TestTypes holds that every word of a connection block has a place, and each type what it
// needs.
func TestTypes(t *testing.T) {
	t.Parallel()
	known := func(word string) bool { return Connection.Argument(word) != nil || Connection.Block(word) != nil }
	for word := range TypesOf {
		if !known(word) {
			t.Errorf("a connection block has no %q", word)
		}
	}
	for typ, words := range Required {
		for _, word := range words {
			if !known(word) || !Has(typ, word) {
				t.Errorf("%s needs %q, and does not have it", typ, word)
			}
		}
	}
	arguments, blocks := Connection.Names()
	for _, word := range append(arguments, blocks...) {
		if _, limited := TypesOf[word]; !limited && word != "type" && word != "limit" {
			t.Errorf("nothing states which types have %q", word)
		}
	}
	for _, source := range Sources() {
		if Secret.Argument(source) == nil {
			t.Errorf("a secret block has no %q", source)
		}
	}
}

// TestAllowHasTheKeysOfGrant holds that the operator can bound whatever is granted.
func TestAllowHasTheKeysOfGrant(t *testing.T) {
	t.Parallel()
	words := func(s *lang.Schema) map[string]bool {
		all := map[string]bool{}
		arguments, blocks := s.Names()
		for _, word := range append(arguments, blocks...) {
			all[word] = true
		}
		return all
	}
	grant, allow := words(Grant), words(Allow)
	for word := range grant {
		if !allow[word] {
			t.Errorf("an allow block has no %q", word)
		}
	}
	if len(allow) != len(grant)+2 || !allow["private"] || !allow["sources"] {
		t.Errorf("beside the keys of grant there are private and sources only: %v", allow)
	}
	bounded, _ := allowSources.Names()
	if !slices.Equal(bounded, Sources()) {
		t.Errorf("a sources block has %v, and secrets have %v", bounded, Sources())
	}
}

// FuzzRules holds that a rule that is taken includes its own canonical form, and that what it
// includes is what the dialer's rule matches.
func FuzzRules(f *testing.F) {
	f.Add("GET https://example.com/a/**", "https://example.com/a/b")
	f.Add("GET,POST https://*.example.com/%7Ea/*", "https://x.example.com/~a/b")
	f.Add("GET http://[::1]:80/", "http://[::1]/")
	f.Add("GET /a/*/b", "https://example.com/a/x/b")
	f.Fuzz(func(t *testing.T, text, url string) {
		if rule, err := PathRule(text); err == nil && !access.RuleIncludes([]string{rule}, rule) {
			t.Errorf("%q does not include itself", rule)
		}
		canonical, err := RequestRule(text)
		if err != nil {
			return
		}
		if again, err := RequestRule(canonical); err != nil || again != canonical {
			t.Errorf("%q becomes %q: %v", canonical, again, err)
		}
		if !access.RuleIncludes([]string{canonical}, canonical) {
			t.Errorf("%q does not include itself", canonical)
		}
		target, err := httprule.ParseTarget(url)
		if err != nil {
			return
		}
		one := httprule.Exact("GET", target)
		rule, err := httprule.Parse(canonical)
		if err == nil && rule.Match("GET", target) && !access.RuleIncludes([]string{canonical}, one.String()) {
			t.Errorf("%q matches %s, and does not include %q", canonical, url, one)
		}
	})
}

// FuzzTexts holds that any text can be checked, and that what is opened is one address.
func FuzzTexts(f *testing.F) {
	for _, text := range []string{"10.0.0.5:80", "orders.>", "kv/data/x", "*@example.com", "postgres://u:p@h/d", "https://example.com/a", "billing/*", "./data"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, check := range []func(string) error{Bucket, Variable, Header, DSN, BaseURL, Mailbox, Recipient, Host, Pattern, Below, File, VaultPath, Proxy, Directory, NotEmpty} {
			check(text)
		}
		if Address(text) == nil {
			if at, err := netip.ParseAddrPort(text); err != nil || at.String() != text || at.Addr().Zone() != "" || at.Addr().Is4In6() {
				t.Errorf("%q is an address", text)
			}
		}
		if Subject(text) == nil && (text[0] == '$' || text[0] == '_' || text[0] == '>' || text[0] == '*' || strings.HasPrefix(text, "fh.")) {
			t.Errorf("%q is a subject", text)
		}
	})
}

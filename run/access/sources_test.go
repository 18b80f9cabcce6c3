package access

import (
	"math/rand/v2"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestSourceExcess(t *testing.T) {
	t.Parallel()
	bound := &Allow{Pattern: "f", Sources: &Sources{
		Env: []string{"BILLING_*", "TOKEN"}, File: []string{"/run/credentials/**", "/srv/*/token"}, Age: []string{"/flows/secrets.age"}, Vault: []string{"kv/data/billing/**"},
	}}
	for _, tt := range []struct {
		secret Secret
		line   string // "" if it is allowed
	}{
		{Secret{Env: "TOKEN"}, ""},
		{Secret{Env: "BILLING_KEY"}, ""},
		{Secret{Env: "BILLING_"}, ""},
		{Secret{Env: "BILLING"}, `sources { env = ["BILLING"] }`},
		{Secret{Env: "token"}, `sources { env = ["token"] }`},
		{Secret{Env: "TOKEN2"}, `sources { env = ["TOKEN2"] }`},
		{Secret{File: "/run/credentials/a/b"}, ""},
		{Secret{File: "/run/credentials/./a//b"}, ""},
		{Secret{File: "/run/credentials/../x"}, `sources { file = ["/run/x"] }`},
		{Secret{File: "/run/credentials"}, `sources { file = ["/run/credentials"] }`},
		{Secret{File: "/run/credentials2/a"}, `sources { file = ["/run/credentials2/a"] }`},
		{Secret{File: "/srv/a/token"}, ""},
		{Secret{File: "/srv/a/b/token"}, `sources { file = ["/srv/a/b/token"] }`},
		{Secret{File: "token", Folder: "/srv/a"}, ""},
		{Secret{File: "../../etc/shadow", Folder: "/srv/a"}, `sources { file = ["/etc/shadow"] }`},
		{Secret{File: "/flows/secrets.age"}, `sources { file = ["/flows/secrets.age"] }`},
		{Secret{Age: "secrets.age", Folder: "/flows", Key: "a"}, ""},
		{Secret{Age: "/run/credentials/x", Key: "a"}, `sources { age = ["/run/credentials/x"] }`},
		{Secret{Vault: "kv/data/billing/x", Key: "a"}, ""},
		{Secret{Vault: "kv/data/billing", Key: "a"}, `sources { vault = ["kv/data/billing"] }`},
		{Secret{Vault: "kv/metadata/billing/x", Key: "a"}, `sources { vault = ["kv/metadata/billing/x"] }`},
		{Secret{Env: "ANY", Operator: true}, ""},
		{Secret{}, ""},
	} {
		got := ""
		if x := bound.SourceExcess(&tt.secret); x != nil {
			got = x.Line
		}
		if got != tt.line {
			t.Errorf("%+v: %q, want %q", tt.secret, got, tt.line)
		}
	}
	for name, block := range map[string]*Allow{"no sources": {Pattern: "f"}, "an empty block": {Pattern: "f", Sources: new(Sources)}} {
		for _, s := range []Secret{{Env: "TOKEN"}, {File: "/run/credentials/a"}, {Age: "/flows/secrets.age"}, {Vault: "kv/data/billing/x"}} {
			if block.SourceExcess(&s) == nil {
				t.Errorf("%s: %+v is allowed", name, s)
			}
		}
	}
	if x := (*Allow)(nil).SourceExcess(&Secret{Env: "ANY"}); x != nil {
		t.Errorf("without an allow block: %+v", x)
	}
}

// TestSourceFault holds that the guest does not see the place, and the operator the line.
func TestSourceFault(t *testing.T) {
	t.Parallel()
	a := &Allow{Pattern: "billing/*"}
	s := &Secret{File: "/run/hidden"}
	f := a.SourceFault("billing/a", "s", a.SourceExcess(s))
	if strings.Contains(f.Message+f.Add+f.Target, "hidden") || f.Code != CodeDenied || f.Rule != RuleOperator {
		t.Errorf("%+v", f)
	}
	if want := `sources { file = ["/run/hidden"] }, in allow "billing/*" { … } of the settings`; f.Full().Add != want {
		t.Errorf("%q, want %q", f.Full().Add, want)
	}
}

// TestSourcesAgainstAModel compares random patterns and places with regular expressions: what
// is allowed is what a person would read.
func TestSourcesAgainstAModel(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(5, 6))
	path := func(words ...string) string {
		var out strings.Builder
		for range r.IntN(4) + 1 {
			out.WriteString("/" + words[r.IntN(len(words))])
		}
		return out.String()
	}
	model := func(pattern string) *regexp.Regexp {
		text := regexp.QuoteMeta(pattern)
		text = strings.ReplaceAll(text, `/\*\*`, `/.+`)
		return regexp.MustCompile("^" + strings.ReplaceAll(text, `\*`, `[^/]+`) + "$")
	}
	allowed := 0
	for range 20_000 {
		pattern := path("a", "b", "*")
		if r.IntN(3) == 0 {
			pattern += "/**"
		}
		written := path("a", "b", "c", "..", ".", "")
		s := &Secret{File: written}
		got := (&Allow{Sources: &Sources{File: []string{pattern}}}).SourceExcess(s) == nil
		if want := model(pattern).MatchString(filepath.ToSlash(filepath.Clean(written))); got != want {
			t.Fatalf("%s as %s: %t, want %t", written, pattern, got, want)
		}
		if got {
			allowed++
		}
	}
	if allowed < 500 {
		t.Errorf("%d of 20000 are allowed", allowed)
	}
}

// FuzzSources holds that any texts can be compared, that what is allowed is below the part of
// the pattern that is written out, and that nothing leads out of it.
func FuzzSources(f *testing.F) {
	f.Add("/run/credentials/**", "/run/credentials/../../etc/shadow")
	f.Add("/srv/*/x", "/srv/../x")
	f.Add("BILLING_*", "BILLING_A")
	f.Add("kv/data/**", "kv/data/x")
	f.Fuzz(func(t *testing.T, pattern, place string) {
		list := []string{pattern}
		a := &Allow{Sources: &Sources{Env: list, File: list, Age: list, Vault: list}}
		fixed, _, wild := strings.Cut(pattern, "*")
		for _, s := range []*Secret{{Env: place}, {File: place, Folder: "/flows"}, {Age: place, Folder: "/flows"}, {Vault: place}} {
			if place == "" || a.SourceExcess(s) != nil {
				continue
			}
			where := s.Env + s.Vault
			if where == "" {
				where = filepath.ToSlash(s.Path())
			}
			if !strings.HasPrefix(where, fixed) || !wild && where != pattern {
				t.Errorf("%q allows %q", pattern, where)
			}
			if s.Path() != "" && (strings.Contains(where+"/", "/../") || !filepath.IsAbs(s.Path())) {
				t.Errorf("%q allows %q", pattern, where)
			}
			if a.Sources = nil; a.SourceExcess(s) == nil {
				t.Errorf("without sources, %q is allowed", where)
			}
			a.Sources = &Sources{Env: list, File: list, Age: list, Vault: list}
		}
	})
}

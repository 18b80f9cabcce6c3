package access

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// subjectMatches is the rule of NATS.
func subjectMatches(pattern, subject string) bool {
	p, s := strings.Split(pattern, "."), strings.Split(subject, ".")
	for i, token := range p {
		if token == ">" {
			return len(s) > i
		}
		if i >= len(s) || token != "*" && token != s[i] {
			return false
		}
	}
	return len(p) == len(s)
}

// TestSubjectIncludes compares with all subjects of few tokens.
func TestSubjectIncludes(t *testing.T) {
	t.Parallel()
	subjects := []string{}
	var grow func(prefix string, depth int)
	grow = func(prefix string, depth int) {
		for _, token := range []string{"a", "b", "c"} {
			subjects = append(subjects, prefix+token)
			if depth > 1 {
				grow(prefix+token+".", depth-1)
			}
		}
	}
	grow("", 4)
	patterns := []string{">"}
	var patternsOf func(prefix string, depth int)
	patternsOf = func(prefix string, depth int) {
		for _, token := range []string{"a", "b", "*"} {
			patterns = append(patterns, prefix+token, prefix+token+".>")
			if depth > 1 {
				patternsOf(prefix+token+".", depth-1)
			}
		}
	}
	patternsOf("", 3)
	included := 0
	for _, outer := range patterns {
		for _, inner := range patterns {
			want := true
			for _, s := range subjects {
				want = want && (!subjectMatches(inner, s) || subjectMatches(outer, s))
			}
			if got := SubjectIncludes(outer, inner); got != want {
				t.Fatalf("%s includes %s: %t", outer, inner, got)
			}
			if want {
				included++
			}
		}
	}
	if included < len(patterns) {
		t.Errorf("%d of %d", included, len(patterns))
	}
}

func TestRuleIncludes(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		outer []string
		inner string
		want  bool
	}{
		{[]string{"GET https://example.com/**"}, "GET https://example.com/a/b", true},
		{[]string{"GET https://example.com/**"}, "GET https://example.com/", true},
		{[]string{"GET https://example.com/**"}, "GET https://example.com/a/**", true},
		{[]string{"GET https://example.com/a/**"}, "GET https://example.com/**", false},
		{[]string{"GET https://example.com/a/**"}, "GET https://example.com/a", false},
		{[]string{"GET https://example.com/*"}, "GET https://example.com/a", true},
		{[]string{"GET https://example.com/*"}, "GET https://example.com/", false},
		{[]string{"GET https://example.com/*"}, "GET https://example.com/a/b", false},
		{[]string{"GET https://example.com/*"}, "GET https://example.com/**", false},
		{[]string{"GET https://example.com/a"}, "GET https://example.com/*", false},
		{[]string{"GET https://example.com/a"}, "POST https://example.com/a", false},
		{[]string{"GET,POST https://example.com/a"}, "POST https://example.com/a", true},
		{[]string{"GET https://example.com/a", "POST https://example.com/*"}, "GET,POST https://example.com/a", true},
		{[]string{"GET https://example.com/a"}, "GET,HEAD https://example.com/a", false},
		{[]string{"GET https://example.com/a"}, "GET http://example.com/a", false},
		{[]string{"GET https://example.com/a"}, "GET https://example.com:8443/a", false},
		{[]string{"GET https://example.com:443/a"}, "GET https://example.com/a", true},
		{[]string{"GET https://*.example.com/a"}, "GET https://x.example.com/a", true},
		{[]string{"GET https://*.example.com/a"}, "GET https://x.y.example.com/a", true},
		{[]string{"GET https://*.example.com/a"}, "GET https://*.example.com/a", true},
		{[]string{"GET https://*.example.com/a"}, "GET https://*.x.example.com/a", true},
		{[]string{"GET https://*.x.example.com/a"}, "GET https://*.example.com/a", false},
		{[]string{"GET https://*.example.com/a"}, "GET https://example.com/a", false},
		{[]string{"GET https://*.example.com/a"}, "GET https://badexample.com/a", false},
		{[]string{"GET https://x.example.com/a"}, "GET https://*.example.com/a", false},
		{[]string{"GET /a/**"}, "GET /a/b", true},
		{[]string{"GET /a/**"}, "GET https://example.com/a/b", false},
		{nil, "GET /a", false},
		{[]string{"GET /a"}, "/a", false},
		{[]string{"/a"}, "GET /a", false},
	} {
		if got := RuleIncludes(tt.outer, tt.inner); got != tt.want {
			t.Errorf("%v includes %s: %t", tt.outer, tt.inner, got)
		}
	}
}

// TestPathsIncludedAreMatched holds a comparison of random paths against all that they match.
func TestPathsIncludedAreMatched(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	path := func(words []string) string {
		var out strings.Builder
		for range r.IntN(4) + 1 {
			out.WriteString("/" + words[r.IntN(len(words))])
		}
		return out.String()
	}
	matches := func(pattern, path string) bool {
		p, s := strings.Split(pattern, "/"), strings.Split(path, "/")
		for i, word := range p {
			if word == "**" {
				return len(s) > i
			}
			if i >= len(s) || word != s[i] && (word != "*" || s[i] == "") {
				return false
			}
		}
		return len(p) == len(s)
	}
	included := 0
	for range 5000 {
		outer, inner := path([]string{"a", "b", "*"}), path([]string{"a", "b", "*"})
		if r.IntN(2) == 0 {
			outer += "/**"
		}
		if r.IntN(2) == 0 {
			inner += "/**"
		}
		if !pathIncludes(outer, inner) {
			continue
		}
		included++
		for range 50 {
			if one := path([]string{"a", "b", "c", ""}); matches(inner, one) && !matches(outer, one) {
				t.Fatalf("%s includes %s, and %s is matched by the inner one only", outer, inner, one)
			}
		}
	}
	if included < 100 {
		t.Errorf("%d of 5000 included", included)
	}
}

// FuzzIncludes holds that any texts can be compared, and that a subject includes itself.
func FuzzIncludes(f *testing.F) {
	f.Add("GET,POST https://*.example.com/a/**", "orders.*.>", "billing/*")
	f.Add("", "", "")
	f.Add("GET https://[::1]:80/", ".", "**")
	f.Fuzz(func(t *testing.T, rule, subject, pattern string) {
		RuleIncludes([]string{rule, subject}, pattern)
		RuleIncludes([]string{pattern}, rule)
		if !SubjectIncludes(subject, subject) {
			t.Errorf("%q does not include itself", subject)
		}
		if !matches(pattern, pattern) {
			t.Errorf("%q does not match itself", pattern)
		}
		if _, err := Select([]Allow{{Pattern: pattern}}, rule); err != nil {
			t.Error(err)
		}
	})
}

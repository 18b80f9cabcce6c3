package access

import (
	"errors"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
)

func blocks(patterns ...string) []Allow {
	var all []Allow
	for _, p := range patterns {
		all = append(all, Allow{Pattern: p, From: "flowhost.hcl:1"})
	}
	return all
}

func TestSelect(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		patterns []string
		flow     string
		want     string // pattern, "tie", or "" for an empty block
	}{
		{[]string{"*"}, "a", "*"},
		{[]string{"*", "billing/*"}, "billing/a", "billing/*"},
		{[]string{"billing/*", "*"}, "billing/a", "billing/*"},
		{[]string{"*", "billing/*", "billing/a"}, "billing/a", "billing/a"},
		{[]string{"*", "billing/*", "billing/a"}, "billing/ab", "billing/*"},
		{[]string{"billing/*"}, "orders", ""},
		{[]string{"billing/*"}, "billing/eu/a", "billing/*"},
		{[]string{"billing/*", "*/a"}, "billing/a", "tie"},
		{[]string{"billing/*", "*/a", "billing/a"}, "billing/a", "billing/a"},
		{[]string{"billing/*", "*/a", "billing/*a"}, "billing/a", "tie"},
		{[]string{"a", "a"}, "a", "tie"},
		{[]string{"a*", "*a"}, "aa", "tie"},
		{[]string{"a*", "*b"}, "a", "a*"},
	} {
		a, err := Select(blocks(tt.patterns...), tt.flow)
		got := ""
		switch tie := (*TieError)(nil); {
		case errors.As(err, &tie):
			got = "tie"
			if !strings.Contains(err.Error(), tt.flow) || !strings.Contains(err.Error(), "flowhost.hcl:1") {
				t.Errorf("%v", err)
			}
		case err != nil || a == nil:
			t.Errorf("%v of %s: %v %v", tt.patterns, tt.flow, a, err)
			continue
		default:
			got = a.Pattern
		}
		if got != tt.want {
			t.Errorf("%v of %s: %q, want %q", tt.patterns, tt.flow, got, tt.want)
		}
	}
	if a, err := Select(nil, "a"); a != nil || err != nil {
		t.Errorf("without blocks: %v %v", a, err)
	}
}

// patternModel are patterns as regular expressions.
type patternModel map[string]*regexp.Regexp

func (m patternModel) matches(pattern, name string) bool {
	if m[pattern] == nil {
		m[pattern] = regexp.MustCompile("^" + strings.ReplaceAll(regexp.QuoteMeta(pattern), `\*`, ".*") + "$")
	}
	return m[pattern].MatchString(name)
}

// TestSelectAgainstAModel chooses with random patterns: the block that is chosen matches, and
// whatever else matches the flow matches all that it matches.
func TestSelectAgainstAModel(t *testing.T) {
	t.Parallel()
	r, model := rand.New(rand.NewPCG(1, 2)), patternModel{}
	word := func(letters string, most int) string {
		var out strings.Builder
		for range r.IntN(most) + 1 {
			out.WriteByte(letters[r.IntN(len(letters))])
		}
		return out.String()
	}
	names := []string{}
	for range 100 {
		names = append(names, word("ab/", 6))
	}
	chosen, ties := 0, 0
	for range 800 {
		flow := word("ab/", 5)
		var all []Allow
		for range r.IntN(4) + 1 {
			all = append(all, Allow{Pattern: word("ab/**", 4)})
		}
		a, err := Select(all, flow)
		if err != nil {
			ties++
			continue
		}
		if a.Pattern == "" {
			for _, other := range all {
				if model.matches(other.Pattern, flow) {
					t.Fatalf("%v of %s: none, and %s matches", all, flow, other.Pattern)
				}
			}
			continue
		}
		chosen++
		if !model.matches(a.Pattern, flow) {
			t.Fatalf("%s does not match %s", a.Pattern, flow)
		}
		for _, other := range all {
			if !model.matches(other.Pattern, flow) {
				continue
			}
			for _, name := range names {
				if model.matches(a.Pattern, name) && !model.matches(other.Pattern, name) {
					t.Fatalf("%s is chosen for %s over %s, which does not match %s", a.Pattern, flow, other.Pattern, name)
				}
			}
		}
	}
	if chosen < 80 || ties < 8 {
		t.Errorf("%d chosen, %d ties", chosen, ties)
	}
}

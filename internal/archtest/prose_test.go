package archtest_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/internal/archtest"
)

var phrases = []archtest.Phrase{
	{Banned: `anew`, Better: `"again"`},
	{Banned: `(?:is|are) told`, Better: `the actor and the verb`},
}

func TestProseInGo(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, source string
		want         []string
	}{
		{"comment", "package p\n\n// It begins Anew.\n", []string{"a/a.go:3: \"Anew\""}},
		{"over two lines", "package p\n\n// The client is\n// told so.\n", []string{"a/a.go:3: \"is told\""}},
		{"later line of a comment", "package p\n\n/* One.\nTwo anew.\n*/\n", []string{"a/a.go:4: \"anew\""}},
		{"message", "package p\n\nconst a = \"load it anew\"\n", []string{"a/a.go:3: \"anew\""}},
		{"help", "package p\n\nconst a = `one\ntwo anew`\n", []string{"a/a.go:4: \"anew\""}},
		{"twice", "package p\n\n// anew and anew\n", []string{"a/a.go:3: \"anew\"", "a/a.go:3: \"anew\""}},
		{"part of a word", "package p\n\n// Renewal in Manewitz.\n", nil},
		{"stored name", "package p\n\nconst a = \"anew\"\n", nil},
		{"field tag", "package p\n\ntype a struct {\n\tB int `json:\"anew\" b:\"c d\"`\n}\n", nil},
		{"import", "package p\n\nimport _ \"example.com/anew\"\n", nil},
		{"identifier", "package p\n\nvar anew int\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			packages := read(t, map[string]string{"a/a.go": test.source, "a/a_test.go": "package p\n\n// Tests begin anew.\n"})
			found := archtest.CheckProse(packages, nil, phrases, nil)
			if diff := cmp.Diff(test.want, findingsOf(found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestProseInPages(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, text string
		want       []string
	}{
		{"sentence", "# Title\n\nIt begins anew.\n", []string{"p.md:3: \"anew\""}},
		{"over two lines", "The client is\ntold so.\n", []string{"p.md:1: \"is told\""}},
		{"table", "| a | begins anew |\n", []string{"p.md:1: \"anew\""}},
		{"fence", "```hcl\nanew\n```\nanew\n", []string{"p.md:4: \"anew\""}},
		{"fence in a list", "- a\n\n  ```sh\n  anew\n  ```\n", nil},
		{"indented block", "a\n\n    anew\n", nil},
		{"span", "Use `anew`.\n", nil},
		{"span between the words", "It is `a` told.\n", nil},
		{"target of a link", "See [here](a.md#anew).\n", nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			found := archtest.CheckProse(nil, []archtest.Page{{Path: "p.md", Text: test.text}}, phrases, nil)
			if diff := cmp.Diff(test.want, findingsOf(found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAllowances(t *testing.T) {
	t.Parallel()
	packages := read(t, map[string]string{
		"a/a.go":   "package a\n\n// anew, anew\n",
		"a/b/b.go": "package b\n\n// anew\n",
	})
	tests := []struct {
		name       string
		allowances []archtest.Allowance
		want       []string
	}{
		{"exact", []archtest.Allowance{{Path: "a", Findings: 3}}, nil},
		{"longest path", []archtest.Allowance{{Path: "a", Findings: 2}, {Path: "a/b", Findings: 1}}, nil},
		{"too few", []archtest.Allowance{{Path: "a", Findings: 2}, {Path: "a/b", Findings: 2}},
			[]string{"a/b: 1 findings, and archtest.Allowances has 2"}},
		{"too many", []archtest.Allowance{{Path: "a/b", Findings: 1}, {Path: "a/a.go", Findings: 1}},
			[]string{"a/a.go: 2 findings, and archtest.Allowances has 1", "a/a.go:3: \"anew\"", "a/a.go:3: \"anew\""}},
		{"nothing there", []archtest.Allowance{{Path: "a", Findings: 3}, {Path: "c", Findings: 1}},
			[]string{"c: 0 findings, and archtest.Allowances has 1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			found := archtest.CheckProse(packages, nil, phrases, test.allowances)
			if diff := cmp.Diff(test.want, findingsOf(found)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// findingsOf are the violations without their reasons.
func findingsOf(found []archtest.Violation) []string {
	var all []string
	for _, v := range found {
		all = append(all, strings.TrimSuffix(v.String(), ": "+v.Why))
	}
	return all
}

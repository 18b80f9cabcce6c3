package flows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/flows/internal/lang"
)

// TestLaterWords writes every word of the full language that this version does
// not know into the block that it belongs to: each must be answered as such, and
// with nothing else.
func TestLaterWords(t *testing.T) {
	t.Parallel()
	const plain = "  task \"t\" {\n    plugin = \"./greet.wasm\"\n  }\n"
	for name, c := range map[string]struct {
		words  *lang.Schema
		around string
	}{
		"file":     {fileSchema, "%s" + smallFlow("f")},
		"plugin":   {pluginSchema, "plugin \"p\" {\n  source = \"./greet.wasm\"\n%s}\n" + smallFlow("f")},
		"limits":   {limitsSchema, "plugin \"p\" {\n  source = \"./greet.wasm\"\n  limits {\n%s  }\n}\n" + smallFlow("f")},
		"flow":     {flowSchema, "flow \"f\" {\n" + plain + "%s}\n"},
		"schedule": {scheduleSchema, "flow \"f\" {\n" + plain + "  trigger \"schedule\" \"s\" {\n    every = \"1h\"\n%s  }\n}\n"},
		"message":  {messageSchema, "flow \"f\" {\n" + plain + "  trigger \"message\" \"m\" {\n    subject = \"s\"\n%s  }\n}\n"},
		"task":     {taskSchema, "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n%s  }\n}\n"},
	} {
		for _, word := range laterWords(c.words) {
			dir := folder(t, map[string]string{"f.hcl": fmt.Sprintf(c.around, word)})
			set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
			if len(diags) != 1 || RuleOf(diags[0]) != RuleLater {
				t.Errorf("%s: %s: %s", name, word, text(set, diags))
			}
		}
	}
}

func laterWords(w *lang.Schema) []string {
	var out []string
	for _, a := range w.Arguments {
		if a.Later {
			out = append(out, a.Name+" = 1\n")
		}
	}
	for _, b := range w.Blocks {
		if b.Later {
			out = append(out, b.Name+strings.Repeat(` "x"`, len(b.Labels))+" {\n}\n")
		}
	}
	return out
}

func TestSubjectsAndTokens(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]bool{
		"a": true, "a.b.c": true, "a.*.c": true, "a.>": true, ">": true, "*": true, "$JS.x": true,
		"": false, ".": false, "a.": false, ".a": false, "a..b": false, "a b": false, "a.>.b": false, "a*.b": false, "a.b>": false, "a\tb": false,
	} {
		if got := isSubject(s); got != want {
			t.Errorf("subject %q: %v", s, got)
		}
	}
	for s, want := range map[string]bool{"a": true, "A_b-9": true, "9": true, "": false, "a.b": false, "a b": false, "ä": false, "a/b": false, "*": false} {
		if got := isToken(s); got != want {
			t.Errorf("token %q: %v", s, got)
		}
	}
}

func TestFileNames(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"a.hcl": "flow", "a.hcl.json": "flow", "a.b.hcl": "flow", "flowhost.vars.hcl": "auto", "x.auto.vars.hcl.json": "auto",
		"prod.vars.hcl": "", "a.test.hcl": "", "flowhost.hcl": "", "flowhost.hcl.json": "", ".a.hcl": "", "a.json": "", "a.hcl~": "", "hcl": "",
	} {
		got := ""
		if isFlowFile(name) {
			got = "flow"
		}
		if isAutomatic(name) {
			got += "auto"
		}
		if got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

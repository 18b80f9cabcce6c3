package flows

import (
	"strings"
	"testing"

	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// TestDeepNesting would end the process if such a text reached the parser.
func TestDeepNesting(t *testing.T) {
	t.Parallel()
	const n = 100_000
	for name, src := range map[string]string{
		"parentheses": "locals {\n  x = " + strings.Repeat("(", n),
		"brackets":    "locals {\n  x = " + strings.Repeat("[", n),
		"objects":     "locals {\n  x = " + strings.Repeat("{a=", n),
		"calls":       "locals {\n  x = " + strings.Repeat("f(", n),
		"not":         "locals {\n  x = " + strings.Repeat("!", n) + "true\n}\n",
		"minus":       "locals {\n  x = " + strings.Repeat("-", n) + "1\n}\n",
		"conditions":  "locals {\n  x = " + strings.Repeat("x?1:", n),
		"templates":   "locals {\n  x = " + strings.Repeat(`"${`, n),
		"sums":        "locals {\n  x = 1" + strings.Repeat("+1", n) + "\n}\n",
		"lines":       "locals {\n  x = (1" + strings.Repeat("\n+1", n) + ")\n}\n",
		"indexes":     "locals {\n  x = []" + strings.Repeat("[x]", n) + "\n}\n",
		"splats":      "locals {\n  x = []" + strings.Repeat(".*.a", n) + "\n}\n",
		"directives":  "locals {\n  x = \"" + strings.Repeat("%{if 1}", n/2) + "\"\n}\n",
		"blocks":      strings.Repeat("a {\n", n),
		"large":       strings.Repeat("# x\n", syntax.MaxSource/4+1),
	} {
		checkRefused(t, name, "f.hcl", src)
	}
	for name, src := range map[string]string{
		"brackets":  `{"locals":{"x":` + strings.Repeat("[", n),
		"objects":   `{"locals":{"x":` + strings.Repeat(`{"a":`, n),
		"templates": `{"locals":{"x":"${` + strings.Repeat("(", n) + `"}}`,
		"large":     `{` + strings.Repeat(" ", syntax.MaxSource),
	} {
		checkRefused(t, name, "f.hcl.json", src)
	}
}

func checkRefused(t *testing.T, name, file, src string) {
	t.Helper()
	set, diags := Restore(t.Context(), &run.Definition{Files: map[string][]byte{file: []byte(src)}}, Options{})
	if len(diags) != 1 || RuleOf(diags[0]) != RuleSyntax || !strings.HasSuffix(diags[0].Summary, map[bool]string{true: "too large", false: "too deeply"}[name == "large"]) {
		t.Errorf("%s in %s: %s", name, file, text(set, diags))
	}
}

func TestManyBracketsThatDoNotNest(t *testing.T) {
	t.Parallel()
	sad := strings.Repeat(`:( - "!" `, 2*syntax.MaxNesting)
	list := strings.Repeat("  [(1 - 1), \"(${-1}\"],\n", syntax.MaxNesting)
	load(t, map[string]string{
		"a.hcl":      "locals {\n  a = <<E\n" + strings.ReplaceAll(sad, `"`, "") + "\nE\n  b = [\n" + list + "  ]\n}\n" + smallFlow("a"),
		"b.hcl.json": `{"locals": {"c": "` + strings.ReplaceAll(sad, `"`, `\"`) + `"}}`,
	}, Options{})
}

func TestDeepValuesOfVariables(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"f.hcl": "variable \"x\" {\n  type = any\n}\nlocals {\n  y = templatefile(\"t.tpl\", {})\n}\n" + smallFlow("a"),
		"t.tpl": strings.Repeat("${(", 200_000),
	}
	options := Options{Vars: map[string]VarValue{"x": {Text: strings.Repeat("(", 200_000), From: "--var x"}}}
	set, diags := Load(t.Context(), []string{folder(t, files)}, options)
	if len(diags) != 2 || strings.Count(text(set, diags), "may be nested") != 2 {
		t.Errorf("%d diagnostics", len(diags))
	}
}

package flows

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/run"
)

// doubled is a chain of locals, each made of the one before it twice.
func doubled(first, pattern string) string {
	var out strings.Builder
	out.WriteString("  l0 = " + first + "\n")
	for i := range 40 {
		last := fmt.Sprint("local.l", i)
		fmt.Fprintf(&out, "  l%d = %s\n", i+1, strings.ReplaceAll(pattern, "X", last))
	}
	return out.String()
}

func numbers(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, "\"%d\",", i)
	}
	return "[" + out.String() + "]"
}

// loadWithLittle loads a file that may compute less than others, so that the end
// of it is soon reached.
func loadWithLittle(t *testing.T, name, src string) (*Set, hcl.Diagnostics) {
	l := newLoader(t.Context(), Options{})
	l.budget = budget.Of(140_000)
	definition := &run.Definition{Files: map[string][]byte{name: []byte(src)}}
	l.load(&source{read: recorded(definition.Files), files: []sourceFile{{name: name, display: name, bytes: []byte(src)}}}, definition)
	return l.finish()
}

// TestBombs loads what would take hours or all memory if it were computed.
func TestBombs(t *testing.T) {
	t.Parallel()
	for name, locals := range map[string]string{
		"loops":         "  a = [for x in range(1000) : [for y in range(1000) : [for z in range(1000) : z]]]\n",
		"nothing kept":  "  a = [for x in range(1000) : x if alltrue([for y in range(1000) : length([for z in range(1000) : z if z < 0]) == 0])]\n",
		"directives":    "  a = \"%{for x in range(1000)}%{for y in range(1000)}%{for z in range(1000)}abc%{endfor}%{endfor}%{endfor}\"\n",
		"lists":         doubled("[1, 2]", "[X, X]"),
		"objects":       doubled("{}", "{ a = X, b = X }"),
		"texts":         doubled(`"abcdefgh"`, `"${X}${X}"`),
		"concat":        doubled("[1, 2]", "concat(X, X)"),
		"choices":       doubled("[1, 2]", "true ? [X, X] : [X, X]"),
		"products":      "  a = [for x in range(1000) : setproduct(range(300), range(300))]\n",
		"join":          "  a = join(\"\", [for x in range(1000) : \"abcdefgh\"])\n  b = join(local.a, [for x in range(1000) : local.a])\n  c = join(local.b, [for x in range(1000) : local.b])\n",
		"sort":          "  a = sort(" + numbers(60_000) + ")\n",
		"sorted loop":   "  a = sort([for x in " + numbers(60_000) + " : x])\n",
		"set":           "  a = toset(" + numbers(60_000) + ")\n",
		"number":        "  a = \"x${1e100000000}\"\n",
		"encode number": "  a = jsonencode(1e10000000)\n",
		"sum of powers": "  a = \"${9e100000000 + 1}x\"\n",
		"indent":        "  a = indent(2000000000, \"\\n\\n\")\n",
		"replace":       "  a = join(\"\", [for x in range(1000) : \"abcdefgh\"])\n  b = replace(local.a, \"\", local.a)\n",
		"yaml":          "  a = yamldecode(<<E\na: &a [x,x,x,x,x,x,x]\n" + aliases("abcdefgh") + "E\n  )\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			set, diags := loadWithLittle(t, "f.hcl", "locals {\n"+locals+"}\n"+smallFlow("f"))
			if shown := text(set, diags); len(diags) != 1 || RuleOf(diags[0]) != RuleExpression && diags[0].Summary != "Number too long" || !strings.Contains(shown, "compute") && !strings.Contains(shown, "the string ") && !strings.Contains(shown, "Number too long") {
				t.Errorf("%d: %.500s", len(diags), shown)
			}
		})
	}
}

func aliases(names string) string {
	var out strings.Builder
	for i := range len(names) - 1 {
		alias := "*" + names[i:i+1]
		fmt.Fprintf(&out, "%s: &%[1]s [%s]\n", names[i+1:i+2], strings.Join([]string{alias, alias, alias, alias, alias, alias, alias}, ","))
	}
	return out.String()
}

func TestBombsInJSON(t *testing.T) {
	t.Parallel()
	src := `{"locals": {"a": ["${[for x in range(1000) : [for y in range(1000) : [for z in range(1000) : z]]]}"]},
	  "flow": {"f": {"task": {"t": {"plugin": "./greet.wasm"}}}}}`
	set, diags := loadWithLittle(t, "f.hcl.json", src)
	if len(diags) != 1 || diags[0].Summary != "Too much to compute" {
		t.Error(text(set, diags))
	}
}

// TestBombsOfARun multiplies what a run was given.
func TestBombsOfARun(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    input  = { n = length([for a in trigger.payload : [for b in trigger.payload : [for c in trigger.payload : c]]]) }\n  }\n}\n")
	payload := "[" + strings.Repeat("1,", 2999) + "1]"
	_, failure := f.Tasks[0].Input(f.Scope(aRun(f, payload, nil)))
	if failure == nil || failure.Outcome != run.OutcomeRejected || !strings.Contains(failure.Message, "Too much to compute") {
		t.Errorf("%+v", failure)
	}
}

// TestTryDoesNotHideABomb fails although the expression has another way.
func TestTryDoesNotHideABomb(t *testing.T) {
	t.Parallel()
	src := "locals {\n  a = try([for x in range(1000) : [for y in range(1000) : [for z in range(1000) : z]]], 1)\n}\n" + smallFlow("f")
	_, diags := loadWithLittle(t, "f.hcl", src)
	if len(diags) != 1 || diags[0].Summary != "Too much to compute" {
		t.Error(diags)
	}
}

// TestMuchIsNoBomb computes with as much data as flows may well have.
func TestMuchIsNoBomb(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n    input  = { all = [for i in trigger.payload : { id = i.id, text = \"order ${i.id}\" }], names = join(\",\", slice(trigger.payload, 0, 2000)[*].id) }\n  }\n}\n")
	payload := "[" + strings.Repeat(`{"id":"x","n":1.5,"items":[1,2,3]},`, 6_000) + `{"id":"y"}]`
	if got := input(t, f.Tasks[0], f.Scope(aRun(f, payload, nil))); !strings.HasSuffix(got, `,x,x"}`) {
		t.Errorf("%.100s", got)
	}
}

// TestManyDiagnostics shows the first ones and how many there are.
func TestManyDiagnostics(t *testing.T) {
	t.Parallel()
	var src strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&src, "  a%d = local.b%d\n", i, i)
	}
	_, diags := Restore(t.Context(), &run.Definition{Files: map[string][]byte{"f.hcl": []byte("locals {\n" + src.String() + "}\n" + smallFlow("f"))}}, Options{})
	last := diags[len(diags)-1]
	if len(diags) != diag.MaxShown+1 || RuleOf(last) != RuleMore || !strings.Contains(last.Detail, "19800 more") || last.Subject.Start.Line != diag.MaxShown+2 {
		t.Errorf("%d: %v", len(diags), last)
	}
}

// TestGuessesAreBounded holds that many wrong names are not compared with many
// right ones: the first are told what they may mean, the last are not.
func TestGuessesAreBounded(t *testing.T) {
	t.Parallel()
	many := func(n int, pattern string) string {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, pattern, i)
		}
		return out.String()
	}
	wrong := "{\n" + many(150, "    q%d = 1\n") + "  }\n"
	params := "flow \"f\" {\n  task \"t\" {\n    plugin = \"./greet.wasm\"\n  }\n" + many(2000, "  param \"p%d\" {\n    default = 1\n  }\n")
	for name, src := range map[string]string{
		"trigger":   params + "  trigger \"schedule\" \"s\" {\n    cron = \"@daily\"\n    params = " + wrong + "  }\n}\n",
		"sub-flow":  params + "}\nflow \"g\" {\n  task \"t\" {\n    flow = flow.f\n    input = " + wrong + "  }\n}\n",
		"elsewhere": smallFlow("z") + many(1500, "flow \"f%d\" {\n  output \"o\" {\n    value = task.t.output\n  }\n  task \"u\" {\n    plugin = \"./greet.wasm\"\n  }\n}\n"),
	} {
		_, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": src})}, Options{Catalog: modules})
		if len(diags) < 150 {
			t.Fatalf("%s: %d", name, len(diags))
		}
		told := func(d *hcl.Diagnostic) bool {
			return strings.Contains(d.Detail, "Did you mean p") || strings.Contains(d.Detail, "It exists in flow")
		}
		if first, last := diags[0], diags[min(len(diags), diag.MaxShown)-1]; !told(first) || told(last) {
			t.Errorf("%s:\n%s\n%s", name, first.Detail, last.Detail)
		}
	}
}

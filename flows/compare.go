package flows

import (
	"maps"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
)

// operand describes a part of an expression that must be of one of some kinds,
// strings being what HCL converts to the others.
func (t *typing) operand(e hcl.Expression, want jsonschema.Kinds) *jsonschema.Shape {
	got := t.infer(e)
	if got.Present() == 0 || got.Present()&want != 0 {
		return got
	}
	words := want.String()
	if want&(jsonschema.Bool|jsonschema.Number) != jsonschema.Bool|jsonschema.Number {
		words = (want &^ jsonschema.String).String() // what strings are converted to
	}
	t.report(RuleType, e.Range(), "Wrong type", "%s is required, %s is %s.", diag.Sentence(words), t.source(e), got.Present())
	return got
}

// check compares what an expression gives with what is wanted. Objects and lists
// that are written out are compared part by part, each at its place.
func (t *typing) check(e hcl.Expression, want *jsonschema.Shape, path string) {
	e = budget.Bare(e)
	if want.Kinds&jsonschema.Object != 0 && !want.Open() {
		if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
			t.checkObject(e, pairs, want, path)
			return
		}
	}
	if want.Kinds&jsonschema.List != 0 && !want.Open() {
		if items, diags := hcl.ExprList(e); !diags.HasErrors() {
			for i, item := range items {
				t.check(item, want.Item(), path+"["+strconv.Itoa(i)+"]")
			}
			return
		}
	}
	if choice, ok := e.(*hclsyntax.ConditionalExpr); ok && !want.Open() {
		t.checkBranches(choice, want, path)
		return
	}
	t.compare(want, t.infer(e), spot{path: path, at: e.Range(), what: t.source(e)})
}

// checkObject compares an object that is written out. Here a name that is not
// wanted is a mistake; in an object that is passed on, it is more than is needed.
func (t *typing) checkObject(e hcl.Expression, pairs []hcl.KeyValuePair, want *jsonschema.Shape, path string) {
	given, meant, sure := map[string]bool{}, map[string]bool{}, true
	for _, pair := range pairs {
		name, known := t.name(pair.Key)
		if !known {
			sure = false
			t.infer(pair.Value)
			continue
		}
		given[name] = true
		field := want.Field(name)
		if field == nil {
			if t.diags.MayCompare(0) {
				meant[diag.Nearest(name, keys(want.Fields))] = true
			}
			t.report(RuleUnknownAttribute, pair.Key.Range(), "Unknown attribute", "%s has no attribute %q.%s", path, name, t.diags.Guess(name, "", maps.Keys(want.Fields)))
			field = jsonschema.Any()
		}
		t.check(pair.Value, field, path+"."+name)
	}
	var missing, extra []string
	for _, name := range want.Required {
		if !given[name] && !meant[name] {
			missing = append(missing, name)
		}
	}
	if !sure || len(missing) == 0 {
		return
	}
	for _, name := range keys(given) {
		if want.Fields[name] == nil {
			extra = append(extra, name)
		}
	}
	hint := ""
	if other := diag.Nearest(missing[0], extra); other != "" {
		hint = " Did you mean " + missing[0] + " by " + other + "?"
	}
	t.report(RuleMissing, e.Range(), "Missing attribute", "%s needs %s.%s", path, diag.Join(missing, "and"), hint)
}

// spot is where a value is wanted, and how the one that is given is called.
type spot struct {
	path string // "input.count"
	at   hcl.Range
	what string // "task.fetch.output.name", or "this"
}

// compare reports a value of which nothing fits what is wanted.
func (t *typing) compare(want, got *jsonschema.Shape, s spot) {
	m := jsonschema.FindMismatch(want, got)
	if m == nil {
		return
	}
	what := s.what
	if what != "this" {
		what += m.Below
	}
	switch {
	case m.Missing != "":
		t.report(RuleMissing, s.at, "Missing attribute", "%s needs %s, and %s has none.", s.path+m.Below, m.Missing, what)
	case m.Allowed != nil:
		given := m.Got.Enum[0]
		t.report(RuleValue, s.at, "Value not allowed", "%s cannot be %q.%s", s.path+m.Below, given, diag.DidYouMean(given, "", m.Allowed))
	case m.Want.Integer && m.Got.Fraction:
		t.report(RuleType, s.at, "Wrong type", "%s: an integer is required, %s is not one.", s.path+m.Below, what)
	default:
		t.report(RuleType, s.at, "Wrong type", "%s: %s is required, %s is %s.", s.path+m.Below, m.Want.Present(), what, m.Got.Present())
	}
}

// source is the text of an expression in its file, "this" if that would not help.
func (t *typing) source(e hcl.Expression) string {
	const short = 60
	e = budget.Original(e)
	switch e := e.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return diag.Traversal(e.Traversal)
	case *hclsyntax.RelativeTraversalExpr:
		return t.source(e.Source) + diag.Traversal(e.Traversal)
	case *hclsyntax.AnonSymbolExpr:
		return t.each[e].text
	case *hclsyntax.SplatExpr:
		inner := t.splatted(e, nil)
		return inner.source(e.Each)
	}
	at := e.Range()
	file := t.module.set.files[at.Filename]
	if _, syntax := e.(hclsyntax.Expression); !syntax || file == nil || strings.HasSuffix(at.Filename, ".json") || at.Start.Line != at.End.Line || !at.CanSliceBytes(file.Bytes) {
		return "this"
	}
	text := string(at.SliceBytes(file.Bytes))
	if len(text) > short || text == "" {
		return "this"
	}
	return text
}

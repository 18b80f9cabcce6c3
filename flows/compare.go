package flows

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

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
		given[want.FieldName(name)] = true
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

// impossible reports a comparison that is never true, whatever the run: of kinds
// that are never equal, or with a string that is not among those that there are. What
// depends on values that a deployment is given is left alone. It works, and so is no
// error.
func (t *typing) impossible(e *hclsyntax.BinaryOpExpr, left, right *jsonschema.Shape) {
	literal, other := e.RHS, e.LHS
	known, shown := right, left
	if !isLiteral(literal) {
		literal, other, known, shown = other, literal, left, right
	}
	if !isLiteral(literal) || t.deployed(other) || known.Present() == 0 || shown.Present() == 0 {
		return
	}
	switch both := known.Present() & shown.Present(); {
	case both == 0:
		t.warn(RuleType, e.Range(), "Never equal", "%s is %s, and never equal to %s. Bring both to one type, as tostring and tonumber do.", t.source(other), shown.Present(), known.Present())
	case both == jsonschema.String && shown.Present() == jsonschema.String && shown.Declared && known.Enum[0] != "" && !slices.Contains(shown.Enum, known.Enum[0]):
		t.warn(RuleValue, literal.Range(), "Never equal", "%s is never %q.%s", t.source(other), known.Enum[0], diag.DidYouMean(known.Enum[0], "", shown.Enum))
	}
}

// warn is [typing.report] of what works and can hardly be meant.
func (t *typing) warn(rule Rule, at hcl.Range, summary, detail string, args ...any) {
	if !t.lenient {
		t.diags.Add(rule, at, summary, detail, args...).Severity = hcl.DiagWarning
	}
}

// isLiteral reports whether a value is written out, other than null.
func isLiteral(e hcl.Expression) bool {
	switch e := budget.Bare(e).(type) {
	case *hclsyntax.LiteralValueExpr:
		return !e.Val.IsNull()
	case *hclsyntax.TemplateExpr:
		return e.IsStringLiteral()
	}
	return false
}

// deployed reports whether an expression depends on what differs between
// deployments of the same flow.
func (t *typing) deployed(e hcl.Expression) bool {
	return slices.ContainsFunc(e.Variables(), func(name hcl.Traversal) bool {
		return slices.Contains([]string{"var", "local", "each"}, name.RootName()) || t.names[name.RootName()] != nil
	})
}

// checkBranches compares both branches with what is wanted, each at its place. HCL
// brings them to one type, which makes other strings of plain values and leaves names
// and the kinds of the rest as they are.
func (t *typing) checkBranches(e *hclsyntax.ConditionalExpr, want *jsonschema.Shape, path string) {
	if v, ok := t.fixed(e); ok {
		t.compare(want, jsonschema.FromValue(v), spot{path: path, at: e.Range(), what: t.source(e)})
		return
	}
	t.operand(e.Condition, jsonschema.Bool|jsonschema.String)
	quiet := *t
	quiet.lenient = true
	yes, no := quiet.infer(e.TrueResult), quiet.infer(e.FalseResult)
	if !t.agree(e, yes, no) {
		return
	}
	same := yes.Present() == no.Present() && yes.Present()&^jsonschema.PlainKinds == 0 && oneKind(yes.Present())
	if !same && yes.Kinds != jsonschema.Null && no.Kinds != jsonschema.Null {
		want = jsonschema.Loosen(want)
	}
	branch := t.branch()
	branch.check(e.TrueResult, want, path)
	branch.check(e.FalseResult, want, path)
}

// branch looks at a branch of a conditional.
func (t *typing) branch() *typing {
	branch := *t
	branch.guarded = true
	return &branch
}

// agree reports branches of kinds that no type has in common: such a condition
// cannot be evaluated, whichever branch is taken.
func (t *typing) agree(e *hclsyntax.ConditionalExpr, yes, no *jsonschema.Shape) bool {
	a, b := yes.Present(), no.Present()
	plain := (a|b)&^jsonschema.PlainKinds == 0 && (a|b)&jsonschema.String != 0 // a string converts to either
	if a == 0 || b == 0 || a&b != 0 || plain {
		return true
	}
	t.report(RuleType, e.Range(), "Branches of different types", "Both branches must be of one type: one is %s, the other %s.", a, b)
	return false
}

// Kinds of first arguments of functions that declare that they take anything, and
// then refuse what they cannot go through.
var (
	listFunctions   = []string{"alltrue", "anytrue", "chunklist", "coalescelist", "compact", "concat", "contains", "distinct", "element", "flatten", "index", "one", "reverse", "setproduct", "slice", "sum", "tolist", "toset"}
	objectFunctions = []string{"keys", "lookup", "merge", "tomap", "values"}
	listsOnly       = []string{"coalescelist", "concat", "merge", "setproduct"} // all arguments are as the first
)

// argument describes what a function takes in a place, nil when that is not known.
func (t *typing) argument(name string, f function.Function, i int) *jsonschema.Shape {
	first := i == 0 || slices.Contains(listsOnly, name)
	switch {
	case f == (function.Function{}):
		return nil
	case name == "length":
		return jsonschema.OfKind(jsonschema.List | jsonschema.Object | jsonschema.String)
	case first && slices.Contains(listFunctions, name):
		return jsonschema.OfKind(jsonschema.List)
	case first && slices.Contains(objectFunctions, name):
		return jsonschema.OfKind(jsonschema.Object)
	}
	param := f.VarParam()
	if params := f.Params(); i < len(params) {
		param = &params[i]
	}
	if param == nil || param.Type == cty.DynamicPseudoType {
		return nil
	}
	return jsonschema.ConvertibleTo(param.Type)
}

// checkArguments reports arguments that no call of the function takes.
func (t *typing) checkArguments(e *hclsyntax.FunctionCallExpr, args []*jsonschema.Shape) {
	f := t.module.runFunctions[e.Name]
	for i, got := range args {
		want := t.argument(e.Name, f, i)
		if want == nil {
			continue
		}
		if m := jsonschema.FindMismatch(want, got); m != nil {
			t.report(RuleType, e.Args[i].Range(), "Wrong type", "%s takes %s here, %s%s is %s.",
				e.Name, m.Want.Present(), t.source(e.Args[i]), m.Below, m.Got.Present())
		}
	}
}

package flows

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
)

// operand describes a part of an expression that must be of one of some kinds,
// texts being what HCL converts to the others.
func (t *typing) operand(e hcl.Expression, want kinds) *shape {
	got := t.infer(e)
	if got.present() == 0 || got.present()&want != 0 {
		return got
	}
	words := want.String()
	if want&(kindBool|kindNumber) != kindBool|kindNumber {
		words = (want &^ kindString).String() // what texts are converted to
	}
	t.report(RuleType, e.Range(), "Wrong type", "%s is required, %s is %s.", diag.Sentence(words), t.source(e), got.present())
	return got
}

// check compares what an expression gives with what is wanted. Objects and lists
// that are written out are compared in parts, where these stand.
func (t *typing) check(e hcl.Expression, want *shape, path string) {
	e = budget.Bare(e)
	if want.kinds&kindObject != 0 && !want.open() {
		if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
			t.checkObject(e, pairs, want, path)
			return
		}
	}
	if want.kinds&kindList != 0 && !want.open() {
		if items, diags := hcl.ExprList(e); !diags.HasErrors() {
			for i, item := range items {
				t.check(item, want.item(), path+"["+strconv.Itoa(i)+"]")
			}
			return
		}
	}
	if choice, ok := e.(*hclsyntax.ConditionalExpr); ok && !want.open() {
		t.checkBranches(choice, want, path)
		return
	}
	t.compare(want, t.infer(e), spot{path: path, at: e.Range(), what: t.source(e)})
}

// checkObject compares an object that is written out. Here a name that is not
// wanted is a mistake; in an object that is passed on, it is more than is needed.
func (t *typing) checkObject(e hcl.Expression, pairs []hcl.KeyValuePair, want *shape, path string) {
	given, meant, sure := map[string]bool{}, map[string]bool{}, true
	for _, pair := range pairs {
		name, known := t.name(pair.Key)
		if !known {
			sure = false
			t.infer(pair.Value)
			continue
		}
		given[name] = true
		field := want.field(name)
		if field == nil {
			if t.diags.MayCompare(0) {
				meant[diag.Nearest(name, keys(want.fields))] = true
			}
			t.report(RuleUnknownAttribute, pair.Key.Range(), "Unknown attribute", "%s has no attribute %q.%s", path, name, t.diags.Guess(name, "", maps.Keys(want.fields)))
			field = openShape()
		}
		t.check(pair.Value, field, path+"."+name)
	}
	var missing, extra []string
	for _, name := range want.required {
		if !given[name] && !meant[name] {
			missing = append(missing, name)
		}
	}
	if !sure || len(missing) == 0 {
		return
	}
	for _, name := range keys(given) {
		if want.fields[name] == nil {
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
func (t *typing) compare(want, got *shape, s spot) {
	m := &matching{seen: map[[2]*shape]bool{}}
	if !m.misfit(want, got, "") {
		return
	}
	what := s.what
	if what != "this" {
		what += m.below
	}
	switch {
	case m.missing != "":
		t.report(RuleMissing, s.at, "Missing attribute", "%s needs %s, and %s has none.", s.path+m.below, m.missing, what)
	case m.words != nil:
		given := m.got.words[0]
		t.report(RuleValue, s.at, "Value not allowed", "%s cannot be %q.%s", s.path+m.below, given, diag.DidYouMean(given, "", m.words))
	case m.want.whole && m.got.fraction:
		t.report(RuleType, s.at, "Wrong type", "%s: a whole number is required, %s is not whole.", s.path+m.below, what)
	default:
		t.report(RuleType, s.at, "Wrong type", "%s: %s is required, %s is %s.", s.path+m.below, m.want.present(), what, m.got.present())
	}
}

// matching looks for a part of a value that cannot be what is wanted there. That
// something may be null, absent or empty makes nothing fit: a value that is right
// only while it is nothing is wrong.
type matching struct {
	seen map[[2]*shape]bool // types may be recursive

	// What was found: where, what was wanted there and what is given.
	below     string
	want, got *shape
	missing   string   // an attribute that is wanted and never there
	words     []string // the texts that are allowed
}

func (m *matching) misfit(want, got *shape, below string) bool {
	pair := [2]*shape{want, got}
	if m.seen[pair] || want.open() || got.open() || want.present() == 0 || got.present() == 0 {
		return false
	}
	m.seen[pair] = true
	switch both := want.present() & got.present(); {
	case both == 0, both == kindNumber && want.whole && got.fraction:
	case both == kindString && want.words != nil && got.words != nil:
		if slices.ContainsFunc(got.words, func(w string) bool { return slices.Contains(want.words, w) }) {
			return false
		}
		m.words = want.words
	case both == kindList:
		return m.misfit(want.item(), got.item(), below+"[*]")
	case both == kindObject:
		return m.object(want, got, below)
	default:
		return false
	}
	m.below, m.want, m.got = below, want, got
	return true
}

func (m *matching) object(want, got *shape, below string) bool {
	for _, name := range want.required {
		if got.closed && got.fields[name] == nil {
			m.below, m.want, m.got, m.missing = below, want, got, name
			return true
		}
	}
	for _, name := range keys(got.fields) {
		if field := want.field(name); field != nil && m.misfit(field, got.fields[name], below+"."+name) {
			return true
		}
	}
	return want.rest != nil && got.rest != nil && m.misfit(want.rest, got.rest, below+"[*]")
}

// source is what stands in the file for an expression, if that says something.
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

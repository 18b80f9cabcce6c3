package flows

import (
	"cmp"
	"math/big"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// template is an expression taken apart at load into JSON that is known and
// references whose JSON goes between: { n = task.a.output.n, i = 4 } is
// `{"i":4,"n":`, the reference, and `}`. Filling it gives the bytes that
// evaluating the expression gives, at a fraction of the cost.
type template struct {
	segments []segment
	known    int // bytes of JSON that is known
}

// segment is a piece of a template: JSON, and then, but for the last, a reference
// or another expression.
type segment struct {
	known []byte
	ref   *reference
	expr  *expression
}

// reference is a run value, or a place within its JSON.
type reference struct {
	ref
	steps []ctyjson.Step
	typ   cty.Type // that of a param; any for all others
}

// prepare looks for a cheaper way to an input than evaluating its expression.
func (s *exprContext) prepare(in *inputs) {
	if named, ok := syntax.Native(in.expr.Expression).(*hclsyntax.ScopeTraversalExpr); ok && in.below == nil {
		if r := s.reference(named.Traversal); r.whole() {
			in.whole = &r.ref
			return
		}
	}
	parts := s.segmentsOf(in.expr.Expression)
	if in.below != nil {
		parts = s.overlay(in)
	}
	references, others := 0, 0
	for _, p := range parts {
		if p.ref != nil {
			references++
		} else if p.expr != nil {
			others++
		}
	}
	// Each expression needs its own context, which costs about as much as a reference
	// saves.
	if references > 0 && others <= references {
		in.template = newTemplate(parts)
	}
}

// whole reports whether the reference is to all of what is recorded as JSON.
func (r *reference) whole() bool {
	return r != nil && len(r.steps) == 0 && r.recorded() && r.root.bit != rootParam
}

// recorded reports whether the value is recorded as JSON.
func (r *reference) recorded() bool {
	switch r.root.bit {
	case rootTask, rootGroup:
		return r.attribute == "output"
	case rootEach:
		return r.name == "value"
	case rootWait:
		return r.attribute == "payload"
	case rootTrigger:
		return r.name == "payload"
	}
	return r.root.bit == rootParam
}

// segmentsOf makes parts of an expression that is known to be right.
func (s *exprContext) segmentsOf(e hcl.Expression) []segment {
	e = syntax.Native(e)
	if named, ok := e.(*hclsyntax.ScopeTraversalExpr); ok {
		if r := s.reference(named.Traversal); r != nil {
			return []segment{{ref: r}}
		}
		if l := s.lateLocal(named.Traversal); l != nil {
			return s.segmentsOf(l.attr.Expr)
		}
	}
	x, _ := s.bind(e, "", lang.Run)
	if x.roots&runRoots == 0 {
		if known, ok := s.constant(x); ok {
			return []segment{{known: known}}
		}
	}
	if fields, ok := s.fields(e); ok {
		return objectOf(fields)
	}
	if items, diags := hcl.ExprList(e); !diags.HasErrors() {
		return s.list(items)
	}
	return []segment{{expr: x}}
}

func (s *exprContext) constant(x *expression) ([]byte, bool) {
	v, diags := x.evaluate(s.runBase(), (*loadValues)(s), s.module.budget)
	if diags.HasErrors() || !v.IsWhollyKnown() {
		return nil, false
	}
	known, err := encodeJSON(v)
	return known, err == nil
}

// lateLocal is the local that a traversal names and goes no further into, when it
// has its value in runs only.
func (s *exprContext) lateLocal(t hcl.Traversal) *local {
	name, _, _ := syntax.Step(t, 1)
	if l := s.decoder.locals[name]; l != nil && len(t) == 2 && t.RootName() == "local" && l.expr.roots&runRoots != 0 {
		return l
	}
	return nil
}

// field is a member of an object that is taken apart.
type field struct {
	name  string
	value []segment
}

// fields are those of an object whose names are known and all different, sorted.
func (s *exprContext) fields(e hcl.Expression) ([]field, bool) {
	pairs, diags := hcl.ExprMap(e)
	if diags.HasErrors() {
		return nil, false
	}
	out := make([]field, 0, len(pairs))
	for _, p := range pairs {
		if len(p.Key.Variables()) > 0 {
			return nil, false
		}
		name, diags := p.Key.Value(s.runBase())
		if diags.HasErrors() || name.IsMarked() || !name.IsKnown() || name.IsNull() || name.Type() != cty.String {
			return nil, false
		}
		out = append(out, field{name: cty.NormalizeString(name.AsString()), value: s.segmentsOf(p.Value)})
	}
	slices.SortFunc(out, func(a, b field) int { return a.compare(b.name) })
	for i := 1; i < len(out); i++ {
		if out[i].name == out[i-1].name {
			return nil, false
		}
	}
	return out, true
}

func (f field) compare(name string) int { return cmp.Compare(f.name, name) }

// overlay is a task's config over its plugin's. A config that is not written out
// as an object is not taken apart.
func (s *exprContext) overlay(in *inputs) []segment {
	own, ok := s.fields(syntax.Native(in.expr.Expression))
	if !ok {
		return nil
	}
	for name, v := range in.below {
		known, err := encodeJSON(v)
		if err != nil {
			return nil
		}
		at, found := slices.BinarySearchFunc(own, name, field.compare)
		if !found {
			own = slices.Insert(own, at, field{name, []segment{{known: known}}})
		}
	}
	return objectOf(own)
}

// objectOf gives the parts of an object whose fields are sorted.
func objectOf(fields []field) []segment {
	var parts []segment
	before := []byte{'{'}
	for _, f := range fields {
		parts = append(parts, segment{known: append(ctyjson.AppendString(before, f.name), ':')})
		parts = append(parts, f.value...)
		before = []byte{','}
	}
	if len(fields) == 0 {
		return []segment{{known: []byte("{}")}}
	}
	return append(parts, segment{known: []byte{'}'}})
}

func (s *exprContext) list(items []hcl.Expression) []segment {
	parts := []segment{{known: []byte{'['}}}
	for i, item := range items {
		if i > 0 {
			parts = append(parts, segment{known: []byte{','}})
		}
		parts = append(parts, s.segmentsOf(item)...)
	}
	return append(parts, segment{known: []byte{']'}})
}

// reference is what a traversal names, nil when it must be evaluated to know.
func (s *exprContext) reference(t hcl.Traversal) *reference {
	name, _, ok := syntax.Step(t, 1)
	word := rootWord(t.RootName())
	if !ok || word == nil {
		return nil
	}
	r := &reference{ref: ref{root: word, name: name}, typ: cty.DynamicPseudoType}
	rest := t[2:]
	switch word.bit {
	case rootRun, rootTrigger, rootError, rootEach:
	case rootParam:
		r.typ = s.decoder.params[name].Type
	case rootTask, rootGroup, rootWait:
		r.attribute, _, _ = syntax.Step(t, 2)
		r.number = s.decoder.outputs[settledName(word, name)].number
		rest = t[3:]
	default:
		return nil
	}
	if len(rest) > 0 && !(r.recorded() && r.typ == cty.DynamicPseudoType) {
		return nil
	}
	for i := range rest {
		step, ok := stepInto(rest[i])
		if !ok {
			return nil
		}
		r.steps = append(r.steps, step)
	}
	return r
}

// stepInto is a step into JSON: by name into objects, by number into lists.
func stepInto(t hcl.Traverser) (ctyjson.Step, bool) {
	switch t := t.(type) {
	case hcl.TraverseAttr:
		return ctyjson.Step{Name: cty.NormalizeString(t.Name), Index: -1}, true
	case hcl.TraverseIndex:
		if t.Key.Type() == cty.String {
			return ctyjson.Step{Name: t.Key.AsString(), Index: -1}, true
		}
		if t.Key.Type() == cty.Number {
			n, accuracy := t.Key.AsBigFloat().Int64()
			return ctyjson.Step{Index: int(n)}, accuracy == big.Exact && n >= 0 && n < 1<<31
		}
	}
	return ctyjson.Step{}, false
}

// newTemplate joins what is known to the left of each reference.
func newTemplate(parts []segment) *template {
	l := new(template)
	var known []byte
	for _, p := range parts {
		known = append(known, p.known...)
		if p.ref != nil || p.expr != nil {
			l.segments = append(l.segments, segment{known: known, ref: p.ref, expr: p.expr})
			l.known += len(known)
			known = nil
		}
	}
	l.segments = append(l.segments, segment{known: known})
	l.known += len(known)
	return l
}

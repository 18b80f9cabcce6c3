package budget

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// Instrument gives the expression with nodes that count. A compound value of the
// JSON syntax becomes one of the native syntax.
func Instrument(e hcl.Expression) hcl.Expression {
	if native, ok := e.(hclsyntax.Expression); ok {
		return count(native, true)
	}
	if native := fromJSON(e); native != nil {
		return count(native, true)
	}
	return e
}

// fromJSON is nil for an object with a key that is there twice: hcl's own form of
// it reports that.
func fromJSON(e hcl.Expression) hclsyntax.Expression {
	if items, diags := hcl.ExprList(e); !diags.HasErrors() {
		list := &hclsyntax.TupleConsExpr{SrcRange: e.Range(), OpenRange: e.StartRange()}
		for _, item := range items {
			inner := fromJSON(item)
			if inner == nil {
				return nil
			}
			list.Exprs = append(list.Exprs, inner)
		}
		return list
	}
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		return objectFromJSON(e, pairs)
	}
	if template, ok := syntax.TemplateOf(e); ok {
		return template.(hclsyntax.Expression)
	}
	v, diags := e.Value(nil)
	if diags.HasErrors() || v.Type() == cty.String {
		return nil // a template that does not parse
	}
	return &hclsyntax.LiteralValueExpr{Val: v, SrcRange: e.Range()}
}

func objectFromJSON(e hcl.Expression, pairs []hcl.KeyValuePair) hclsyntax.Expression {
	object := &hclsyntax.ObjectConsExpr{SrcRange: e.Range(), OpenRange: e.StartRange()}
	seen := map[string]bool{}
	for _, p := range pairs {
		name, _ := p.Key.Value(nil)
		key, value := fromJSON(p.Key), fromJSON(p.Value)
		if key == nil || value == nil || name.Type() != cty.String || seen[name.AsString()] {
			return nil
		}
		seen[name.AsString()] = true
		object.Items = append(object.Items, hclsyntax.ObjectConsItem{
			KeyExpr: &hclsyntax.ObjectConsKeyExpr{Wrapped: key, ForceNonLiteral: true}, ValueExpr: value,
		})
	}
	return object
}

// count puts counting nodes into an expression. What only holds others, lists and
// objects, is left alone at the top, where callers take it apart.
func count(e hclsyntax.Expression, top bool) hclsyntax.Expression {
	switch e := e.(type) {
	case *node, *hclsyntax.ScopeTraversalExpr, *hclsyntax.LiteralValueExpr:
		return e
	case *hclsyntax.TemplateExpr:
		if e.IsStringLiteral() {
			return e
		}
	}
	n := &node{Expression: e}
	below := func(child *hclsyntax.Expression, top bool, use purpose) {
		switch c := (*child).(type) {
		case nil:
		case *hclsyntax.ScopeTraversalExpr:
			if use != held {
				in := inParentheses(c)
				*child = &node{Expression: &in, purpose: use, reference: true}
			} else if copies(e) {
				n.plain = append(n.plain, c)
			}
		case *hclsyntax.LiteralValueExpr:
			if use == written && c.Val.Type() == cty.Number {
				in := inParentheses(c)
				*child = &node{Expression: &in, purpose: use, reference: true}
			} else if copies(e) && heavy(c.Val) {
				n.plain = append(n.plain, c)
			}
		default:
			*child = count(c, top)
			if inner, ok := (*child).(*node); ok {
				inner.purpose = use
			}
		}
	}
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		below(&e.Expression, top, held)
	case *hclsyntax.TemplateWrapExpr:
		below(&e.Wrapped, top, held)
	case *hclsyntax.TupleConsExpr:
		for i := range e.Exprs {
			below(&e.Exprs[i], top, held)
		}
	case *hclsyntax.ObjectConsExpr:
		for i := range e.Items {
			below(&e.Items[i].ValueExpr, top, held)
			if key, ok := e.Items[i].KeyExpr.(*hclsyntax.ObjectConsKeyExpr); ok && hcl.ExprAsKeyword(key.Wrapped) == "" {
				below(&key.Wrapped, false, written)
			}
		}
	default:
		top = false
		for _, p := range computed(e) {
			below(p.place, false, p.purpose)
		}
	}
	if top {
		return e
	}
	return n
}

// heavy reports whether it costs something to copy a literal.
func heavy(v cty.Value) bool {
	m := New()
	m.take(v)
	return Max-m.left > 100
}

// copies reports whether a node goes through all of what it is made of. The others
// hold their parts, take one out of them, or compute with numbers.
func copies(e hclsyntax.Expression) bool {
	switch e.(type) {
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateJoinExpr, *hclsyntax.ForExpr, *hclsyntax.SplatExpr:
		return true
	}
	return false
}

// purpose is what becomes of a value in the node above it.
type purpose int

const (
	held     purpose = iota // it is kept, or a part is taken out of it
	written                 // it becomes a string
	joined                  // the numbers within it become strings
	number                  // it becomes a number
	key                     // it is looked up
	iterated                // something is done for each of its elements
)

// slot is a place in a node for another one.
type slot struct {
	place   *hclsyntax.Expression
	purpose purpose
}

// computed are the parts of a node that makes something new of them.
func computed(e hclsyntax.Expression) []slot {
	switch e := e.(type) {
	case *hclsyntax.TemplateExpr:
		return slots(e.Parts, written)
	case *hclsyntax.TemplateJoinExpr:
		return []slot{{&e.Tuple, joined}}
	case *hclsyntax.ConditionalExpr:
		return []slot{{&e.Condition, held}, {&e.TrueResult, held}, {&e.FalseResult, held}}
	case *hclsyntax.BinaryOpExpr:
		use := purposeOf(e.Op)
		return []slot{{&e.LHS, use}, {&e.RHS, use}}
	case *hclsyntax.UnaryOpExpr:
		return []slot{{&e.Val, number}}
	case *hclsyntax.FunctionCallExpr:
		return slots(e.Args, held)
	case *hclsyntax.IndexExpr:
		return []slot{{&e.Collection, held}, {&e.Key, key}}
	case *hclsyntax.SplatExpr:
		return []slot{{&e.Source, iterated}}
	case *hclsyntax.RelativeTraversalExpr:
		return []slot{{&e.Source, held}}
	case *hclsyntax.ForExpr:
		return []slot{{&e.CollExpr, iterated}, {&e.KeyExpr, written}, {&e.ValExpr, held}, {&e.CondExpr, held}}
	}
	return nil
}

func purposeOf(op *hclsyntax.Operation) purpose {
	switch op {
	case hclsyntax.OpEqual, hclsyntax.OpNotEqual, hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr:
		return held
	}
	return number
}

func slots(all []hclsyntax.Expression, use purpose) []slot {
	out := make([]slot, len(all))
	for i := range all {
		out[i] = slot{&all[i], use}
	}
	return out
}

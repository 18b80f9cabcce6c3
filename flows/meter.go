package flows

import (
	"math/big"
	"reflect"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// Expressions can ask for more than a machine has: loops in loops, locals that
// double the one before. hcl evaluates without bounds, so what computes is put into
// nodes that count. A unit is about a microsecond or 100 bytes.
//
// maxCost is what one evaluation in a run may cost, and all of those of one load
// together.
const maxCost = 4_000_000

// meter is what an evaluation may still cost.
type meter struct {
	left int
}

func (m *meter) spent() bool { return m.left <= 0 }

// take charges for a value that was made or is about to be copied.
func (m *meter) take(v cty.Value) {
	m.left--
	m.weigh(v)
}

// weigh counts the parts of a value, until nothing is left.
func (m *meter) weigh(v cty.Value) {
	if v.IsMarked() {
		v, _ = v.Unmark()
	}
	if m.spent() || v == cty.NilVal || !v.IsKnown() || v.IsNull() {
		return
	}
	switch t := v.Type(); {
	case t == cty.String:
		m.left -= len(v.AsString()) / 64
	case t == cty.Number:
		m.left -= digitsCost(v.AsBigFloat())
	case t.IsObjectType() || t.IsMapType() || t.IsTupleType() || t.IsListType() || t.IsSetType():
		for it := v.ElementIterator(); !m.spent() && it.Next(); {
			_, item := it.Element()
			m.left--
			m.weigh(item)
		}
	}
}

func (m *meter) weighs(v cty.Value) int {
	before := m.left
	m.weigh(v)
	return before - m.left
}

// digitsCost is what writing a number out costs: the square of its length.
func digitsCost(n *big.Float) int {
	length := n.MantExp(nil) / 1000
	if length > 2000 || length < -2000 {
		return maxCost
	}
	return length * length
}

// metered is a node that counts. While it is evaluated it finds its meter in the
// context; what it holds is charged before, where it is no node that counts
// itself, and its own value after.
type metered struct {
	hclsyntax.Expression
	plain []hclsyntax.Expression // children to be charged: references, and what is written out

	unifies bool // a call that brings the elements of its arguments to one type
	unified bool // an argument of such a call
}

// unifying are the functions that bring the elements of a list to one type, which
// cty does by comparing each with each.
var unifying = []string{
	"alltrue", "anytrue", "chunklist", "coalescelist", "compact", "distinct", "join", "setintersection", "setproduct", "setsubtract",
	"setunion", "sort", "tolist", "toset", "zipmap",
}

// unify charges for that.
func (m *meter) unify(v cty.Value) {
	if v.Type().IsTupleType() {
		n := v.Type().Length()
		m.left -= n * n / 100
	}
}

// meterName is no name that an expression can have.
const meterName = " meter"

func meterOf(ctx *hcl.EvalContext) *meter {
	for ; ctx != nil; ctx = ctx.Parent() {
		if v, ok := ctx.Variables[meterName]; ok {
			return v.EncapsulatedValue().(*meter)
		}
	}
	return &meter{left: maxCost}
}

func (e *metered) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	m := meterOf(ctx)
	for _, child := range e.plain {
		if v, diags := child.Value(ctx); !diags.HasErrors() {
			m.take(v)
			if e.unifies {
				m.unify(v)
			}
		}
	}
	if m.spent() {
		return cty.DynamicVal, nil // the whole evaluation fails
	}
	v, diags := e.Expression.Value(ctx)
	m.take(v)
	if e.unified {
		m.unify(v)
	}
	if m.spent() {
		return cty.DynamicVal, nil
	}
	return v, diags
}

// UnwrapExpression lets hcl see what stands behind, such as a call that is a type.
func (e *metered) UnwrapExpression() hcl.Expression { return e.Expression }

var meterType = cty.Capsule("meter", reflect.TypeFor[meter]())

// measured evaluates an expression and charges for it.
func (m *meter) measured(e hcl.Expression, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	child := ctx.NewChild()
	child.Variables = map[string]cty.Value{meterName: cty.CapsuleVal(meterType, m)}
	v, diags := e.Value(child)
	m.take(v)
	if !m.spent() {
		return v, diags
	}
	at := e.Range()
	return cty.DynamicVal, hcl.Diagnostics{{
		Severity: hcl.DiagError, Summary: "Too much to compute", Subject: &at,
		Detail: "What expressions compute is bounded, and here the bound is reached: loops within loops multiply, and locals that hold others twice double. Let a task compute this.",
	}}
}

// countingNodes gives the expression with nodes that count. A compound value of the
// JSON syntax becomes one of the native syntax.
func countingNodes(e hcl.Expression) hcl.Expression {
	if native, ok := e.(hclsyntax.Expression); ok {
		return count(native, true)
	}
	if native := fromJSON(e); native != nil {
		return count(native, true)
	}
	return e
}

// fromJSON is nil for an object with a key that is there twice: hcl's own form of
// it says so.
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
	if template, ok := templateOf(e); ok {
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
	case *metered, *hclsyntax.ScopeTraversalExpr, *hclsyntax.LiteralValueExpr:
		return e
	case *hclsyntax.TemplateExpr:
		if e.IsStringLiteral() {
			return e
		}
	}
	var plain []hclsyntax.Expression
	below := func(child *hclsyntax.Expression, top bool) {
		switch c := (*child).(type) {
		case nil:
		case *hclsyntax.ScopeTraversalExpr:
			plain = append(plain, c)
		case *hclsyntax.LiteralValueExpr:
			if m := (&meter{left: maxCost}); m.weighs(c.Val) > 100 {
				plain = append(plain, c)
			}
		default:
			*child = count(c, top)
		}
	}
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		below(&e.Expression, top)
	case *hclsyntax.TemplateWrapExpr:
		below(&e.Wrapped, top)
	case *hclsyntax.TupleConsExpr:
		for i := range e.Exprs {
			below(&e.Exprs[i], top)
		}
	case *hclsyntax.ObjectConsExpr:
		for i := range e.Items {
			below(&e.Items[i].ValueExpr, top)
			if key, ok := e.Items[i].KeyExpr.(*hclsyntax.ObjectConsKeyExpr); ok {
				key.Wrapped = count(key.Wrapped, false)
			}
		}
	default:
		top = false
		for _, child := range computed(e) {
			below(child, false)
		}
	}
	if top {
		return e
	}
	return countingNode(e, plain)
}

// countingNode is a node that counts, over parts of which some are plain.
func countingNode(e hclsyntax.Expression, plain []hclsyntax.Expression) *metered {
	out := &metered{Expression: e}
	if copies(e) {
		out.plain = plain
	}
	call, ok := e.(*hclsyntax.FunctionCallExpr)
	if !ok || !slices.Contains(unifying, call.Name) {
		return out
	}
	out.unifies = true
	for _, arg := range call.Args {
		if arg, ok := arg.(*metered); ok {
			arg.unified = true
		}
	}
	return out
}

// copies reports whether a node goes through all of what it is made of. The others
// hold their parts, take one out of them, or compute with numbers.
func copies(e hclsyntax.Expression) bool {
	switch e := e.(type) {
	case *hclsyntax.TemplateExpr, *hclsyntax.TemplateJoinExpr, *hclsyntax.FunctionCallExpr, *hclsyntax.ConditionalExpr,
		*hclsyntax.ForExpr, *hclsyntax.SplatExpr:
		return true
	case *hclsyntax.BinaryOpExpr:
		return e.Op == hclsyntax.OpEqual || e.Op == hclsyntax.OpNotEqual
	}
	return false
}

// computed are the parts of a node that makes something new of them.
func computed(e hclsyntax.Expression) []*hclsyntax.Expression {
	switch e := e.(type) {
	case *hclsyntax.TemplateExpr:
		return places(e.Parts)
	case *hclsyntax.TemplateJoinExpr:
		return []*hclsyntax.Expression{&e.Tuple}
	case *hclsyntax.ConditionalExpr:
		return []*hclsyntax.Expression{&e.Condition, &e.TrueResult, &e.FalseResult}
	case *hclsyntax.BinaryOpExpr:
		return []*hclsyntax.Expression{&e.LHS, &e.RHS}
	case *hclsyntax.UnaryOpExpr:
		return []*hclsyntax.Expression{&e.Val}
	case *hclsyntax.FunctionCallExpr:
		return places(e.Args)
	case *hclsyntax.IndexExpr:
		return []*hclsyntax.Expression{&e.Collection, &e.Key}
	case *hclsyntax.SplatExpr:
		return []*hclsyntax.Expression{&e.Source}
	case *hclsyntax.RelativeTraversalExpr:
		return []*hclsyntax.Expression{&e.Source}
	case *hclsyntax.ForExpr:
		return []*hclsyntax.Expression{&e.CollExpr, &e.KeyExpr, &e.ValExpr, &e.CondExpr}
	}
	return nil
}

func places(all []hclsyntax.Expression) []*hclsyntax.Expression {
	out := make([]*hclsyntax.Expression, len(all))
	for i := range all {
		out[i] = &all[i]
	}
	return out
}

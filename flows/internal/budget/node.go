package budget

import (
	"math/big"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// node is a node that counts. While it is evaluated it finds its budget in the
// context; what it copies is charged before, where it is no node that counts itself,
// and its own value after.
type node struct {
	hclsyntax.Expression
	plain     []hclsyntax.Expression // children to be charged: references, and what is written out
	purpose   purpose
	reference bool // it costs nothing by itself; it is in parentheses, where hcl finds the names in it
}

// UnwrapExpression lets hcl see what is behind the node, such as a call that is a type.
func (e *node) UnwrapExpression() hcl.Expression {
	if e.reference {
		return syntax.Native(e.Expression)
	}
	return e.Expression
}

func (e *node) Value(ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	if e.reference {
		v, diags := e.Expression.Value(ctx)
		if diags.HasErrors() {
			return v, diags
		}
		v, more := e.used(v, ctx, nil)
		return v, append(diags, more...)
	}
	m := budgetOf(ctx)
	for _, child := range e.plain {
		if v, diags := child.Value(ctx); !diags.HasErrors() {
			m.take(v)
		}
	}
	if m.Spent() {
		return cty.DynamicVal, nil // the whole evaluation fails
	}
	v, diags := e.compute(m, ctx)
	m.take(v)
	if m.Spent() {
		return cty.DynamicVal, nil
	}
	if e.purpose == held || diags.HasErrors() {
		return v, diags
	}
	v, more := e.used(v, ctx, m)
	return v, append(diags, more...)
}

func (e *node) compute(m *Budget, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	switch x := e.Expression.(type) {
	case *hclsyntax.FunctionCallExpr:
		return m.call(x, ctx)
	case *hclsyntax.ConditionalExpr:
		return m.choose(x, ctx)
	case *hclsyntax.BinaryOpExpr:
		if x.Op == hclsyntax.OpEqual || x.Op == hclsyntax.OpNotEqual {
			return m.equal(x, ctx)
		}
	}
	return e.Expression.Value(ctx)
}

// used prepares the value for the node above, where that would take much longer by
// hcl's own ways, and charges for what it is going to do.
func (e *node) used(v cty.Value, ctx *hcl.EvalContext, m *Budget) (cty.Value, hcl.Diagnostics) {
	switch t := v.Type(); {
	case e.purpose == written && t == cty.Number:
		return writtenOut(v, ctx, m), nil
	case e.purpose == written && t == cty.String && m == nil:
		budgetOf(ctx).take(v)
	case e.purpose == iterated:
		budgetOf(ctx).iterate(v, m == nil)
	case e.purpose == joined:
		m = budgetOf(ctx)
		m.charge(m.digits(v))
	case e.purpose == number && t == cty.String:
		return budgetOf(ctx).ReadNumber(v), nil
	case e.purpose == key && t == cty.String && v.IsKnown():
		if text, _ := v.Unmark(); !text.IsNull() && len(text.AsString()) > 0 && text.AsString()[0] <= '9' && len(text.AsString()) > ctyjson.MaxDigits {
			budgetOf(ctx).fail(ctyjson.ErrDigits)
		}
	case e.purpose == key && t == cty.Number && v.IsKnown() && !v.IsNull():
		n, _ := v.Unmark()
		if _, accuracy := n.AsBigFloat().Int64(); accuracy != big.Exact {
			budgetOf(ctx).charge(ctyjson.DigitsCost(n.AsBigFloat()))
		}
	}
	return v, nil
}

// iterate charges for a loop over the elements of a value, and for the value itself if
// that has not been done.
func (m *Budget) iterate(v cty.Value, whole bool) {
	if whole {
		m.take(v)
	}
	m.charge(4 * ElementCount(v))
}

// writtenOut is a number as a string. Where the short way does not lead to it, cty
// writes it and is charged for.
func writtenOut(v cty.Value, ctx *hcl.EvalContext, m *Budget) cty.Value {
	n, marks := v.Unmark()
	if !n.IsKnown() || n.IsNull() {
		return v
	}
	f := n.AsBigFloat()
	if text, ok := ctyjson.ShortDecimal(nil, f); ok {
		return cty.StringVal(string(text)).WithMarks(marks)
	}
	if m == nil {
		m = budgetOf(ctx)
	}
	if m.charge(ctyjson.DigitsCost(f)); m.Spent() {
		return cty.UnknownVal(cty.String)
	}
	return cty.StringVal(f.Text('f', -1)).WithMarks(marks)
}

// evaluated is a part of a node that has its value already. In parentheses hcl finds
// the names in it.
type evaluated struct {
	hclsyntax.ParenthesesExpr
	value cty.Value
	diags hcl.Diagnostics
}

func inParentheses(e hclsyntax.Expression) hclsyntax.ParenthesesExpr {
	return hclsyntax.ParenthesesExpr{Expression: e, SrcRange: e.Range()}
}

func (e *evaluated) Value(*hcl.EvalContext) (cty.Value, hcl.Diagnostics) { return e.value, e.diags }

// StartRange is that of the expression itself.
func (e *evaluated) StartRange() hcl.Range { return e.Expression.StartRange() }

// UnwrapExpression lets messages name the expression itself.
func (e *evaluated) UnwrapExpression() hcl.Expression { return e.Expression }

// equal compares two values. cty writes numbers out to compare them; here those of
// one precision are compared as they are.
func (m *Budget) equal(e *hclsyntax.BinaryOpExpr, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	left, right := &evaluated{ParenthesesExpr: inParentheses(e.LHS)}, &evaluated{ParenthesesExpr: inParentheses(e.RHS)}
	for _, side := range []*evaluated{left, right} {
		side.value, side.diags = side.Expression.Value(ctx)
		if m.Spent() {
			return cty.DynamicVal, nil
		}
	}
	a, b := left.value, right.value
	if len(left.diags)+len(right.diags) == 0 && isNumber(a) && isNumber(b) && a.AsBigFloat().Prec() == b.AsBigFloat().Prec() {
		return cty.BoolVal((a.AsBigFloat().Cmp(b.AsBigFloat()) == 0) == (e.Op == hclsyntax.OpEqual)), nil
	}
	m.charge(m.comparing(a) + m.comparing(b))
	if m.Spent() {
		return cty.DynamicVal, nil
	}
	comparison := *e
	comparison.LHS, comparison.RHS = left, right
	return comparison.Value(ctx)
}

func isNumber(v cty.Value) bool {
	return !v.IsMarked() && v.Type() == cty.Number && v.IsKnown() && !v.IsNull()
}

// comparing is what a value costs where it is compared.
func (m *Budget) comparing(v cty.Value) int {
	if v.Type() == cty.Bool {
		return 0
	}
	h := m.weigh(v)
	return 2*h.deep + h.text() + m.fractions(v)
}

// choose evaluates a choice. hcl brings both results to one type; here only the
// chosen one is converted, if that is in linear time.
func (m *Budget) choose(e *hclsyntax.ConditionalExpr, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	var given [3]*evaluated
	for i, part := range []hclsyntax.Expression{e.Condition, e.TrueResult, e.FalseResult} {
		given[i] = &evaluated{ParenthesesExpr: inParentheses(part)}
		given[i].value, given[i].diags = part.Value(ctx)
		if m.Spent() {
			return cty.DynamicVal, nil
		}
	}
	condition, yes, no := given[0], given[1], given[2]
	if yes.value.Type().IsPrimitiveType() && no.value.Type().IsPrimitiveType() {
		for _, g := range given[1:] {
			if g.value.Type() == cty.Number && yes.value.Type() != no.value.Type() {
				m.charge(m.digits(g.value))
			}
		}
	} else if chosen, ok := m.chosen(given); ok {
		return chosen, nil
	} else {
		m.charge(m.pairs(yes.value) + m.pairs(no.value) + 4*m.weigh(yes.value).deep + 4*m.weigh(no.value).deep)
	}
	if m.Spent() {
		return cty.DynamicVal, nil
	}
	choice := *e
	choice.Condition, choice.TrueResult, choice.FalseResult = condition, yes, no
	return choice.Value(ctx)
}

// chosen is the result of a choice between lists or objects that have a type in
// common.
func (m *Budget) chosen(given [3]*evaluated) (cty.Value, bool) {
	for _, g := range given {
		if len(g.diags) > 0 || g.value.IsMarked() || !g.value.IsKnown() || g.value.IsNull() {
			return cty.NilVal, false
		}
	}
	condition, yes, no := given[0].value, given[1].value, given[2].value
	if condition.Type() != cty.Bool {
		return cty.NilVal, false
	}
	if !condition.True() {
		yes, no = no, yes
	}
	if m.charge(m.weigh(yes).parts + m.weigh(no).parts); m.Spent() {
		return cty.NilVal, false
	}
	if yes.Type().Equals(no.Type()) {
		return yes, true
	}
	t, ok := common([]cty.Type{yes.Type(), no.Type()})
	if !ok {
		return cty.NilVal, false
	}
	return m.linear(yes, t)
}

// Bare is native without the nodes that count what an evaluation costs.
func Bare(e hcl.Expression) hcl.Expression {
	for {
		e = syntax.Native(e)
		m, ok := e.(*node)
		if !ok {
			return e
		}
		e = m.Expression
	}
}

// Original is what an instrumented node evaluates, as it is in the file.
func Original(e hcl.Expression) hcl.Expression {
	if m, ok := e.(*node); ok {
		return m.UnwrapExpression()
	}
	return e
}

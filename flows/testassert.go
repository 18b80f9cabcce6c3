package flows

import (
	"fmt"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
)

// assertion is what must hold at the end of a test.
type assertion struct {
	at        hcl.Range
	condition *testExpr
	message   *testExpr // nil for none
}

// Check holds the assertions of a test against its runs, in any order. Each one
// that does not hold is a diagnostic of rule RuleAssertion, with the values that
// its condition refers to; each one that cannot be evaluated is one of another rule.
func (t *Test) Check(runs []Ran) hcl.Diagnostics {
	values, err := t.seen(runs)
	if err != nil {
		return asDiagnostics(err, t.Range)
	}
	r := new(diag.Report)
	for _, a := range t.asserts {
		if a.condition.single && len(runs) == 0 {
			r.Add(RuleAssertion, a.condition.Range(), "There is no run", "The trigger's filter has accepted none, so there is nothing to look at. Assert length(runs) == 0 if that is right.")
			continue
		}
		t.assert(r, a, values)
	}
	return r.All()
}

func (t *Test) assert(r *diag.Report, a *assertion, values map[string]cty.Value) {
	v, ctx, diags := t.evaluate(a.condition, values)
	if r.Take(RuleExpression, diags) {
		return
	}
	v, _ = v.Unmark()
	v, err := convert.Convert(v, cty.Bool)
	if err != nil || v.IsNull() || !v.IsKnown() {
		r.Add(RuleType, a.condition.Range(), "Wrong type", "\"condition\" must be true or false.")
		return
	}
	if v.True() {
		return
	}
	d := r.Add(RuleAssertion, a.condition.Range(), "Assertion failed", "%s", t.complaint(r, a, values, ctx))
	d.Expression, d.EvalContext = a.condition.Expression, ctx
}

// complaint is the author's message, and what was compared.
func (t *Test) complaint(r *diag.Report, a *assertion, values map[string]cty.Value, ctx *hcl.EvalContext) string {
	text := "The condition is false."
	if a.message != nil {
		v, _, diags := t.evaluate(a.message, values)
		if !r.Take(RuleExpression, diags) && !v.IsMarked() && v.IsWhollyKnown() && !v.IsNull() {
			if v, err := convert.Convert(v, cty.String); err == nil {
				text = v.AsString()
			}
		}
	}
	return text + sides(a.condition.Expression, ctx)
}

// sides writes out both sides of the comparison because of which a condition is
// false, where references alone do not show that.
func sides(e hcl.Expression, ctx *hcl.EvalContext) string {
	op, ok := budget.Bare(e).(*hclsyntax.BinaryOpExpr)
	for ok && op.Op == hclsyntax.OpLogicalAnd {
		side := op.LHS
		if v, diags := side.Value(ctx); diags.HasErrors() || v.IsMarked() || v.RawEquals(cty.True) {
			side = op.RHS
		}
		op, ok = budget.Bare(side).(*hclsyntax.BinaryOpExpr)
	}
	if !ok || op.Op != hclsyntax.OpEqual {
		return ""
	}
	got, wrong := op.LHS.Value(ctx)
	want, diags := op.RHS.Value(ctx)
	plain := isPlain(op.LHS, got) && isPlain(op.RHS, want)
	if plain || wrong.HasErrors() || diags.HasErrors() || got.ContainsMarked() || want.ContainsMarked() {
		return ""
	}
	left, err := encodeJSON(got)
	right, also := encodeJSON(want)
	if err != nil || also != nil {
		return ""
	}
	return fmt.Sprintf("\n  left:  %s\n  right: %s", shortened(left), shortened(right))
}

// isPlain reports whether a side is shown in full beside the lines of its file.
func isPlain(e hclsyntax.Expression, v cty.Value) bool {
	switch budget.Bare(e).(type) {
	case *hclsyntax.ScopeTraversalExpr, *hclsyntax.LiteralValueExpr, *hclsyntax.TemplateExpr:
		return v.Type().IsPrimitiveType()
	}
	return false
}

func shortened(text []byte) string {
	const long = 500
	if runes := []rune(string(text)); len(runes) > long {
		return string(runes[:long]) + "…"
	}
	return string(text)
}

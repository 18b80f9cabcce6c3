package budget

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"
)

// call makes a function call: it evaluates the arguments, converts them to what the
// function takes, charges for its work, and then lets hcl make the call.
func (m *Budget) call(e *hclsyntax.FunctionCallExpr, ctx *hcl.EvalContext) (cty.Value, hcl.Diagnostics) {
	w, known := Weights[e.Name]
	f, exists := functionOf(ctx, e.Name)
	m.charge(2)
	if !exists || w.lazy {
		return e.Value(ctx) // can and try evaluate for themselves; hcl reports what is unknown
	}
	if !known {
		w = weight{work: everyPart}
	}
	made := *e
	made.Args = make([]hclsyntax.Expression, len(e.Args))
	values := make([]cty.Value, len(e.Args))
	failed := false
	for i, arg := range e.Args {
		if w.lazyFrom > 0 && i >= w.lazyFrom {
			made.Args[i], values[i] = arg, cty.DynamicVal
			continue
		}
		given := &evaluated{ParenthesesExpr: inParentheses(arg)}
		given.value, given.diags = arg.Value(ctx)
		if m.Spent() {
			return cty.DynamicVal, nil
		}
		made.Args[i], values[i] = given, given.value
		failed = failed || given.diags.HasErrors()
	}
	if e.ExpandFinal {
		values = m.expand(&made, values)
	}
	converted := m.prepare(f, w, made.Args, values)
	if m.Spent() {
		return cty.DynamicVal, nil
	}
	if converted && !failed && len(values) == len(f.Params()) {
		return values[0], nil // that is all that the function does
	}
	if !failed { // hcl makes no call otherwise
		m.charge(w.work(m, values))
	}
	if m.Spent() {
		return cty.DynamicVal, nil
	}
	return made.Value(ctx)
}

func functionOf(ctx *hcl.EvalContext, name string) (function.Function, bool) {
	for ; ctx != nil; ctx = ctx.Parent() {
		if f, ok := ctx.Functions[name]; ok {
			return f, true
		}
	}
	return function.Function{}, false
}

// expand makes arguments of the elements of the last one, as hcl does.
func (m *Budget) expand(made *hclsyntax.FunctionCallExpr, values []cty.Value) []cty.Value {
	n := len(values) - 1
	last, marks := values[n].Unmark()
	t := last.Type()
	if !last.IsKnown() || last.IsNull() || !t.IsTupleType() && !t.IsListType() && !t.IsSetType() {
		return values // it reports that
	}
	m.charge(last.LengthInt())
	if m.Spent() {
		return values
	}
	expression := made.Args[n]
	made.Args, values, made.ExpandFinal = made.Args[:n:n], values[:n:n], false
	for it := last.ElementIterator(); it.Next(); {
		_, item := it.Element()
		item = item.WithMarks(marks)
		made.Args, values = append(made.Args, &evaluated{ParenthesesExpr: inParentheses(expression), value: item}), append(values, item)
	}
	return values
}

// prepare converts arguments to the types of the parameters. It reports whether it
// has converted the one that a function is to convert.
func (m *Budget) prepare(f function.Function, w weight, args []hclsyntax.Expression, values []cty.Value) (done bool) {
	params := f.Params()
	for i, v := range values {
		given, ok := args[i].(*evaluated)
		if !ok {
			continue
		}
		want := cty.DynamicPseudoType
		switch {
		case w.takes != cty.NilType && i == 0:
			want = w.takes
		case w.lists && v.Type().IsTupleType() && v.LengthInt() > 0:
			want = cty.List(cty.DynamicPseudoType)
		case w.lazyFrom > 0 && len(args) > 1:
			m.charge(sizeOf(args[1]) / 2) // twice: the function reads it, too
			want = typeOf(args[1])
		case i < len(params):
			want = params[i].Type
		case f.VarParam() != nil:
			want = f.VarParam().Type
		}
		converted, err := m.argument(v, want)
		if m.Spent() {
			return false
		}
		if err == nil {
			done = done || i == 0 && (w.takes != cty.NilType || w.lazyFrom > 0) && !v.Type().IsPrimitiveType() && v.IsKnown() && !v.IsNull() && want != cty.DynamicPseudoType
			values[i], given.value = converted, converted
		}
	}
	return done
}

// sizeOf is how many bytes an expression has in its file.
func sizeOf(e hcl.Expression) int { return e.Range().End.Byte - e.Range().Start.Byte }

// typeOf is the type that an argument of convert spells, any when it spells none.
func typeOf(e hcl.Expression) cty.Type {
	t, diags := typeexpr.TypeConstraint(e)
	if diags.HasErrors() {
		return cty.DynamicPseudoType
	}
	return t
}

// argument converts one; hcl reports what cannot be converted.
func (m *Budget) argument(v cty.Value, want cty.Type) (cty.Value, error) {
	switch t := v.Type(); {
	case want == cty.DynamicPseudoType || want == t:
		return v, nil
	case want == cty.Number && t == cty.String:
		return m.ReadNumber(v), nil
	case want == cty.String && t == cty.Number:
		return writtenOut(v, nil, m), nil
	case t.IsPrimitiveType() && want.IsPrimitiveType(), !v.IsKnown(), v.IsNull():
		return v, nil // hcl does that
	}
	return m.Convert(v, want)
}

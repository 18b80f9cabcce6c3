package flows

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
)

// typing finds out what expressions can give, from the schemas of the plugins that
// tasks call, before anything runs. It follows the syntax of an expression and not
// its evaluation with unknown values: those have one type for all runs, and the
// values of runs have each their own. A list that a run decodes is a tuple, a field
// may be missing, null has no type. Where HCL converts between types in a way that
// depends on them, the result is open.
type typing struct {
	*exprContext
	names   map[string]*jsonschema.Shape // of the for expressions around
	each    map[*hclsyntax.AnonSymbolExpr]splatted
	trigger *Trigger // whose argument it is, nil in the rest of the flow

	reader *reader // who reads the values of tasks; nil where that is not one task

	// lenient is set inside of try and can, where errors are expected.
	lenient bool

	// guarded is set inside of branches, which may be there so that a null is not
	// looked into.
	guarded bool
}

// splatted is the element of a splat expression, and how it is called.
type splatted struct {
	*jsonschema.Shape
	text string
}

func (s *exprContext) typing() *typing { return &typing{exprContext: s} }

// with is the same inside of a for expression.
func (t *typing) with(name string, s *jsonschema.Shape) *typing {
	if name == "" {
		return t
	}
	inner := *t
	inner.names = map[string]*jsonschema.Shape{name: s}
	for other, known := range t.names {
		if other != name {
			inner.names[other] = known
		}
	}
	return &inner
}

// infer describes what an expression gives, and reports what cannot be right in
// it.
func (t *typing) infer(e hcl.Expression) *jsonschema.Shape {
	e = budget.Bare(e)
	if v, ok := t.fixed(e); ok {
		return jsonschema.FromValue(v)
	}
	switch e := e.(type) {
	case *hclsyntax.ScopeTraversalExpr:
		return t.traversal(e)
	case *hclsyntax.RelativeTraversalExpr:
		return t.steps(t.infer(e.Source), e.Traversal, 0, t.source(e.Source))
	case *hclsyntax.IndexExpr:
		return t.index(e)
	case *hclsyntax.SplatExpr:
		return t.splat(e)
	case *hclsyntax.AnonSymbolExpr:
		if s := t.each[e].Shape; s != nil {
			return s
		}
	case *hclsyntax.ForExpr:
		return t.forExpression(e)
	case *hclsyntax.ConditionalExpr:
		return t.conditional(e)
	case *hclsyntax.BinaryOpExpr:
		return t.operation(e)
	case *hclsyntax.UnaryOpExpr:
		want := takes(e.Op)
		t.operand(e.Val, want)
		return jsonschema.OfKind(want &^ jsonschema.String)
	case *hclsyntax.TemplateExpr:
		for _, part := range e.Parts {
			t.operand(part, jsonschema.String|jsonschema.Number|jsonschema.Bool)
			t.warnOfNull(part)
		}
		return jsonschema.OfKind(jsonschema.String)
	case *hclsyntax.TemplateJoinExpr:
		t.infer(e.Tuple)
		return jsonschema.OfKind(jsonschema.String)
	case *hclsyntax.FunctionCallExpr:
		return t.call(e)
	}
	return t.constructed(e)
}

// fixed is the value of an expression in which nothing is left to a run. What is
// written out as an object or a list is looked at in parts, which have places of
// their own.
func (t *typing) fixed(e hcl.Expression) (cty.Value, bool) {
	switch e.(type) {
	case *hclsyntax.ObjectConsExpr, *hclsyntax.TupleConsExpr, *hclsyntax.AnonSymbolExpr:
		return cty.NilVal, false
	case hclsyntax.Expression:
	default:
		if _, diags := hcl.ExprMap(e); !diags.HasErrors() {
			return cty.NilVal, false
		}
		if _, diags := hcl.ExprList(e); !diags.HasErrors() {
			return cty.NilVal, false
		}
	}
	for _, name := range e.Variables() {
		if root := name.RootName(); root != "var" && root != "flow" || t.names[root] != nil {
			return cty.NilVal, false
		}
	}
	v, diags := e.Value(t.runBase())
	return v, !diags.HasErrors() && v.IsWhollyKnown()
}

// constructed describes an object or a list that is written out, in either
// syntax. Anything else is open.
func (t *typing) constructed(e hcl.Expression) *jsonschema.Shape {
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		s := &jsonschema.Shape{Kinds: jsonschema.Object, Fields: map[string]*jsonschema.Shape{}, Closed: true}
		for _, pair := range pairs {
			value := t.infer(pair.Value)
			if name, ok := t.name(pair.Key); ok {
				s.Fields[name] = value
				s.Required = append(s.Required, name)
			} else {
				s.Closed = false
			}
		}
		return s
	}
	if items, diags := hcl.ExprList(e); !diags.HasErrors() {
		all := make([]*jsonschema.Shape, len(items))
		for i, item := range items {
			all[i] = t.infer(item)
		}
		return jsonschema.ListOf(jsonschema.UnionOf(all))
	}
	return jsonschema.Any()
}

// name is the key of a pair, if it is known.
func (t *typing) name(key hcl.Expression) (string, bool) {
	v, ok := t.fixed(budget.Bare(key))
	if !ok || v.IsMarked() || !v.IsKnown() || v.IsNull() || v.Type() != cty.String {
		return "", false
	}
	return v.AsString(), true
}

// element is what an index gives: the key may be of either kind.
func element(s *jsonschema.Shape) *jsonschema.Shape {
	if s.Present() == jsonschema.List {
		return s.Item()
	}
	return jsonschema.Any()
}

// index describes an element whose key is an expression.
func (t *typing) index(e *hclsyntax.IndexExpr) *jsonschema.Shape {
	t.infer(e.Key)
	all := t.infer(e.Collection)
	key, _ := t.fixed(e.Key)
	switch text := t.source(e.Collection); {
	case all.Present() != 0 && all.Present()&(jsonschema.List|jsonschema.Object) == 0:
		t.report(RuleType, e.Range(), "Wrong type", "%s is %s and has no elements.", text, all.Present())
		return jsonschema.Any()
	case all.Present() == jsonschema.List && key != cty.NilVal && key.Type() == cty.Number && !key.IsMarked() && !key.IsNull() && key.AsBigFloat().Sign() < 0:
		t.report(RuleValue, e.Key.Range(), "No such element", "Elements are counted from 0. For the last one, write element(%s, length(%s) - 1).", text, text)
	}
	return element(all)
}

func (t *typing) splat(e *hclsyntax.SplatExpr) *jsonschema.Shape {
	source := t.infer(e.Source)
	item := jsonschema.Any()
	switch {
	case source.Present() == jsonschema.List:
		item = source.Item()
	case source.Kinds&jsonschema.List == 0:
		item = source // it is made a list of one
	}
	return jsonschema.ListOf(t.splatted(e, item).infer(e.Each))
}

// splatted is the same inside of a splat expression.
func (t *typing) splatted(e *hclsyntax.SplatExpr, item *jsonschema.Shape) *typing {
	inner := *t
	inner.each = map[*hclsyntax.AnonSymbolExpr]splatted{e.Item: {item, t.source(e.Source) + "[*]"}}
	for symbol, known := range t.each {
		inner.each[symbol] = known
	}
	return &inner
}

func (t *typing) forExpression(e *hclsyntax.ForExpr) *jsonschema.Shape {
	source := t.infer(e.CollExpr)
	if got := source.Present(); got != 0 && got&(jsonschema.List|jsonschema.Object) == 0 {
		t.report(RuleType, e.CollExpr.Range(), "Wrong type", "A list, a set or an object is required, %s is %s.", t.source(e.CollExpr), got)
	}
	key, value := jsonschema.Any(), jsonschema.Any()
	switch source.Present() {
	case jsonschema.List:
		key, value = jsonschema.OfKind(jsonschema.Number), source.Item()
	case jsonschema.Object:
		key, value = jsonschema.OfKind(jsonschema.String), valueOf(source)
	}
	inner := t.with(e.KeyVar, key).with(e.ValVar, value)
	if e.CondExpr != nil {
		inner.operand(e.CondExpr, jsonschema.Bool|jsonschema.String)
	}
	item := inner.infer(e.ValExpr)
	if e.KeyExpr == nil {
		return jsonschema.ListOf(item)
	}
	inner.operand(e.KeyExpr, jsonschema.String|jsonschema.Number|jsonschema.Bool)
	if e.Group {
		item = jsonschema.ListOf(item)
	}
	return &jsonschema.Shape{Kinds: jsonschema.Object, Rest: item}
}

// conditional gives what its branches have in common. HCL converts them to one
// type, so that other than plain values of one kind are open.
func (t *typing) conditional(e *hclsyntax.ConditionalExpr) *jsonschema.Shape {
	t.operand(e.Condition, jsonschema.Bool|jsonschema.String)
	branch := t.branch()
	yes, no := branch.infer(e.TrueResult), branch.infer(e.FalseResult)
	switch {
	case !t.agree(e, yes, no):
	case yes.Kinds == jsonschema.Null:
		return no
	case no.Kinds == jsonschema.Null:
		return yes
	case yes.Present() == no.Present() && yes.Present()&(jsonschema.List|jsonschema.Object) == 0 && oneKind(yes.Present()):
		return jsonschema.Union(yes, no)
	}
	return jsonschema.Any()
}

func oneKind(k jsonschema.Kinds) bool { return k != 0 && k&(k-1) == 0 }

// takes is the kinds that an operator takes. HCL converts strings.
func takes(op *hclsyntax.Operation) jsonschema.Kinds {
	switch op {
	case hclsyntax.OpEqual, hclsyntax.OpNotEqual:
		return jsonschema.AllKinds
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr, hclsyntax.OpLogicalNot:
		return jsonschema.Bool | jsonschema.String
	}
	return jsonschema.Number | jsonschema.String
}

func (t *typing) operation(e *hclsyntax.BinaryOpExpr) *jsonschema.Shape {
	want := takes(e.Op)
	left, right := t.operand(e.LHS, want), t.operand(e.RHS, want)
	if want == jsonschema.AllKinds {
		t.impossible(e, left, right)
	}
	if e.Op.Type == cty.Number {
		return jsonschema.OfKind(jsonschema.Number)
	}
	return jsonschema.OfKind(jsonschema.Bool)
}

// call describes what a function gives for arguments of the types that it
// declares.
func (t *typing) call(e *hclsyntax.FunctionCallExpr) *jsonschema.Shape {
	inner := t
	if e.Name == "try" || e.Name == "can" {
		inner = new(typing)
		*inner = *t
		inner.lenient = true
	}
	args := make([]*jsonschema.Shape, len(e.Args))
	for i, arg := range e.Args {
		args[i] = inner.infer(arg)
	}
	if !e.ExpandFinal {
		inner.checkArguments(e, args)
	}
	switch {
	case e.Name == "try" || e.Name == "convert" || e.ExpandFinal:
		return jsonschema.Any()
	case e.Name == "can":
		return jsonschema.OfKind(jsonschema.Bool)
	case e.Name == "coalesce" && len(args) > 0:
		return jsonschema.UnionOf(args)
	}
	return returned(t.module.runFunctions[e.Name], len(args))
}

// returned describes what a function gives, whatever it is given.
func returned(f function.Function, n int) *jsonschema.Shape {
	if f == (function.Function{}) {
		return jsonschema.Any()
	}
	params := f.Params()
	values := make([]cty.Value, n)
	for i := range values {
		param := f.VarParam()
		if i < len(params) {
			param = &params[i]
		}
		if param == nil {
			return jsonschema.Any()
		}
		values[i] = cty.UnknownVal(param.Type)
	}
	typ, err := f.ReturnTypeForValues(values)
	if err != nil {
		return jsonschema.Any()
	}
	return jsonschema.FromType(typ)
}

package flows

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/flowhost/flowhost/flows/internal/budget"
)

// typing finds out what expressions can give, from the schemas of the plugins that
// tasks call, before anything runs. It follows the syntax of an expression and not
// its evaluation with unknown values: those have one type for all runs, and the
// values of runs have each their own. A list that a run decodes is a tuple, a field
// may be missing, null has no type. Where HCL converts between types in a way that
// depends on them, the result is open.
type typing struct {
	*site
	names   map[string]*shape // of the for expressions around
	each    map[*hclsyntax.AnonSymbolExpr]splatted
	trigger *Trigger // whose argument it is, nil in the rest of the flow

	// lenient is set inside of try and can, where errors are expected.
	lenient bool

	// guarded is set inside of branches, which may be there so that a null is not
	// looked into.
	guarded bool
}

// splatted is the element of a splat expression, and how it is called.
type splatted struct {
	*shape
	text string
}

func (s *site) typing() *typing { return &typing{site: s} }

// with is the same inside of a for expression.
func (t *typing) with(name string, s *shape) *typing {
	if name == "" {
		return t
	}
	inner := *t
	inner.names = map[string]*shape{name: s}
	for other, known := range t.names {
		if other != name {
			inner.names[other] = known
		}
	}
	return &inner
}

// infer describes what an expression gives, and reports what cannot be right in
// it.
func (t *typing) infer(e hcl.Expression) *shape {
	e = budget.Bare(e)
	if v, ok := t.fixed(e); ok {
		return shapeOfValue(v)
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
		if s := t.each[e].shape; s != nil {
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
		return ofKind(want &^ kindString)
	case *hclsyntax.TemplateExpr:
		for _, part := range e.Parts {
			t.operand(part, kindString|kindNumber|kindBool)
		}
		return ofKind(kindString)
	case *hclsyntax.TemplateJoinExpr:
		t.infer(e.Tuple)
		return ofKind(kindString)
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
func (t *typing) constructed(e hcl.Expression) *shape {
	if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		s := &shape{kinds: kindObject, fields: map[string]*shape{}, closed: true}
		for _, pair := range pairs {
			value := t.infer(pair.Value)
			if name, ok := t.name(pair.Key); ok {
				s.fields[name] = value
				s.required = append(s.required, name)
			} else {
				s.closed = false
			}
		}
		return s
	}
	if items, diags := hcl.ExprList(e); !diags.HasErrors() {
		all := make([]*shape, len(items))
		for i, item := range items {
			all[i] = t.infer(item)
		}
		return listOf(unionOf(all))
	}
	return openShape()
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
func element(s *shape) *shape {
	if s.present() == kindList {
		return s.item()
	}
	return openShape()
}

// index describes an element whose key is an expression.
func (t *typing) index(e *hclsyntax.IndexExpr) *shape {
	t.infer(e.Key)
	all := t.infer(e.Collection)
	key, _ := t.fixed(e.Key)
	switch text := t.source(e.Collection); {
	case all.present() != 0 && all.present()&(kindList|kindObject) == 0:
		t.report(RuleType, e.Range(), "Wrong type", "%s is %s and has no elements.", text, all.present())
		return openShape()
	case all.present() == kindList && key != cty.NilVal && key.Type() == cty.Number && !key.IsMarked() && !key.IsNull() && key.AsBigFloat().Sign() < 0:
		t.report(RuleValue, e.Key.Range(), "No such element", "Elements are counted from 0. For the last one, write element(%s, length(%s) - 1).", text, text)
	}
	return element(all)
}

func (t *typing) splat(e *hclsyntax.SplatExpr) *shape {
	source := t.infer(e.Source)
	item := openShape()
	switch {
	case source.present() == kindList:
		item = source.item()
	case source.kinds&kindList == 0:
		item = source // it is made a list of one
	}
	return listOf(t.splatted(e, item).infer(e.Each))
}

// splatted is the same inside of a splat expression.
func (t *typing) splatted(e *hclsyntax.SplatExpr, item *shape) *typing {
	inner := *t
	inner.each = map[*hclsyntax.AnonSymbolExpr]splatted{e.Item: {item, t.source(e.Source) + "[*]"}}
	for symbol, known := range t.each {
		inner.each[symbol] = known
	}
	return &inner
}

func (t *typing) forExpression(e *hclsyntax.ForExpr) *shape {
	source := t.infer(e.CollExpr)
	if got := source.present(); got != 0 && got&(kindList|kindObject) == 0 {
		t.report(RuleType, e.CollExpr.Range(), "Wrong type", "A list, a set or an object is required, %s is %s.", t.source(e.CollExpr), got)
	}
	key, value := openShape(), openShape()
	switch source.present() {
	case kindList:
		key, value = ofKind(kindNumber), source.item()
	case kindObject:
		key, value = ofKind(kindString), valueOf(source)
	}
	inner := t.with(e.KeyVar, key).with(e.ValVar, value)
	if e.CondExpr != nil {
		inner.operand(e.CondExpr, kindBool|kindString)
	}
	item := inner.infer(e.ValExpr)
	if e.KeyExpr == nil {
		return listOf(item)
	}
	inner.operand(e.KeyExpr, kindString|kindNumber|kindBool)
	if e.Group {
		item = listOf(item)
	}
	return &shape{kinds: kindObject, rest: item}
}

// conditional gives what its branches have in common. HCL converts them to one
// type, so that other than plain values of one kind are open.
func (t *typing) conditional(e *hclsyntax.ConditionalExpr) *shape {
	t.operand(e.Condition, kindBool|kindString)
	branch := t.branch()
	yes, no := branch.infer(e.TrueResult), branch.infer(e.FalseResult)
	switch {
	case !t.agree(e, yes, no):
	case yes.kinds == kindNull:
		return no
	case no.kinds == kindNull:
		return yes
	case yes.present() == no.present() && yes.present()&(kindList|kindObject) == 0 && oneKind(yes.present()):
		return union(yes, no)
	}
	return openShape()
}

func oneKind(k kinds) bool { return k != 0 && k&(k-1) == 0 }

// takes is the kinds that an operator takes. HCL converts texts.
func takes(op *hclsyntax.Operation) kinds {
	switch op {
	case hclsyntax.OpEqual, hclsyntax.OpNotEqual:
		return allKinds
	case hclsyntax.OpLogicalAnd, hclsyntax.OpLogicalOr, hclsyntax.OpLogicalNot:
		return kindBool | kindString
	}
	return kindNumber | kindString
}

func (t *typing) operation(e *hclsyntax.BinaryOpExpr) *shape {
	want := takes(e.Op)
	left, right := t.operand(e.LHS, want), t.operand(e.RHS, want)
	if want == allKinds {
		t.impossible(e, left, right)
	}
	if e.Op.Type == cty.Number {
		return ofKind(kindNumber)
	}
	return ofKind(kindBool)
}

// call describes what a function gives for arguments of the types that it
// declares.
func (t *typing) call(e *hclsyntax.FunctionCallExpr) *shape {
	inner := t
	if e.Name == "try" || e.Name == "can" {
		inner = new(typing)
		*inner = *t
		inner.lenient = true
	}
	args := make([]*shape, len(e.Args))
	for i, arg := range e.Args {
		args[i] = inner.infer(arg)
	}
	if !e.ExpandFinal {
		inner.checkArguments(e, args)
	}
	switch {
	case e.Name == "try" || e.Name == "convert" || e.ExpandFinal:
		return openShape()
	case e.Name == "can":
		return ofKind(kindBool)
	case e.Name == "coalesce" && len(args) > 0:
		return unionOf(args)
	}
	return returned(t.module.runFunctions[e.Name], len(args))
}

// returned describes what a function gives, whatever it is given.
func returned(f function.Function, n int) *shape {
	if f == (function.Function{}) {
		return openShape()
	}
	params := f.Params()
	values := make([]cty.Value, n)
	for i := range values {
		param := f.VarParam()
		if i < len(params) {
			param = &params[i]
		}
		if param == nil {
			return openShape()
		}
		values[i] = cty.UnknownVal(param.Type)
	}
	typ, err := f.ReturnTypeForValues(values)
	if err != nil {
		return openShape()
	}
	return shapeOfType(typ)
}

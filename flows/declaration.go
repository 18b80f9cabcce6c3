package flows

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"
	"github.com/zclconf/go-cty/cty/function"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/funcs"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// declaration is what variables and params have in common: a typed name with
// conditions. Of the payload of a trigger it is the type alone.
type declaration struct {
	root         string // "var", "param" or "trigger"
	name         string
	at           hcl.Range
	typed        bool // a type was stated
	typ          cty.Type
	defaults     *typeexpr.Defaults // of optional attributes
	defaultValue cty.Value          // the default, NilVal without one
	description  string
	sensitive    bool
	conditions   []condition
	functions    map[string]function.Function
}

// condition is one validation block.
type condition struct {
	at        hcl.Range
	condition hcl.Expression
	message   hcl.Expression
}

func (s *exprContext) decodeDeclaration(b *hcl.Block, root, name string) *declaration {
	inner, c := s.decodeAt(b, variableSchema)
	d := &declaration{root: root, name: name, at: b.DefRange, typ: cty.DynamicPseudoType, defaultValue: cty.NilVal, functions: s.module.runFunctions}
	if a := c.Arg("type"); a != nil {
		s.decodeType(a, d)
	}
	d.description, _ = inner.text(c.Arg("description"))
	d.sensitive, _ = inner.flag(c.Arg("sensitive"))
	for _, v := range c.Blocks["validation"] {
		if v := inner.decodeCondition(v, d); v != nil {
			d.conditions = append(d.conditions, *v)
		}
	}
	if a := c.Arg("default"); a != nil {
		inner.decodeDefault(a, d)
	}
	return d
}

func (s *exprContext) decodeType(a *hcl.Attribute, d *declaration) {
	var diags hcl.Diagnostics
	d.typed = true
	if levelsOf(a.Expr) > maxTypeLevels {
		s.diags.Add(RuleType, a.Expr.Range(), "Type nested too deeply", "A type may have %d levels, which are about 60 nested objects. Use any for the inner ones.", maxTypeLevels)
		d.typ = cty.DynamicPseudoType
		return
	}
	d.typ, d.defaults, diags = typeexpr.TypeConstraintWithDefaults(a.Expr)
	if s.diags.Take(RuleType, diags) {
		d.typ, d.defaults = cty.DynamicPseudoType, nil
	}
}

// maxTypeLevels bounds the calls and objects within each other in a type. Reading one
// costs the square of them.
const maxTypeLevels = 200

// levelsOf is how deeply a type is nested.
func levelsOf(e hcl.Expression) int {
	var inner []hcl.Expression
	if call, diags := hcl.ExprCall(e); !diags.HasErrors() {
		inner = call.Arguments
	} else if pairs, diags := hcl.ExprMap(e); !diags.HasErrors() {
		for _, p := range pairs {
			inner = append(inner, p.Value)
		}
	} else if items, diags := hcl.ExprList(e); !diags.HasErrors() {
		inner = items
	}
	deepest := 0
	for _, e := range inner {
		deepest = max(deepest, levelsOf(e))
	}
	return deepest + 1
}

// decodeCondition checks that a validation refers to nothing but the value that
// it validates.
func (s *exprContext) decodeCondition(b *hcl.Block, d *declaration) *condition {
	_, c := s.decodeAt(b, validationSchema)
	test, message := c.Arg("condition"), c.Arg("error_message")
	if test == nil || message == nil {
		return nil
	}
	ok := true
	for _, t := range append(test.Expr.Variables(), message.Expr.Variables()...) {
		if name, _, named := syntax.Step(t, 1); t.RootName() != d.root || !named || name != d.name {
			s.diags.Add(RuleMisplaced, t.SourceRange(), "Validation of something else", "A validation can refer only to the value that it belongs to, %s.%s.", d.root, d.name)
			ok = false
		}
	}
	if !ok || s.module.restored == nil && s.misjudges(test.Expr, message.Expr, d) {
		return nil
	}
	return &condition{at: b.DefRange, condition: budget.Instrument(test.Expr), message: budget.Instrument(message.Expr)}
}

// misjudges reports a validation that is wrong for whatever value of the type.
func (s *exprContext) misjudges(test, message hcl.Expression, d *declaration) bool {
	from := s.diags.Count()
	t := s.typing().with(d.root, &jsonschema.Shape{Kinds: jsonschema.Object, Fields: map[string]*jsonschema.Shape{d.name: jsonschema.FromType(d.typ)}, Closed: true})
	t.operand(test, jsonschema.Bool|jsonschema.String)
	t.operand(message, jsonschema.String|jsonschema.Number|jsonschema.Bool)
	ctx := &hcl.EvalContext{
		Variables: map[string]cty.Value{d.root: cty.ObjectVal(map[string]cty.Value{d.name: cty.UnknownVal(d.typ)})},
		Functions: d.functions,
	}
	for _, e := range []hcl.Expression{test, message} {
		if s.diags.Failed(from) {
			break // the types explain more of what is wrong with attributes
		}
		_, diags := s.module.budget.Eval(budget.Instrument(e), ctx)
		s.explain(&expression{Expression: e}, diags)
	}
	return s.diags.Failed(from)
}

func (s *exprContext) decodeDefault(a *hcl.Attribute, d *declaration) {
	d.defaultValue = cty.DynamicVal // when it is wrong, a missing value is not reported as well
	v, ok := s.evaluate(a)
	if !ok {
		return
	}
	v, err := d.convert(s.module.budget, v)
	if err != nil {
		s.diags.Add(RuleType, a.Expr.Range(), "Default of the wrong type", "The default of %s.%s does not fit its type: %s.", d.root, d.name, err)
		return
	}
	d.defaultValue = v
	if err := d.check(s.module.budget, v); err != nil && !v.IsNull() {
		s.diags.Add(RuleVariable, a.Expr.Range(), "Invalid default", "%s", err)
	}
}

// convert brings a value to the declared type, without checking conditions.
func (d *declaration) convert(m *budget.Budget, v cty.Value) (cty.Value, error) {
	own := m.Apart()
	defer m.Absorb(own)
	m = own
	if d.defaults != nil {
		if err := m.Charge(4 * m.Deep(v)); err != nil {
			return cty.NilVal, err
		}
		v = d.defaults.Apply(v)
	}
	converted, err := m.Convert(v, d.typ)
	if err == nil || m.Spent() {
		return converted, err
	}
	if d.typ.IsPrimitiveType() && !v.Type().IsPrimitiveType() { // cty speaks of tuples
		return cty.NilVal, fmt.Errorf("a %s is required, and this is %s", d.typ.FriendlyName(), kindOf(v))
	}
	return cty.NilVal, fmt.Errorf("%s", conversionError(err))
}

// kindOf names what a compound value is as JSON does.
func kindOf(v cty.Value) string {
	if hasFields(v.Type()) {
		return "an object"
	}
	return "a list"
}

// conversionError names the place in the value where it does not fit.
func conversionError(err error) string {
	if p, ok := err.(cty.PathError); ok && len(p.Path) > 0 {
		return diag.ValuePath(p.Path) + ": " + p.Error()
	}
	return err.Error()
}

// check returns the validation that a value does not pass, as an error.
func (d *declaration) check(m *budget.Budget, v cty.Value) error {
	if d.sensitive {
		v = v.Mark(funcs.Sensitive)
	}
	for _, c := range d.conditions {
		ctx := &hcl.EvalContext{
			Variables: map[string]cty.Value{d.root: cty.ObjectVal(map[string]cty.Value{d.name: v})},
			Functions: d.functions,
		}
		result, diags := m.Eval(c.condition, ctx)
		if !diags.HasErrors() {
			result, _ = result.Unmark()
			result, _ = convert.Convert(result, cty.Bool)
		}
		if diags.HasErrors() || result == cty.NilVal || result.IsNull() || !result.IsKnown() {
			return fmt.Errorf("the condition at %s cannot be evaluated for this value; it must be true or false", diag.Place(c.at))
		}
		if result.False() {
			return fmt.Errorf("%s (validation at %s)", c.text(m, ctx), diag.Place(c.at))
		}
	}
	return nil
}

func (c *condition) text(m *budget.Budget, ctx *hcl.EvalContext) string {
	v, diags := m.Eval(c.message, ctx)
	if !diags.HasErrors() && !v.IsMarked() && v.Type() == cty.String && v.IsKnown() && !v.IsNull() {
		return v.AsString()
	}
	return "The value is not allowed"
}

// parse reads a value from text, by the rules of [VarValue].
func (d *declaration) parse(text, filename string) (cty.Value, hcl.Diagnostics) {
	if !d.typed || d.typ == cty.String {
		return cty.StringVal(text), nil
	}
	expr, diags := syntax.ParseExpression(text, filename)
	if diags.HasErrors() {
		return cty.NilVal, diags
	}
	if names := expr.Variables(); len(names) > 0 {
		at := names[0].SourceRange()
		return cty.NilVal, hcl.Diagnostics{{
			Severity: hcl.DiagError, Summary: "Names cannot be used here",
			Detail:  fmt.Sprintf("%s is a name and not a value; strings are written in quotes.", at.SliceBytes([]byte(text))),
			Subject: &at,
		}}
	}
	return budget.New().Eval(budget.Instrument(expr), nil)
}

// Param is a value that a run is given.
type Param struct {
	Name        string
	Description string
	Type        cty.Type
	Required    bool            // there is no default
	Default     json.RawMessage // nil without one
	Sensitive   bool
	Range       hcl.Range

	declaration *declaration
}

// TypeText is the param's type as flow files have it.
func (p *Param) TypeText() string { return typeText(p.Type) }

// typeText spells a type with its optional attributes, which typeexpr leaves out.
func typeText(t cty.Type) string {
	switch {
	case t.IsListType():
		return "list(" + typeText(t.ElementType()) + ")"
	case t.IsSetType():
		return "set(" + typeText(t.ElementType()) + ")"
	case t.IsMapType():
		return "map(" + typeText(t.ElementType()) + ")"
	case t.IsTupleType():
		var items []string
		for _, item := range t.TupleElementTypes() {
			items = append(items, typeText(item))
		}
		return "tuple([" + strings.Join(items, ", ") + "])"
	case t.IsObjectType() && len(t.AttributeTypes()) > 0:
		var fields []string
		for _, name := range keys(t.AttributeTypes()) {
			field := typeText(t.AttributeType(name))
			if t.AttributeOptional(name) {
				field = "optional(" + field + ")"
			}
			fields = append(fields, name+" = "+field)
		}
		return "object({ " + strings.Join(fields, ", ") + " })"
	}
	return typeexpr.TypeString(t)
}

// Parse reads a param's value from text as on a command line: the text itself
// for a param of type string or of no stated type, an HCL expression such as
// 3, true or ["a"] for any other.
func (p *Param) Parse(text string) (json.RawMessage, error) {
	v, diags := p.declaration.parse(text, "--param "+p.Name)
	if diags.HasErrors() {
		return nil, fmt.Errorf("param %s: %s is expected, and %q is not that: %s", p.Name, p.TypeText(), text, diags[0].Detail)
	}
	v, err := p.declaration.convert(budget.New(), v)
	if err != nil {
		return nil, fmt.Errorf("param %s: %w", p.Name, err)
	}
	return encodeJSON(v)
}

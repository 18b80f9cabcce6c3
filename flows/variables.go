package flows

import (
	"iter"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/funcs"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// given is a value from outside for a variable.
type given struct {
	name  string
	at    hcl.Range
	from  string // "--var", or a file
	attr  *hcl.Attribute
	text  *VarValue // instead of attr
	value cty.Value // instead of both: recorded before
}

func (m *module) declareVariable(b *hcl.Block) {
	name, at, ok := m.label(b)
	if !ok {
		return
	}
	m.declared[name] = true
	if first := m.variables[name]; first != nil {
		m.diags.Duplicate("variable", name, at, first.at)
		return
	}
	m.variables[name] = m.exprContext(variableSchema).decodeDeclaration(b, "var", name)
}

// values are the values given to this module's variables, the strongest last.
func (m *module) values() []*given {
	var out []*given
	if m.restored != nil {
		for _, name := range keys(m.restored.Vars) {
			if v, err := decodeJSON(m.restored.Vars[name]); err == nil {
				out = append(out, &given{name: name, at: m.src.at(), from: "the recorded definition", value: v})
			}
		}
		for _, g := range m.globals {
			if v := m.variables[g.name]; v != nil && v.sensitive {
				out = append(out, g)
			}
		}
		return append(out, m.texts(func(v *declaration) bool { return v.sensitive })...)
	}
	for _, f := range m.src.values {
		own := m.parseValues(f)
		for _, g := range own {
			if m.variables[g.name] == nil && !m.broken && !m.src.elsewhere[g.name] && !m.src.unread {
				m.undeclared(g.name, g.at, maps.Keys(m.variables))
			}
		}
		out = append(out, own...)
	}
	out = append(out, m.globals...)
	return append(out, m.texts(func(*declaration) bool { return true })...)
}

// texts are the values of the options for those variables that are wanted.
func (m *module) texts(wanted func(*declaration) bool) []*given {
	var out []*given
	for _, name := range keys(m.options.Vars) {
		if v := m.variables[name]; v != nil && wanted(v) {
			text := m.options.Vars[name]
			at := diag.StartOf(text.From)
			if !v.sensitive {
				m.set.files[text.From] = &hcl.File{Bytes: []byte(text.Text)}
			}
			out = append(out, &given{name: name, at: at, from: text.From, text: &text})
		}
	}
	return out
}

// parseValues reads a file of values.
func (l *loader) parseValues(f sourceFile) []*given {
	parsed, diags := syntax.ParseFile(f.bytes, f.display)
	l.set.files[f.display] = &hcl.File{Bytes: f.bytes}
	if l.diags.Take(RuleSyntax, diags) {
		return nil
	}
	var out []*given
	for _, a := range lang.Attributes(l.diags, parsed.Body, "a file of values") {
		out = append(out, &given{name: a.Name, at: a.NameRange, from: f.display, attr: a})
	}
	return out
}

// assignVariables gives every variable its value: the strongest of those given,
// or the default.
func (m *module) assignVariables(values []*given) {
	strongest := map[string]*given{}
	for _, g := range values {
		strongest[g.name] = g
	}
	vars := map[string]cty.Value{}
	for _, name := range keys(m.variables) {
		v := m.variables[name]
		vars[name] = m.assign(v, strongest[name])
		if v.sensitive {
			vars[name] = vars[name].Mark(funcs.Sensitive)
		}
	}
	m.base.Variables["var"] = cty.ObjectVal(vars)
}

// assign is unknown after an error, so that what follows from it is not
// reported as well.
func (m *module) assign(v *declaration, g *given) cty.Value {
	if g == nil {
		if v.defaultValue != cty.NilVal {
			return v.defaultValue
		}
		m.diags.Add(RuleVariable, v.at, "Variable without a value",
			"var.%s has no default and was given no value. Give it one in a *.auto.vars.hcl file, with --var or in the environment, or give it a default.", v.name)
		return cty.DynamicVal
	}
	at := g.at
	if v.sensitive {
		at = v.at // the line of the value would show it
	}
	value, ok := m.read(v, g, at)
	if !ok {
		return cty.DynamicVal
	}
	value, err := v.convert(m.budget, value)
	if err == nil && !value.IsWhollyKnown() {
		return cty.DynamicVal
	}
	if err == nil {
		err = v.check(m.budget, value)
	}
	if err != nil {
		m.diags.Add(RuleVariable, at, "Invalid value of a variable", "The value of var.%s from %s cannot be used: %s. Its type is %s.", v.name, g.from, err, typeText(v.typ))
		return cty.DynamicVal
	}
	if !v.sensitive {
		if encoded, err := encodeJSON(value); err == nil {
			m.def.Vars[v.name] = encoded
		}
	}
	return value
}

func (m *module) read(v *declaration, g *given, at hcl.Range) (cty.Value, bool) {
	switch {
	case g.attr != nil && v.sensitive:
		value, diags := g.attr.Expr.Value(nil)
		if diags.HasErrors() {
			m.diags.Add(RuleVariable, at, "Invalid value of a variable", "The value of var.%s in %s must be written out, without references and functions.", v.name, g.from)
		}
		return value, !diags.HasErrors()
	case g.attr != nil:
		x, ok := m.exprContext(nil).bind(g.attr.Expr, g.name, lang.Constant)
		if !ok {
			return cty.NilVal, false
		}
		value, diags := m.budget.Eval(x.Expression, nil)
		return value, !m.diags.Take(RuleExpression, diags)
	case g.text != nil:
		value, diags := v.parse(g.text.Text, g.from)
		if diags.HasErrors() {
			reason := "the string does not parse"
			if !v.sensitive {
				reason = diags[0].Detail
			}
			m.diags.Add(RuleVariable, at, "Invalid value of a variable",
				"The value of var.%s from %s must be an HCL expression of type %s, such as 3, true or [\"a\"]: %s", v.name, g.from, typeText(v.typ), reason)
		}
		return value, !diags.HasErrors()
	}
	return g.value, true
}

// checkUndeclared reports values that belong to no variable of any module.
func (l *loader) checkUndeclared() {
	if l.unread || len(l.declared) == 0 && l.diags.Failed(0) {
		return // what could not be read may declare the variable
	}
	for _, name := range keys(l.options.Vars) {
		if v := l.options.Vars[name]; !l.declared[name] && !v.Ambient {
			l.undeclared(name, diag.StartOf(v.From), maps.Keys(l.declared))
		}
	}
	for _, g := range l.globals {
		if !l.declared[g.name] {
			l.undeclared(g.name, g.at, maps.Keys(l.declared))
		}
	}
}

func (l *loader) undeclared(name string, at hcl.Range, names iter.Seq[string]) {
	l.diags.Add(RuleVariable, at, "Value for an undeclared variable", "There is no variable %q to take this value.%s", name, l.diags.Guess(name, "", names))
}

// local is one named expression. Those of a module are fixed at load; those of
// a flow may use run values.
type local struct {
	name    string
	at      hcl.Range
	context *exprContext
	attr    *hcl.Attribute
	state   localState
	expr    *expression // set once resolved
	value   cty.Value   // at load; unknown where it rests on run values
}

type localState int

const (
	unresolved localState = iota
	resolving
	resolved
	unusable
)

func (m *module) declareLocal(into map[string]*local, a *hcl.Attribute) {
	if first := into[a.Name]; first != nil {
		m.diags.Duplicate("local", a.Name, a.NameRange, first.at)
		return
	}
	into[a.Name] = &local{name: a.Name, at: a.NameRange, attr: a, context: m.exprContext(nil)}
}

// evaluateLocals resolves the locals of the module, used or not.
func (m *module) evaluateLocals() {
	for _, name := range keys(m.locals) {
		m.resolve(m.locals[name])
	}
}

// resolve binds and evaluates a local after those that it refers to, and
// reports whether it can be used. Binding comes back here for each local that it finds.
func (m *module) resolve(l *local) bool {
	switch l.state {
	case resolved:
		return true
	case resolving:
		m.localCycle(l)
		return false
	case unusable:
		return false
	}
	l.state = resolving
	m.resolvingNow = append(m.resolvingNow, l)
	at := lang.Load
	if l.context.decoder != nil {
		at = lang.Run
	}
	x, ok := l.context.bind(l.attr.Expr, "local."+l.name, at)
	if ok {
		l.expr = x
		l.value, ok = l.context.compute(x)
	}
	m.resolvingNow = m.resolvingNow[:len(m.resolvingNow)-1]
	l.state = unusable
	if ok {
		l.state = resolved
		l.expr.settle(l.value)
	}
	return ok
}

// localCycle reports a local that is met again while it is being resolved.
func (m *module) localCycle(again *local) {
	var steps []string
	for i, l := range m.resolvingNow {
		if l == again {
			for _, in := range m.resolvingNow[i:] {
				steps = append(steps, "local."+in.name+" ("+diag.Place(in.at)+")")
			}
			break
		}
	}
	if len(steps) == 1 {
		m.diags.Add(RuleSelfReference, again.at, "Local refers to itself", "local.%s cannot be computed from its own value.", again.name)
		return
	}
	m.diags.Add(RuleCycle, again.at, "Locals refer to each other",
		"None of these can be computed first: %s → local.%s. Break the circle.", strings.Join(steps, " → "), again.name)
}

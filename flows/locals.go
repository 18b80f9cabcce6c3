package flows

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/lang"
)

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

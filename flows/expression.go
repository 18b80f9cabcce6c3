package flows

import (
	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// expression is a checked expression and what it needs.
type expression struct {
	hcl.Expression
	argument string // whose value it is, for messages

	direct roots    // named by the expression itself
	roots  roots    // with those that its locals need
	tasks  []string // named by the expression itself
	needs  []use    // tasks that must be settled first, also through locals
	locals []*local

	constant cty.Value // NilVal unless the value is known at load
	whole    string    // the task whose output is the value, or trigger.payload
}

// wholePayload marks an expression that is trigger.payload and nothing else. No
// task has this name.
const wholePayload = "trigger.payload"

// use is one reference to a task.
type use struct {
	task string
	at   hcl.Range
	via  string // the local in between, or ""
}

// values gives run values to expressions, or what is known of them.
type values interface {
	root(name string) (cty.Value, error) // param, trigger, run, error
	task(name string) (cty.Value, error)
	local(l *local) (cty.Value, error)
}

// evaluate gives the expression's value. Only what the expression names is
// looked up, so that the cost does not grow with the size of the flow.
func (x *expression) evaluate(base *hcl.EvalContext, v values) (cty.Value, hcl.Diagnostics) {
	child, err := x.context(base, v)
	if err != nil {
		return cty.DynamicVal, asDiagnostics(err, x.Range())
	}
	value, diags := x.Value(child)
	if len(diags) > 0 && x.secret(child) {
		diags = redacted(diags)
	}
	return value, diags
}

// secret reports whether the expression uses a sensitive value.
func (x *expression) secret(ctx *hcl.EvalContext) bool {
	for _, t := range x.Variables() {
		if v, diags := t.TraverseAbs(ctx); !diags.HasErrors() && v.ContainsMarked() {
			return true
		}
	}
	return false
}

// redacted leaves out the details of diagnostics: functions quote their
// arguments in them.
func redacted(diags hcl.Diagnostics) hcl.Diagnostics {
	out := make(hcl.Diagnostics, len(diags))
	for i, d := range diags {
		hidden := *d
		hidden.Detail = "The reason is not shown because the expression uses a sensitive value."
		out[i] = &hidden
	}
	return out
}

func (x *expression) context(base *hcl.EvalContext, v values) (*hcl.EvalContext, error) {
	if x.direct&(runRoots|rootLocal) == 0 {
		return base, nil
	}
	child := base.NewChild()
	child.Variables = map[string]cty.Value{}
	if len(x.locals) > 0 {
		locals := make(map[string]cty.Value, len(x.locals))
		for _, l := range x.locals {
			value, err := v.local(l)
			if err != nil {
				return nil, err
			}
			locals[l.name] = value
		}
		child.Variables["local"] = cty.ObjectVal(locals)
	}
	if len(x.tasks) > 0 {
		tasks := make(map[string]cty.Value, len(x.tasks))
		for _, name := range x.tasks {
			value, err := v.task(name)
			if err != nil {
				return nil, err
			}
			tasks[name] = value
		}
		child.Variables["task"] = cty.ObjectVal(tasks)
	}
	for _, r := range rootWords {
		if r.bit&x.direct&(rootParam|rootTrigger|rootRun|rootError) == 0 {
			continue
		}
		value, err := v.root(r.name)
		if err != nil {
			return nil, err
		}
		child.Variables[r.name] = value
	}
	return child, nil
}

// settle keeps what is known of the expression at load.
func (x *expression) settle(v cty.Value) {
	if x.roots&runRoots == 0 && v.IsWhollyKnown() {
		x.constant = v
	}
	x.whole = wholeReference(x.Expression)
}

// wholeReference finds expressions that are a task's output or the trigger's
// payload and nothing else, in parentheses or as the only thing in a template.
func wholeReference(e hcl.Expression) string {
	switch e := e.(type) {
	case *hclsyntax.ParenthesesExpr:
		return wholeReference(e.Expression)
	case *hclsyntax.TemplateWrapExpr:
		return wholeReference(e.Wrapped)
	case *hclsyntax.ScopeTraversalExpr:
		t := e.Traversal
		last, _, _ := step(t, len(t)-1)
		if len(t) == 2 && t.RootName() == "trigger" && last == "payload" {
			return wholePayload
		}
		if len(t) == 3 && t.RootName() == "task" && last == "output" {
			name, _, _ := step(t, 1)
			return name
		}
	}
	return ""
}

// step is one step of a traversal as a name, however it is written: .a or ["a"].
func step(t hcl.Traversal, i int) (string, hcl.Range, bool) {
	if i <= 0 || i >= len(t) {
		return "", hcl.Range{}, false
	}
	switch s := t[i].(type) {
	case hcl.TraverseAttr:
		return s.Name, s.SrcRange, true
	case hcl.TraverseIndex:
		if s.Key.Type() == cty.String && s.Key.IsKnown() && !s.Key.IsNull() {
			return s.Key.AsString(), s.SrcRange, true
		}
	}
	return "", hcl.Range{}, false
}

package flows

import (
	"cmp"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/lang"
)

// expression is a checked expression and what it needs.
type expression struct {
	hcl.Expression
	argument string // whose value it is, for messages
	at       lang.Phase

	direct       roots        // named by the expression itself
	roots        roots        // with those that its locals need
	refs         []ref        // run values named by the expression itself, by root and name
	dependencies []dependency // tasks and groups that must be settled first, also through locals
	locals       []*local

	constant cty.Value // NilVal unless the value is known at load
}

// ref is a run value that an expression names: run.id, param.n or
// task.a.output.
type ref struct {
	root      *root
	name      string // param, attribute, task, wait or group
	attribute string // of a task, a wait or a group
	number    int    // of a task, a wait or a group
}

// dependency is one reference to a task, a wait or a group.
type dependency struct {
	task string // "copy", "wait.approval" or "group.notify"
	at   hcl.Range
	via  string // the local in between, or ""
}

// values gives run values to expressions, or what is known of them.
type values interface {
	value(w ref) (cty.Value, error)
	single(w ref) (cty.Value, error) // an object that holds nothing but the value
	local(l *local) (cty.Value, error)
}

// addRef notes a run value that the expression names, once.
func (x *expression) addRef(w ref) {
	at, found := slices.BinarySearchFunc(x.refs, w, func(a, b ref) int {
		return cmp.Or(cmp.Compare(a.root.bit, b.root.bit), cmp.Compare(a.name, b.name), cmp.Compare(a.attribute, b.attribute))
	})
	if !found {
		x.refs = slices.Insert(x.refs, at, w)
	}
}

// evaluate gives the expression's value. Only what the expression names is
// looked up, so that the cost does not grow with the size of the flow.
func (x *expression) evaluate(base *hcl.EvalContext, v values, m *budget.Budget) (cty.Value, hcl.Diagnostics) {
	child, err := x.context(base, v)
	if err != nil {
		return cty.DynamicVal, asDiagnostics(err, x.Range())
	}
	value, diags := m.Eval(x.Expression, child)
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
	if len(x.refs)+len(x.locals) == 0 {
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
	for rest := x.refs; len(rest) > 0; {
		first := rest[0]
		group := split(&rest, func(w ref) bool { return w.root == first.root })
		attrs, err := object(x, group, v)
		if err != nil {
			return nil, err
		}
		child.Variables[first.root.name] = attrs
	}
	return child, nil
}

// object is what a root stands for, as far as it is wanted.
func object(x *expression, all []ref, v values) (cty.Value, error) {
	if all[0].root.bit&settledRoots == 0 {
		return attributes(x, all, v)
	}
	tasks := map[string]cty.Value{}
	for len(all) > 0 {
		name := all[0].name
		task, err := attributes(x, split(&all, func(w ref) bool { return w.name == name }), v)
		if err != nil {
			return cty.NilVal, err
		}
		tasks[name] = task
	}
	return cty.ObjectVal(tasks), nil
}

// attributes is an object of values of one root, or of one task.
func attributes(x *expression, all []ref, v values) (cty.Value, error) {
	if len(all) == 1 {
		if part, ok, err := partsOf(x, all[0], v); ok {
			return inObject(all[0].last(), part), err
		}
		return v.single(all[0])
	}
	attrs := make(map[string]cty.Value, len(all))
	for _, w := range all {
		part, ok, err := partsOf(x, w, v)
		if !ok {
			part, err = v.value(w)
		}
		if attrs[w.last()] = part; err != nil {
			return cty.NilVal, err
		}
	}
	return cty.ObjectVal(attrs), nil
}

func partsOf(x *expression, w ref, v values) (cty.Value, bool, error) {
	if from, ok := v.(narrowing); ok {
		return from.narrowed(w, x)
	}
	return cty.NilVal, false, nil
}

func inObject(name string, v cty.Value) cty.Value {
	if v == cty.NilVal {
		return cty.NilVal // there is an error
	}
	return cty.ObjectVal(map[string]cty.Value{name: v})
}

// last is the name at the end of the reference.
func (w ref) last() string {
	if w.root.bit&settledRoots != 0 {
		return w.attribute
	}
	return w.name
}

func single(w ref, v values) (cty.Value, error) {
	value, err := v.value(w)
	if err != nil {
		return cty.NilVal, err
	}
	return cty.ObjectVal(map[string]cty.Value{w.last(): value}), nil
}

// split takes the values at the front that belong together.
func split(all *[]ref, together func(ref) bool) []ref {
	n := 1
	for n < len(*all) && together((*all)[n]) {
		n++
	}
	group := (*all)[:n]
	*all = (*all)[n:]
	return group
}

// settle keeps what is known of the expression at load.
func (x *expression) settle(v cty.Value) {
	if x.roots&runRoots == 0 && v.IsWhollyKnown() {
		x.constant = v
	}
}

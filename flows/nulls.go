package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/ext/typeexpr"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// reader is what evaluates an expression: a task, or, without one, the outputs of the
// flow. Which values of other tasks are null there depends on when it runs.
type reader struct{ task *Task }

// absence is why a value may be null: something along its path is.
type absence struct {
	why     string // after the part of the path that is null: "is null when …"
	steps   int    // of the path, up to that part
	missing bool   // rather than null
}

// warnOfNull warns of a part of a template that is null in some runs. A template with a
// null cannot be evaluated. There is a warning only where a declaration, or the graph of
// the flow, states that such runs exist, and neither a branch nor the task's own condition
// may be there to leave them out.
func (t *typing) warnOfNull(part hcl.Expression) {
	e, ok := budget.Bare(part).(*hclsyntax.ScopeTraversalExpr)
	if !ok || t.guarded || t.lenient || t.decoder == nil || t.names[e.Traversal.RootName()] != nil {
		return
	}
	path := e.Traversal
	a := t.absence(path)
	if a.why == "" || t.reader.asksFor(path) {
		return
	}
	instead := "coalesce"
	if a.missing || a.steps < len(path) {
		instead = "try"
	}
	text := diag.Traversal(path)
	t.warn(RuleNull, e.Range(), "May be null in a template", "%s %s, and a template with a null cannot be evaluated. Write %s(%s, \"…\"), or decide with a condition.",
		diag.Traversal(path[:a.steps]), a.why, instead, text)
}

// absence finds out why the value at a path may be null; there is no why if it is not
// known to be.
func (t *typing) absence(path hcl.Traversal) absence {
	name, _, ok := syntax.Step(path, 1)
	if !ok {
		return absence{}
	}
	switch root := path.RootName(); root {
	case "run":
		if name == "previous_success_at" {
			return absence{why: "is null until a run of the flow has succeeded", steps: 2}
		}
	case "error":
		if name == "details" {
			return absence{why: "is null when the function added no details to its failure", steps: 2}
		}
	case "trigger":
		return t.triggerAbsence(path, name)
	case "param":
		if p := t.decoder.params[name]; p != nil {
			return t.paramAbsence(p, path)
		}
	case "task", "group", "wait":
		if attribute, _, ok := syntax.Step(path, 2); ok {
			return t.settledAbsence(rootWord(root), name, attribute, path)
		}
	}
	return absence{}
}

func (t *typing) triggerAbsence(path hcl.Traversal, name string) absence {
	triggers := t.decoder.flow.Triggers
	if t.trigger != nil {
		triggers = []*Trigger{t.trigger}
	}
	switch name {
	case "name":
		if len(triggers) == 0 {
			return absence{why: "is null when the flow was requested by its name, and this flow has no trigger", steps: 2}
		}
	case "subject":
		if len(triggers) == 0 || slices.ContainsFunc(triggers, func(t *Trigger) bool { return t.Kind != run.TriggerMessage }) {
			return absence{why: "is null unless a message started the run", steps: 2}
		}
	case "payload":
		for _, d := range t.decoder.flow.payloadsOf(t.trigger) {
			if a := d.absence(path); a.why != "" && !t.decoder.flow.Trigger(d.name).filters() {
				return a
			}
		}
	}
	return absence{}
}

// filters reports whether a trigger may refuse payloads for a null in them.
func (t *Trigger) filters() bool {
	return t.filter != nil && t.filter.uses(payloadRef.root, payloadRef.name)
}

// paramAbsence looks at the default and the type of a param, and at what triggers give it.
func (t *typing) paramAbsence(p *Param, path hcl.Traversal) absence {
	d := p.declaration
	if len(d.conditions) > 0 {
		return absence{} // one of them may refuse a null
	}
	if d.defaultValue != cty.NilVal && d.defaultValue.IsKnown() && d.defaultValue.IsNull() {
		return absence{why: "is null unless a value is given: its default is null", steps: 2}
	}
	if trigger := t.nullParams()[p.Name]; trigger != "" && d.defaultValue == cty.NilVal {
		return absence{why: "has no default, and trigger \"" + trigger + "\" gives it a value that may be null", steps: 2}
	}
	return d.absence(path)
}

// nullParams are the params to which a trigger gives a value that may be null, with the
// trigger's name.
func (t *typing) nullParams() map[string]string {
	if t.decoder.nullParams != nil {
		return t.decoder.nullParams
	}
	t.decoder.nullParams = map[string]string{}
	for _, trigger := range t.decoder.flow.Triggers {
		if trigger.params == nil {
			continue
		}
		at := t.typing()
		at.trigger = trigger
		pairs, _ := hcl.ExprMap(budget.Bare(trigger.params.Expression)) // none where it is no object
		for _, pair := range pairs {
			value, ok := budget.Bare(pair.Value).(*hclsyntax.ScopeTraversalExpr)
			name, known := t.name(pair.Key)
			if !ok || !known {
				continue
			}
			if a := at.absence(value.Traversal); a.why != "" && a.steps == len(value.Traversal) {
				t.decoder.nullParams[name] = trigger.Name
			}
		}
	}
	return t.decoder.nullParams
}

// absence finds an optional attribute without a default on a path into a value of the
// declared type.
func (d *declaration) absence(path hcl.Traversal) absence {
	typ, defaults := d.typ, d.defaults
	for i := 2; i < len(path); i++ {
		name, _, named := syntax.StepName(path[i])
		switch {
		case named && typ.IsObjectType() && typ.HasAttribute(name):
			if typ.AttributeOptional(name) && !hasDefault(defaults, name) {
				return absence{why: "is optional and has no default, so it may be null", steps: i + 1}
			}
			typ = typ.AttributeType(name)
		case typ.IsMapType(), typ.IsListType():
			typ, name = typ.ElementType(), ""
		default:
			return absence{}
		}
		if defaults != nil {
			defaults = defaults.Children[name]
		}
	}
	return absence{}
}

func hasDefault(d *typeexpr.Defaults, name string) bool {
	if d == nil {
		return false
	}
	v, ok := d.DefaultValues[name]
	return ok && !v.IsNull()
}

// settledAbsence looks at what a task, a wait or a group gives.
func (t *typing) settledAbsence(word *root, name, attribute string, path hcl.Traversal) absence {
	part, declared := t.decoder.partOf(word, name)
	if t.reader == nil || !declared {
		return absence{}
	}
	of := &settled{t.decoder, word.name + "." + name, part, t.decoder.leaf(word, name), t.decoder.groups[name]}
	if word.bit != rootGroup {
		of.group = nil
	}
	switch attribute {
	case "error":
		return absence{why: of.succeedsFor(t.reader), steps: 3}
	case "output", "payload":
		if why := of.missesFor(t.reader); why != "" {
			return absence{why: why, steps: 3}
		}
		return t.statedAbsence(of.task, path)
	}
	return absence{}
}

// statedAbsence looks at what a function, or an approval, states of what it gives.
func (t *typing) statedAbsence(task *Task, path hcl.Traversal) absence {
	switch {
	case task == nil || task.FanOut:
		return absence{}
	case task.isWait() && task.Wait.For == WaitApproval:
		ended := *t.waitPayload(task.Wait, path)
		ended.Kinds = jsonschema.Object
		return shapeAbsence(&ended, path, "is null when the approval states none")
	case t.decoder.typed[task.Name] != nil && task.Flow == "":
		return shapeAbsence(t.decoder.typed[task.Name].contract.output, path, "may be null, as the function states")
	}
	return absence{}
}

// shapeAbsence finds a null or an optional attribute that a schema states.
func shapeAbsence(s *jsonschema.Shape, path hcl.Traversal, why string) absence {
	for i := 3; ; i++ {
		if s.Kinds != jsonschema.AllKinds && s.Kinds&jsonschema.Null != 0 {
			return absence{why: why, steps: i}
		}
		if i == len(path) {
			return absence{}
		}
		name, _, named := syntax.StepName(path[i])
		field := s.Fields[name]
		if !named || s.Kinds != jsonschema.Object || field == nil {
			return absence{}
		}
		if !slices.Contains(s.Required, name) {
			return absence{why: "may be missing, as the function states", steps: i + 1, missing: true}
		}
		s = field
	}
}

// settled is a task, a wait or a group whose result somebody reads.
type settled struct {
	decoder *flowDecoder
	name    string // "task.price"
	part    Part
	task    *Task  // or wait; nil for a group
	group   *Group // nil for a task
}

// missesFor is why a result may be null where it is read.
func (x *settled) missesFor(r *reader) string {
	switch {
	case x.task != nil && x.task.Continue && !x.task.FanOut:
		return "is null when " + x.name + " has failed, and its on_error is \"continue\""
	case len(r.conditions()) > 0 || x.around(r):
		return ""
	case r.part() != x.part && r.part() != PartOnSuccess:
		return "is null when " + x.name + " has not succeeded, and " + string(r.part()) + " runs then, too"
	case x.skippable() && x.runsWithout(r):
		return "is null when " + x.name + " is skipped"
	case r.task != nil && r.task.RunOn != RunOnSuccess && r.part() == x.part:
		return "is null when " + x.name + " has not succeeded, and run_on is \"" + string(r.task.RunOn) + "\""
	}
	return ""
}

// succeedsFor is why an error may be null where it is read.
func (x *settled) succeedsFor(r *reader) string {
	const why = "is null when there was no failure"
	alone := r.task != nil && r.task.RunOn == RunOnFailure && r.part() == x.part && len(x.needs(r.task)) == 1
	if len(r.conditions()) > 0 || x.around(r) || alone {
		return ""
	}
	return why
}

// around reports whether what is read and its reader are members of one group of which
// one member wins: they see each other as nobody else does.
func (x *settled) around(r *reader) bool {
	if r.task == nil {
		return false
	}
	for g := x.parent(); g != nil; g = g.Parent {
		if g.FirstWins() && g.holds(r.task.Group) {
			return true
		}
	}
	return false
}

func (x *settled) parent() *Group {
	if x.group != nil {
		return x.group.Parent
	}
	return x.task.Group
}

// skippable reports whether there are runs that succeed without it.
func (x *settled) skippable() bool {
	if x.group != nil && x.group.when != nil || x.task != nil && (x.task.when != nil || x.task.RunOn == RunOnFailure) {
		return true
	}
	for g := x.parent(); g != nil; g = g.Parent {
		if g.when != nil || g.FirstWins() {
			return true
		}
	}
	return false
}

// runsWithout reports whether the reader runs when this is skipped: something else before
// it is not.
func (x *settled) runsWithout(r *reader) bool {
	if r.task == nil || r.part() != x.part || r.task.RunOn == RunAlways {
		return true
	}
	certain := x.decoder.certain(x.part)
	return r.task.RunOn == RunOnSuccess && slices.ContainsFunc(x.needs(r.task), func(need Need) bool {
		return need.Node < len(certain) && certain[need.Node]
	})
}

// needs are what decides whether a task runs; none where the graph is wrong.
func (x *settled) needs(t *Task) []Need {
	s := x.decoder.flow.Section(t.part)
	if s.Graph == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.Nodes[t.Node].Needs), func(n Need) bool { return n.Before })
}

// certain is [Section.certain], found out once.
func (d *flowDecoder) certain(part Part) []bool {
	if d.certainTasks[part] == nil {
		d.certainTasks[part] = d.flow.Section(part).certain()
	}
	return d.certainTasks[part]
}

func (r *reader) part() Part {
	if r.task == nil {
		return PartMain
	}
	return r.task.part
}

// conditions may leave out the runs in question: they let the reader run, and choose its
// items.
func (r *reader) conditions() []*expression {
	if r == nil || r.task == nil {
		return nil
	}
	var all []*expression
	for _, x := range []*expression{r.task.when, r.task.each} {
		if x != nil {
			all = append(all, x)
		}
	}
	for g := r.task.Group; g != nil; g = g.Parent {
		if g.when != nil {
			all = append(all, g.when)
		}
	}
	return all
}

// asksFor reports whether a condition of the reader uses what a path begins with.
func (r *reader) asksFor(path hcl.Traversal) bool {
	word := rootWord(path.RootName())
	name, _, _ := syntax.Step(path, 1)
	return slices.ContainsFunc(r.conditions(), func(x *expression) bool { return x.uses(word, name) })
}

// uses reports whether an expression refers to a name after a root. What its locals refer
// to after a root other than task, group and wait may be that.
func (x *expression) uses(word *root, name string) bool {
	if word.bit&settledRoots != 0 {
		return x.dependsOn(settledName(word, name))
	}
	return slices.ContainsFunc(x.refs, func(w ref) bool { return w.root == word && w.name == name }) ||
		slices.ContainsFunc(x.locals, func(l *local) bool { return l.expr.roots&word.bit != 0 })
}

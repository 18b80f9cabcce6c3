package flows

import (
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// contract is what the function that a task calls takes and gives.
type contract struct{ input, config, output *shape }

// openContract is that of a function of which nothing is known.
var openContract = &contract{input: openShape(), config: openShape(), output: openShape()}

// contract finds what a function of the module states, read once for all tasks.
func (s *signature) contract(function string) *contract {
	if s == nil {
		return openContract
	}
	if known := s.contracts[function]; known != nil {
		return known
	}
	known := openContract
	if i := slices.IndexFunc(s.Functions, func(f run.FunctionSignature) bool { return f.Name == function }); i >= 0 {
		f := s.Functions[i]
		known = &contract{input: shapeOfSchema(f.Input), config: shapeOfSchema(f.Config), output: shapeOfSchema(f.Output)}
	}
	if s.contracts == nil {
		s.contracts = map[string]*contract{}
	}
	s.contracts[function] = known
	return known
}

// typed is a task whose types are still to be checked: that needs all tasks of the
// flow.
type typed struct {
	*contract
	task          *Task
	site          *site
	plugin        *plugin
	input, config *hcl.Attribute
}

// expect notes what a task calls and what it writes out.
func (s *site) expect(t *Task, p *plugin, c *content) {
	known := openContract
	if p != nil {
		known = p.signature.contract(t.Function)
	}
	s.draft.typed[t.Name] = &typed{contract: known, task: t, site: s, plugin: p, input: c.arg("input"), config: c.arg("config")}
}

// checkTypes compares what expressions give with what the functions of plugins
// take.
func (d *draft) checkTypes() {
	for _, name := range keys(d.locals) {
		d.localShape(d.locals[name])
	}
	d.checkTriggers()
	for _, t := range d.flow.AllTasks() {
		if c := d.typed[t.Name]; c != nil {
			c.check()
		}
		if t.isWait() {
			d.checkWait(t)
		}
	}
	for _, s := range d.flow.Sections {
		for _, g := range s.Groups {
			d.site.typing().condition(g.when)
		}
	}
	for _, o := range d.flow.Outputs {
		if o.value.expr != nil {
			d.site.typing().infer(o.value.expr.Expression)
		}
	}
}

func (c *typed) check() {
	t := c.site.typing()
	if c.task.FanOut {
		c.site.draft.itemTypes(c.task)
	}
	t.condition(c.task.when)
	t.condition(c.task.again)
	if x := c.task.input.expr; x != nil {
		t.check(x.Expression, c.contract.input, "input")
		c.checkParams(t)
	} else if c.input == nil && c.contract.input.present() == kindObject && c.contract.input.required != nil {
		t.diags.Add(RuleMissing, c.task.Range, "Missing input", "The %s of this task needs an input with %s.", c.task.callee(), diag.Join(c.contract.input.required, "and"))
	}
	c.checkConfig(t)
}

// condition checks what decides: it must be able to give true or false.
func (t *typing) condition(x *expression) {
	if x != nil && x.constant == cty.NilVal {
		t.operand(x.Expression, kindBool|kindString)
	}
}

// checkConfig compares the plugin's config with the task's laid over it.
func (c *typed) checkConfig(t *typing) {
	want, below := *c.contract.config, c.task.config.below
	want.required = nil
	for _, name := range c.contract.config.required {
		if _, given := below[name]; !given {
			want.required = append(want.required, name)
		}
	}
	for _, name := range keys(below) {
		if field := want.fields[name]; field != nil {
			t.compare(field, shapeOfValue(below[name]), spot{path: "config." + name, at: c.plugin.configAt, what: "the plugin's"})
		}
	}
	if x := c.task.config.expr; x != nil {
		t.check(x.Expression, &want, "config")
	} else if c.config == nil && want.present() == kindObject && want.required != nil {
		t.diags.Add(RuleMissing, c.task.Range, "Missing config", "The function of this task needs a config with %s.", diag.Join(want.required, "and"))
	}
}

// localShape describes a local of the flow, and reports what is wrong in it once.
func (d *draft) localShape(l *local) *shape {
	if s := d.localShapes[l]; s != nil {
		return s
	}
	s := openShape()
	if l.state == resolved {
		s = l.site.typing().infer(l.expr.Expression)
	}
	d.localShapes[l] = s
	return s
}

// traversal describes what a reference gives.
func (t *typing) traversal(e *hclsyntax.ScopeTraversalExpr) *shape {
	root := e.Traversal.RootName()
	if s := t.names[root]; s != nil {
		return t.steps(s, e.Traversal, 1, "")
	}
	name, _, ok := syntax.Step(e.Traversal, 1)
	if !ok || t.draft == nil {
		return openShape()
	}
	switch root {
	case "task", "group", "wait":
		if attribute, at, ok := syntax.Step(e.Traversal, 2); ok {
			t.checkErrors(root, name, attribute, at)
			if w := t.draft.tasks[WaitPrefix+name]; root == "wait" && attribute == "payload" && w != nil {
				return t.steps(t.waitPayload(w.Wait, e.Traversal), e.Traversal, 3, "")
			}
			return t.steps(t.settledShape(rootWord(root), name, attribute), e.Traversal, 3, "")
		}
	case "each":
		if t.item != nil {
			return t.steps(t.draft.itemTypes(t.item).attribute(name), e.Traversal, 2, "")
		}
	case "param":
		if p := t.draft.params[name]; p != nil {
			return t.steps(shapeOfType(p.Type), e.Traversal, 2, "")
		}
	case "trigger", "run", "error":
		return t.steps(t.rootShape(e.Traversal, root, name), e.Traversal, 2, "")
	case "local":
		if l := t.draft.locals[name]; l != nil {
			return t.steps(t.draft.localShape(l), e.Traversal, 2, "")
		}
		if l := t.module.locals[name]; l != nil && l.state == resolved {
			return t.steps(shapeOfValue(l.value), e.Traversal, 2, "")
		}
	}
	return openShape()
}

// rootShape describes an attribute of what a run knows of itself.
func (t *typing) rootShape(path hcl.Traversal, root, name string) *shape {
	switch {
	case root == "trigger" && name == "payload":
		if t.trigger != nil && t.trigger.Kind == run.TriggerSchedule {
			t.absent(path, 2, "A schedule has no payload")
		}
		return t.draft.payloadShape(t.trigger)
	case root == "trigger" && name == "kind":
		return wordsOf(run.TriggerBackfill, run.TriggerFlow, run.TriggerManual, run.TriggerMessage, run.TriggerSchedule, run.TriggerTask)
	case name == "outcome":
		return outcomeShape()
	case root == "run" && name == "labels":
		labels := &shape{kinds: kindObject, fields: map[string]*shape{}, closed: t.draft.content.arg("labels") == nil || len(t.draft.flow.Labels) > 0}
		for label := range t.draft.flow.Labels {
			labels.fields[label] = ofKind(kindString)
		}
		return labels
	}
	return shapeOfType(unknown(name).Type())
}

// absent reports a step into what is always null.
func (t *typing) absent(path hcl.Traversal, length int, why string) {
	if len(path) > length && !t.guarded {
		t.report(RuleUnknownAttribute, path[length].SourceRange(), "Unknown attribute", "%s: %s is always null here.", why, diag.Traversal(path[:length]))
	}
}

// waitPayload describes what ends a wait.
func (t *typing) waitPayload(w *Wait, path hcl.Traversal) *shape {
	switch w.For {
	case WaitApproval:
		return &shape{kinds: kindObject | kindNull, closed: true, required: []string{"approved", "by", "payload", "reason"}, fields: map[string]*shape{
			"approved": ofKind(kindBool), "by": ofKind(kindString | kindNull), "payload": openShape(), "reason": ofKind(kindString | kindNull),
		}}
	case WaitDuration, WaitUntil:
		t.absent(path, 3, "A wait for a time ends without a payload")
	}
	return openShape()
}

func (t *typing) settledShape(word *root, name, attribute string) *shape {
	task, group := t.draft.tasks[name], t.draft.groups[name]
	switch {
	case attribute == "error":
		return failureShape()
	case attribute == "errors" && task != nil && task.FanOut:
		return listOf(itemFailureShape(t.draft.itemTypes(task).key))
	case attribute == "state":
		return wordsOf(run.Pending, run.Waiting, run.Ready, run.Running, run.Succeeded, run.Failed, run.Skipped, run.Canceled)
	case attribute != "output":
		return shapeOfType(unknown(attribute).Type())
	case word.bit == rootTask && task != nil:
		return t.draft.taskShape(task)
	case word.bit == rootGroup && group != nil:
		return t.draft.groupShape(group)
	}
	return openShape()
}

func failureShape() *shape {
	s := &shape{kinds: kindObject | kindNull, fields: map[string]*shape{}, required: failureAttributes, closed: true}
	for _, name := range failureAttributes {
		s.fields[name] = shapeOfType(unknown(name).Type())
	}
	s.fields["outcome"] = outcomeShape()
	return s
}

func outcomeShape() *shape {
	return wordsOf(run.OutcomeFailed, run.OutcomeRejected, run.OutcomeTrapped, run.OutcomeTimedOut, run.OutcomeCanceled, run.OutcomeDenied, run.OutcomeLost)
}

// wordsOf describes texts of which the language knows all.
func wordsOf[word ~string](all ...word) *shape {
	s := &shape{kinds: kindString | kindNull, named: true}
	for _, w := range all {
		s.words = append(s.words, string(w))
	}
	return s
}

// steps follows a traversal from its given step on. What it is relative to is
// called by the text.
func (t *typing) steps(s *shape, path hcl.Traversal, from int, text string) *shape {
	for i := from; i < len(path); i++ {
		name, at, named := syntax.StepName(path[i])
		_, indexed := path[i].(hcl.TraverseIndex)
		switch {
		case named && s.present() == kindObject:
			field := s.field(name)
			if field == nil {
				t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s has no attribute %q.%s",
					text+diag.Traversal(path[:i]), name, t.diags.Guess(name, "", maps.Keys(s.fields)))
				return openShape()
			}
			s = field
		case named && s.present()&kindObject == 0 && s.present() != 0 && !(indexed && s.present()&kindList != 0):
			t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s is %s and has no attribute %q.%s",
				text+diag.Traversal(path[:i]), s.present(), name, ofEach(s, text+diag.Traversal(path[:i]), name))
			return openShape()
		case indexed && !t.reaches(s, path, i, text):
			return openShape()
		case indexed && s.present() == kindList:
			s = s.item()
		default:
			return openShape()
		}
	}
	return s
}

// reaches reports an index that a value of its kind never has.
func (t *typing) reaches(s *shape, path hcl.Traversal, i int, text string) bool {
	text += diag.Traversal(path[:i])
	at, kinds := path[i].SourceRange(), s.present()
	key, err := convert.Convert(path[i].(hcl.TraverseIndex).Key, cty.Number)
	number := err == nil && !key.IsNull()
	switch {
	case kinds == 0 || kinds&kindList != 0 && number:
		return true
	case kinds == kindList:
		t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s is a list: its elements are counted from 0.", text)
		return false
	case kinds == kindObject && number && s.field(key.AsBigFloat().Text('f', -1)) == nil:
		t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s is an object and has no element by number.%s", text, diag.DidYouMean("", "", keys(s.fields)))
		return false
	case kinds&(kindList|kindObject) == 0:
		t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s is %s and has no elements.", text, kinds)
		return false
	}
	return true
}

// ofEach tells how to get an attribute of the elements of a list.
func ofEach(s *shape, text, name string) string {
	if item := s.item(); s.present() != kindList || item.present()&kindObject == 0 || item.field(name) == nil {
		return ""
	}
	return fmt.Sprintf(" For that of each element, write %s[*].%s.", text, name)
}

// report adds a diagnostic, but not where errors are expected.
func (t *typing) report(rule Rule, at hcl.Range, summary, detail string, args ...any) {
	if !t.lenient {
		t.diags.Add(rule, at, summary, detail, args...)
	}
}

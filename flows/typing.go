package flows

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// contract is what the function that a task calls takes and gives.
type contract struct{ input, config, output *jsonschema.Shape }

// openContract is that of a function of which nothing is known.
var openContract = &contract{input: jsonschema.Any(), config: jsonschema.Any(), output: jsonschema.Any()}

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
		known = &contract{input: jsonschema.FromSchema(f.Input), config: jsonschema.FromSchema(f.Config), output: jsonschema.FromSchema(f.Output)}
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
	context       *exprContext
	plugin        *plugin
	input, config *hcl.Attribute
}

// expect notes what a task calls and what it writes out.
func (s *exprContext) expect(t *Task, p *plugin, c *lang.Content) {
	known := openContract
	if p != nil {
		known = p.signature.contract(t.Function)
	}
	s.decoder.typed[t.Name] = &typed{contract: known, task: t, context: s, plugin: p, input: c.Arg("input"), config: c.Arg("config")}
}

// checkTypes compares what expressions give with what the functions of plugins
// take.
func (d *flowDecoder) checkTypes() {
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
			d.context.typing().condition(g.when)
		}
	}
	for _, o := range d.flow.Outputs {
		if o.value.expr != nil {
			t := d.context.typing()
			t.reader = &reader{}
			t.infer(o.value.expr.Expression)
		}
	}
}

func (c *typed) check() {
	t := c.context.typing()
	if c.task.FanOut {
		c.context.decoder.itemTypes(c.task)
	}
	t.condition(c.task.when)
	t.condition(c.task.again)
	t.reader = &reader{task: c.task}
	if x := c.task.input.expr; x != nil {
		t.check(x.Expression, c.contract.input, "input")
		c.checkParams(t)
	} else if c.input == nil && c.contract.input.Present() == jsonschema.Object && c.contract.input.Required != nil {
		t.diags.Add(RuleMissing, c.task.Range, "Missing input", "The %s of this task needs an input with %s.", c.task.callee(), diag.Join(c.contract.input.Required, "and"))
	}
	c.checkConfig(t)
}

// condition checks what decides: it must be able to give true or false.
func (t *typing) condition(x *expression) {
	if x != nil && x.constant == cty.NilVal {
		t.operand(x.Expression, jsonschema.Bool|jsonschema.String)
	}
}

// checkConfig compares the plugin's config with the task's laid over it.
func (c *typed) checkConfig(t *typing) {
	want, below := *c.contract.config, c.task.config.below
	want.Required = nil
	given := map[string]bool{}
	for name := range below {
		given[want.FieldName(name)] = true
	}
	for _, name := range c.contract.config.Required {
		if !given[name] {
			want.Required = append(want.Required, name)
		}
	}
	for _, name := range keys(below) {
		if field := want.Fields[want.FieldName(name)]; field != nil {
			t.compare(field, jsonschema.FromValue(below[name]), spot{path: "config." + name, at: c.plugin.configAt, what: "the plugin's"})
		}
	}
	if x := c.task.config.expr; x != nil {
		t.check(x.Expression, &want, "config")
	} else if c.config == nil && want.Present() == jsonschema.Object && want.Required != nil {
		t.diags.Add(RuleMissing, c.task.Range, "Missing config", "The function of this task needs a config with %s.", diag.Join(want.Required, "and"))
	}
}

// localShape describes a local of the flow, and reports what is wrong in it once.
func (d *flowDecoder) localShape(l *local) *jsonschema.Shape {
	if s := d.localShapes[l]; s != nil {
		return s
	}
	s := jsonschema.Any()
	if l.state == resolved {
		s = l.context.typing().infer(l.expr.Expression)
	}
	d.localShapes[l] = s
	return s
}

// traversal describes what a reference gives.
func (t *typing) traversal(e *hclsyntax.ScopeTraversalExpr) *jsonschema.Shape {
	root := e.Traversal.RootName()
	if s := t.names[root]; s != nil {
		return t.steps(s, e.Traversal, 1, "")
	}
	name, _, ok := syntax.Step(e.Traversal, 1)
	if !ok || t.decoder == nil {
		return jsonschema.Any()
	}
	switch root {
	case "task", "group", "wait":
		if attribute, at, ok := syntax.Step(e.Traversal, 2); ok {
			t.checkErrors(root, name, attribute, at)
			if w := t.decoder.tasks[WaitPrefix+name]; root == "wait" && attribute == "payload" && w != nil {
				return t.steps(t.waitPayload(w.Wait, e.Traversal), e.Traversal, 3, "")
			}
			return t.steps(t.settledShape(rootWord(root), name, attribute), e.Traversal, 3, "")
		}
	case "each":
		if t.item != nil {
			return t.steps(t.decoder.itemTypes(t.item).attribute(name), e.Traversal, 2, "")
		}
	case "param":
		if p := t.decoder.params[name]; p != nil {
			return t.steps(jsonschema.FromType(p.Type), e.Traversal, 2, "")
		}
	case "trigger", "run", "error":
		return t.steps(t.rootShape(e.Traversal, root, name), e.Traversal, 2, "")
	case "local":
		if l := t.decoder.locals[name]; l != nil {
			return t.steps(t.decoder.localShape(l), e.Traversal, 2, "")
		}
		if l := t.module.locals[name]; l != nil && l.state == resolved {
			return t.steps(jsonschema.FromValue(l.value), e.Traversal, 2, "")
		}
	}
	return jsonschema.Any()
}

// rootShape describes an attribute of what a run knows of itself.
func (t *typing) rootShape(path hcl.Traversal, root, name string) *jsonschema.Shape {
	switch {
	case root == "trigger" && name == "payload":
		if t.trigger != nil && t.trigger.Kind == run.TriggerSchedule {
			t.absent(path, 2, "A schedule has no payload")
		}
		return t.decoder.payloadShape(t.trigger)
	case root == "trigger" && name == "kind":
		return wordsOf(run.TriggerBackfill, run.TriggerFlow, run.TriggerManual, run.TriggerMessage, run.TriggerSchedule, run.TriggerTask)
	case name == "outcome":
		return outcomeShape()
	case root == "run" && name == "labels":
		labels := &jsonschema.Shape{Kinds: jsonschema.Object, Fields: map[string]*jsonschema.Shape{}, Closed: t.decoder.content.Arg("labels") == nil || len(t.decoder.flow.Labels) > 0}
		for label := range t.decoder.flow.Labels {
			labels.Fields[label] = jsonschema.OfKind(jsonschema.String)
		}
		return labels
	}
	return jsonschema.FromType(unknown(name).Type())
}

// absent reports a step into what is always null.
func (t *typing) absent(path hcl.Traversal, length int, why string) {
	if len(path) > length && !t.guarded {
		t.report(RuleUnknownAttribute, path[length].SourceRange(), "Unknown attribute", "%s: %s is always null here.", why, diag.Traversal(path[:length]))
	}
}

// waitPayload describes what ends a wait.
func (t *typing) waitPayload(w *Wait, path hcl.Traversal) *jsonschema.Shape {
	switch w.For {
	case WaitApproval:
		return &jsonschema.Shape{Kinds: jsonschema.Object | jsonschema.Null, Closed: true, Required: []string{"approved", "by", "payload", "reason"}, Fields: map[string]*jsonschema.Shape{
			"approved": jsonschema.OfKind(jsonschema.Bool), "by": jsonschema.OfKind(jsonschema.String | jsonschema.Null), "payload": jsonschema.Any(), "reason": jsonschema.OfKind(jsonschema.String | jsonschema.Null),
		}}
	case WaitDuration, WaitUntil:
		t.absent(path, 3, "A wait for a time ends without a payload")
	}
	return jsonschema.Any()
}

func (t *typing) settledShape(word *root, name, attribute string) *jsonschema.Shape {
	task, group := t.decoder.tasks[name], t.decoder.groups[name]
	switch {
	case attribute == "error":
		return failureShape()
	case attribute == "errors" && task != nil && task.FanOut:
		return jsonschema.ListOf(itemFailureShape(t.decoder.itemTypes(task).key))
	case attribute == "state":
		return wordsOf(run.Pending, run.Waiting, run.Ready, run.Running, run.Succeeded, run.Failed, run.Skipped, run.Canceled)
	case attribute != "output":
		return jsonschema.FromType(unknown(attribute).Type())
	case word.bit == rootTask && task != nil:
		return t.decoder.taskShape(task)
	case word.bit == rootGroup && group != nil:
		return t.decoder.groupShape(group)
	}
	return jsonschema.Any()
}

func failureShape() *jsonschema.Shape {
	s := &jsonschema.Shape{Kinds: jsonschema.Object | jsonschema.Null, Fields: map[string]*jsonschema.Shape{}, Required: failureAttributes, Closed: true}
	for _, name := range failureAttributes {
		s.Fields[name] = jsonschema.FromType(unknown(name).Type())
	}
	s.Fields["outcome"] = outcomeShape()
	return s
}

func outcomeShape() *jsonschema.Shape {
	return wordsOf(run.OutcomeFailed, run.OutcomeRejected, run.OutcomeTrapped, run.OutcomeTimedOut, run.OutcomeCanceled, run.OutcomeDenied, run.OutcomeLost)
}

// wordsOf describes strings of which the language knows all.
func wordsOf[word ~string](all ...word) *jsonschema.Shape {
	s := &jsonschema.Shape{Kinds: jsonschema.String | jsonschema.Null, Declared: true}
	for _, w := range all {
		s.Enum = append(s.Enum, string(w))
	}
	return s
}

// steps follows a traversal from its given step on. What it is relative to is
// called by the text.
func (t *typing) steps(s *jsonschema.Shape, path hcl.Traversal, from int, text string) *jsonschema.Shape {
	for i := from; i < len(path); i++ {
		name, at, named := syntax.StepName(path[i])
		_, indexed := path[i].(hcl.TraverseIndex)
		switch {
		case named && s.Present() == jsonschema.Object:
			field := s.Field(name)
			if field == nil {
				t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s has no attribute %q.%s",
					text+diag.Traversal(path[:i]), name, t.diags.Guess(name, "", maps.Keys(s.Fields)))
				return jsonschema.Any()
			}
			s = field
		case named && s.Present()&jsonschema.Object == 0 && s.Present() != 0 && !(indexed && s.Present()&jsonschema.List != 0):
			t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s is %s and has no attribute %q.%s",
				text+diag.Traversal(path[:i]), s.Present(), name, ofEach(s, text+diag.Traversal(path[:i]), name))
			return jsonschema.Any()
		case indexed && !t.reaches(s, path, i, text):
			return jsonschema.Any()
		case indexed && s.Present() == jsonschema.List:
			s = s.Item()
		default:
			return jsonschema.Any()
		}
	}
	return s
}

// reaches reports an index that a value of its kind never has.
func (t *typing) reaches(s *jsonschema.Shape, path hcl.Traversal, i int, text string) bool {
	text += diag.Traversal(path[:i])
	at, kinds := path[i].SourceRange(), s.Present()
	key, err := convert.Convert(path[i].(hcl.TraverseIndex).Key, cty.Number)
	number := err == nil && !key.IsNull()
	switch {
	case kinds == 0 || kinds&jsonschema.List != 0 && number:
		return true
	case kinds == jsonschema.List:
		t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s is a list: its elements are counted from 0.", text)
		return false
	case kinds == jsonschema.Object && number && s.Field(key.AsBigFloat().Text('f', -1)) == nil:
		t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s is an object and has no element by number.%s", text, diag.DidYouMean("", "", keys(s.Fields)))
		return false
	case kinds&(jsonschema.List|jsonschema.Object) == 0:
		t.report(RuleUnknownAttribute, at, "Unknown attribute", "%s is %s and has no elements.", text, kinds)
		return false
	}
	return true
}

// ofEach explains how to get an attribute of the elements of a list.
func ofEach(s *jsonschema.Shape, text, name string) string {
	if item := s.Item(); s.Present() != jsonschema.List || item.Present()&jsonschema.Object == 0 || item.Field(name) == nil {
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

// TypeText spells a JSON Schema as the types of variables are spelled, "list(string)"
// or "object({ id = string, note = optional(string) })". What the schema leaves
// open, and what this package does not understand of it, is "any".
func TypeText(schema json.RawMessage) string { return jsonschema.TypeText(schema) }

// CheckSchema finds what in a JSON Schema cannot be what its author meant: types
// that do not exist, references to nothing, fields that are required and cannot be
// there, and values of these keywords that are of the wrong kind. When a flow is
// checked they make a type wider, and mistakes pass. Each fault is a sentence with its
// place, a JSON pointer. Keywords that are not known here are not looked at.
func CheckSchema(schema json.RawMessage) []string { return jsonschema.Check(schema) }

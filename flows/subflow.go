package flows

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// functionOnly are the arguments and blocks of a task that concern the call of a
// function, and nothing about a flow: its tasks have their own.
var functionOnly = []string{"function", "config", "heartbeat", "priority", "limit", "limits", "grant"}

// subflow reads which flow a task runs, if it runs one, and holds that it has
// exactly one of plugin and flow.
func (s *exprContext) subflow(t *Task, b *hcl.Block, c *lang.Content) {
	plugin, flow := c.Arg("plugin"), c.Arg("flow")
	switch {
	case plugin == nil && flow == nil:
		if !lang.Misused(b.Body, "plugin") && !lang.Misused(b.Body, "flow") {
			s.diags.Add(RuleMissing, t.Range, "Missing argument",
				"A task block needs one of the arguments \"plugin\" (plugin.NAME, or the path of a module) and \"flow\" (flow.NAME of the same directory): write plugin = … or flow = …")
		}
		return
	case flow == nil:
		return
	case plugin != nil:
		s.diags.Add(RuleConflict, flow.NameRange, "plugin and flow", "A task calls a function of a plugin or runs a flow: keep one of the two.")
	}
	for _, name := range functionOnly {
		if a, block := c.Arg(name), c.One(name); a != nil {
			s.notOfFlow(name, a.NameRange)
		} else if block != nil {
			s.notOfFlow(name, block.TypeRange)
		}
	}
	t.called = flow.Expr.Range()
	if d := s.flow(flow); d != nil {
		t.Flow, t.Child = d.flow.Name, d.flow
	}
}

func (s *exprContext) notOfFlow(name string, at hcl.Range) {
	s.diags.Add(RuleConflict, at, name+" and flow", "%q is about the call of a function: the tasks of the flow have their own. Leave it out.", name)
}

// flow is the flow that a task names, flow.NAME or as text. It is nil when that
// has been reported as wrong.
func (s *exprContext) flow(a *hcl.Attribute) *flowDecoder {
	t := flowReference(a.Expr)
	name, at, ok := syntax.Step(t, 1)
	switch {
	case len(t) == 2 && ok && name == "name":
		s.diags.Add(RuleReference, at, "Not a flow", "flow.name is the name of this flow. A flow with that name is written as a string: %s = \"name\".", a.Name)
		return nil
	case len(t) == 2 && ok:
		return s.flowOf(name, at)
	case len(t) == 1 && s.module.decoders[t.RootName()] != nil:
		s.diags.Add(RuleUnknownRoot, t.SourceRange(), "Incomplete reference", "There is no %q by itself. Did you mean flow.%s?", t.RootName(), t.RootName())
		return nil
	}
	if name, ok := s.text(a); ok {
		return s.flowOf(name, a.Expr.Range())
	}
	return nil
}

// flowReference is the reference flow.NAME that an expression is, or a bare name.
// Anything else, with references elsewhere, is to be evaluated.
func flowReference(e hcl.Expression) hcl.Traversal {
	if named, ok := syntax.Native(e).(*hclsyntax.ScopeTraversalExpr); ok && (named.Traversal.RootName() == "flow" || len(named.Traversal) == 1) {
		return named.Traversal
	}
	if hcljson.IsJSONExpression(e) { // "flow.NAME", as for plugins
		if t, diags := hcl.AbsTraversalForExpr(e); !diags.HasErrors() && t.RootName() == "flow" && len(t) == 2 {
			return t
		}
	}
	return nil
}

func (s *exprContext) flowOf(name string, at hcl.Range) *flowDecoder {
	d := s.module.decoders[name]
	if d == nil && !s.module.broken {
		hint := s.diags.Guess(name, "flow.", maps.Keys(s.module.decoders))
		if hint == "" {
			hint = " Flows are found in their own directory only."
		}
		s.diags.Add(RuleUnknownName, at, "Unknown flow", "There is no flow %q in this directory.%s", name, hint)
	}
	return d
}

// callee is what the task calls, in a word.
func (t *Task) callee() string {
	if t.called != (hcl.Range{}) {
		return "flow"
	}
	return "function"
}

// Admit decides about the run that an attempt of a task with a flow is. Its
// params are the fields of the task's input; nominally it is due when the run of
// the task was. An error is a *run.RequestError.
func (t *Task) Admit(parent *run.Run, input json.RawMessage) (*Admission, error) {
	a, _, err := t.TryAdmit(0, parent, input)
	return a, err
}

// TryAdmit is Admit with at most so many units, as [Flow.TryAdmit].
func (t *Task) TryAdmit(units int, parent *run.Run, input json.RawMessage) (a *Admission, enough bool, err error) {
	var params map[string]json.RawMessage
	if err := json.Unmarshal(input, &params); err != nil {
		return nil, true, run.Requestf(run.RequestParams, "the input must be an object with the params of flow %s", t.Flow)
	}
	return t.Child.TryAdmit(units, run.Request{
		Flow: t.Flow, Params: params,
		Trigger: run.Trigger{Kind: run.TriggerTask, Time: parent.Trigger.Time, Headers: parent.Trigger.Onward()},
	})
}

// checkFlows checks what needs all flows of the module. A recorded definition was
// checked when it was accepted: a run in progress must not fail on what was found
// out since.
func (m *module) checkFlows(flows []*Flow) {
	if m.restored != nil {
		return
	}
	for _, f := range flows {
		m.decoderOf(f).resolveCalls()
	}
	for _, f := range flows {
		m.decoderOf(f).checkTypes()
	}
	m.checkCalls()
	m.checkFollowers()
}

func (m *module) decoderOf(f *Flow) *flowDecoder {
	return m.decoders[strings.TrimPrefix(f.Name, m.src.prefix)]
}

// resolveCalls finds what the flows take and give that the tasks of this one run.
func (d *flowDecoder) resolveCalls() {
	for _, t := range d.flow.AllTasks() {
		if c := d.typed[t.Name]; c != nil && t.Child != nil {
			c.contract = d.context.module.decoderOf(t.Child).asSubflow()
		}
	}
}

// asSubflow is what the flow takes and gives as a sub-flow. The output of a flow
// that rests on its own is open.
func (d *flowDecoder) asSubflow() *contract {
	if d.contract != nil {
		return d.contract
	}
	d.contract = &contract{input: paramsShape(d.flow.Params), config: jsonschema.Any(), output: jsonschema.OfKind(jsonschema.Object)}
	d.resolveCalls()
	if len(d.flow.Outputs) == 0 {
		return d.contract // the results of tasks by name, when they are known
	}
	output := &jsonschema.Shape{Kinds: jsonschema.Object, Fields: map[string]*jsonschema.Shape{}, Closed: true}
	for _, o := range d.flow.Outputs {
		t := d.context.typing()
		t.lenient = true // its own flow reports what is wrong with it
		one := jsonschema.Any()
		if o.value.expr != nil {
			one = t.infer(o.value.expr.Expression)
		}
		output.Fields[o.Name] = one
		output.Required = append(output.Required, o.Name)
	}
	d.contract.output = output
	return d.contract
}

func paramsShape(params []*Param) *jsonschema.Shape {
	s := &jsonschema.Shape{Kinds: jsonschema.Object | jsonschema.Null, Fields: map[string]*jsonschema.Shape{}, Closed: true}
	for _, p := range params {
		s.Fields[p.Name] = jsonschema.ConvertibleTo(p.Type)
		if p.Required {
			s.Required = append(s.Required, p.Name)
		}
	}
	return s
}

// checkParams tries the params of a sub-flow as far as they are known.
func (c *typed) checkParams(t *typing) {
	if c.task.Child == nil {
		return
	}
	params := t.module.decoderOf(c.task.Child).params
	if x := c.task.input.expr; x.constant != cty.NilVal && x.constant.IsNull() && c.contract.input.Required != nil {
		t.diags.Add(RuleMissing, x.Range(), "Missing input", "The flow of this task needs an input with %s.", diag.Join(c.contract.input.Required, "and"))
	}
	t.fill(params, c.task.input.expr.Expression)
}

// shapeFits reports whether a value fits a param as far as its shape shows: what does
// not has been reported.
func (t *typing) shapeFits(p *Param, v cty.Value) bool {
	return jsonschema.FindMismatch(jsonschema.ConvertibleTo(p.Type), jsonschema.FromValue(v)) == nil
}

// writtenOut is the value of an expression in which nothing is left to a run, and
// nothing is to be kept out of messages.
func (t *typing) writtenOut(e hcl.Expression) (cty.Value, bool) {
	for _, name := range e.Variables() {
		if root := name.RootName(); root != "var" && root != "flow" {
			return cty.NilVal, false
		}
	}
	v, diags := e.Value(t.runBase())
	return v, !diags.HasErrors() && v.IsWhollyKnown() && !v.ContainsMarked()
}

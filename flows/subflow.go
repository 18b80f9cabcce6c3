package flows

import (
	"encoding/json"
	"maps"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	hcljson "github.com/hashicorp/hcl/v2/json"

	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/flows/internal/syntax"
	"github.com/flowhost/flowhost/run"
)

// functionOnly are the words of a task that concern the call of a
// function, and nothing about a flow: its tasks have their own.
var functionOnly = []string{"function", "config", "priority", "limit", "limits", "grant"}

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
	var params map[string]json.RawMessage
	if err := json.Unmarshal(input, &params); err != nil {
		return nil, run.Requestf(run.RequestParams, "the input must be an object with the params of flow %s", t.Flow)
	}
	return t.Child.Admit(run.Request{
		Flow: t.Flow, Params: params,
		Trigger: run.Trigger{Kind: run.TriggerTask, Time: parent.Trigger.Time, Headers: parent.Trigger.Onward()},
	})
}

package flows

import (
	"encoding/json"
	"errors"
	"maps"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// inputs is a value that leaves as JSON: a task's input, its config over its
// plugin's, or an output.
type inputs struct {
	expr     *expression
	below    map[string]cty.Value // the plugin's config
	static   json.RawMessage      // set when the value is known at load
	whole    *ref                 // set when it is recorded JSON and nothing else
	template *template            // set when it can be put together of JSON
}

func (d *flowDecoder) decodeTasks() {
	inherited := d.context.module.defaults
	if b := d.content.One("defaults"); b != nil {
		inherited = d.context.defaultsOf(b, inherited)
	}
	for _, p := range d.pending {
		s := *d.context
		s.part = p.task.part
		if p.task.isWait() {
			s.decodeWait(p.task, p.block)
			continue
		}
		s.decodeTask(p.task, p.block, inherited)
	}
}

func (s *exprContext) decodeTask(t *Task, b *hcl.Block, inherited policy) {
	s, c := s.decodeAt(b, taskSchema)
	t.Description, _ = s.text(c.Arg("description"))
	if word, ok := s.word(c.Arg("run_on")); ok {
		t.RunOn = RunOn(word)
	}
	s.fanOut(t, c)
	if s.subflow(t, b, c); c.Arg("flow") != nil {
		inherited = policy{} // which is about calls of functions
	}
	attempts := s.policy(c, inherited)
	if c.Arg("flow") == nil { // whose timeout is of a whole run
		s.attemptTimeout(c.Arg("timeout"), attempts.timeout)
	}
	t.Timeout, t.Retry, t.again = attempts.timeout, attempts.retry, attempts.again
	t.Heartbeat = s.heartbeat(c.Arg("heartbeat"), t.Timeout)
	t.Priority = s.priority(c.Arg("priority"), s.decoder.flow.Priority)
	if limits := c.One("limits"); limits != nil {
		t.Limits = s.limits(limits)
	}
	own, p := s.grant(c.One("grant")), s.plugin(c.Arg("plugin"))
	t.Grants = s.granted(own, p)
	s.checkWants(own, p, c.Arg("plugin"))
	t.Function = s.chooseFunction(p, c.Arg("function"), t.Range)
	t.when = s.plain().condition(c.Arg("when"))
	t.input = s.inputs(c.Arg("input"), cty.NilVal)
	config := cty.NilVal
	if p != nil {
		t.Plugin, t.Limits, config = p.Plugin, over(t.Limits, p.limits), p.config
	}
	t.config = s.inputs(c.Arg("config"), config)
	t.after = s.after(c.Arg("after"))
	t.LimitedBy = s.limitedBy(c.Arg("limit"))
	s.expect(t, p, c)
	t.Function = p.export(t.Function)
}

// condition is a late argument that must be true or false.
func (s *exprContext) condition(a *hcl.Attribute) *expression {
	x := s.late(a)
	if x == nil || x.constant == cty.NilVal {
		return x
	}
	if _, err := convert.Convert(x.constant, cty.Bool); err != nil || x.constant.IsNull() {
		s.diags.Add(RuleType, a.Expr.Range(), "Wrong type", "%q must be true or false.", a.Name)
	}
	return x
}

// fitting is a late argument whose value, where it is known at load, must be of
// the argument's kind.
func (s *exprContext) fitting(a *hcl.Attribute, fits func(cty.Type) bool) *expression {
	x := s.late(a)
	if x == nil || x.constant == cty.NilVal || x.constant.IsNull() || fits(x.constant.Type()) {
		return x
	}
	s.diags.Add(RuleType, a.Expr.Range(), "Wrong type", "%q must be %s%s.", a.Name, s.schema.Argument(a.Name).Kind.Phrase(), misfit(x.constant, nil))
	return x
}

// inputs binds what a task is given, and encodes it now when nothing of it
// depends on the run.
func (s *exprContext) inputs(a *hcl.Attribute, below cty.Value) *inputs {
	in := &inputs{expr: s.late(a)}
	if below != cty.NilVal {
		in.below = below.AsValueMap()
	}
	if in.expr == nil && a != nil {
		return in // wrong, and reported
	}
	if in.expr != nil && in.expr.constant == cty.NilVal {
		s.prepare(in)
		return in
	}
	v := cty.NilVal
	if in.expr != nil {
		v = in.expr.constant
	}
	encoded, err := in.encode(budget.New(), v)
	if err != nil {
		s.diags.Add(RuleType, a.Expr.Range(), "Not a value for "+s.receiver(), "%q cannot be given to %s: %s.", a.Name, s.receiver(), err)
	}
	in.static = encoded
	return in
}

// receiver is who gets the inputs of a block.
func (s *exprContext) receiver() string {
	if s.schema == outputSchema {
		return "others"
	}
	return "a task"
}

// encode gives a value its JSON form, laid over the plugin's config. It is nil
// for no value at all.
func (in *inputs) encode(m *budget.Budget, v cty.Value) (json.RawMessage, error) {
	if in.below == nil {
		if v == cty.NilVal {
			return nil, nil
		}
		return ctyjson.Encode(v, m)
	}
	all := maps.Clone(in.below)
	if v != cty.NilVal {
		v, _ = v.UnmarkDeep()
	}
	if v != cty.NilVal && !v.IsNull() {
		if !v.CanIterateElements() || !hasFields(v.Type()) {
			return nil, errNotObject
		}
		maps.Copy(all, v.AsValueMap())
	}
	return encodeJSON(cty.ObjectVal(all))
}

var errNotObject = errors.New("an object is required")

// after reads a list of references to tasks.
func (s *exprContext) after(a *hcl.Attribute) []dependency {
	if a == nil {
		return nil
	}
	items, diags := hcl.ExprList(a.Expr)
	if diags.HasErrors() {
		s.diags.Add(RuleReference, a.Expr.Range(), "A list of tasks is required", "Write after = [task.NAME, …], with group.NAME for groups.")
		return nil
	}
	var out []dependency
	for _, item := range items {
		t, diags := hcl.AbsTraversalForExpr(item)
		name, at, ok := syntax.Step(t, 1)
		var word *root
		if !diags.HasErrors() {
			word = rootWord(t.RootName())
		}
		if len(t) != 2 || word == nil || word.bit&settledRoots == 0 || !ok {
			hint := ""
			if len(t) > 2 && ok && word != nil && word.bit&settledRoots != 0 {
				hint = " Write " + word.name + "." + name + "."
			}
			s.diags.Add(RuleReference, item.Range(), "A reference to a task is required", "Each item of \"after\" has the form task.NAME, wait.NAME or group.NAME.%s", hint)
			continue
		}
		b := &binding{exprContext: s, x: new(expression)}
		switch part, declared := s.decoder.partOf(word, name); {
		case !declared:
			b.unknownName(word, name, at)
		case part != s.part:
			s.diags.Add(RuleMisplaced, at, "Not in the same part of the flow", "%s.%s is in another part of the flow, %s, and parts do not run together: there is nothing to wait for. Leave it out.", word.name, name, part)
		default:
			out = append(out, dependency{task: settledName(word, name), at: item.Range()})
		}
	}
	return out
}

// heartbeat reads for how long an attempt may be silent.
func (s *exprContext) heartbeat(a *hcl.Attribute, timeout time.Duration) time.Duration {
	d, ok := s.duration(a)
	switch {
	case !ok:
		return 0
	case d < time.Second:
		s.diags.Add(RuleValue, a.Expr.Range(), "Heartbeat too short", "\"heartbeat\" is 1s or more: a busy host may need as long to see one.")
	case timeout > 0 && d >= timeout:
		s.diags.Add(RuleValue, a.Expr.Range(), "Heartbeat without effect", "The attempt ends after its timeout of %s, before it can be silent for %s: make \"heartbeat\" shorter, or leave it out.", timeout, d)
	}
	return d
}

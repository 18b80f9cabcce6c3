package flows

import (
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
)

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

package flows

import (
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/run"
)

// triggerParams checks that the runs that a trigger starts by itself get their
// params. A trigger that is switched off is left to requests, which bring their own.
func (t *typing) triggerParams(trigger *Trigger) {
	params := *paramsShape(t.decoder.flow.Params)
	params.Closed = false // paramNames looks at names
	params.Required = t.paramNames(trigger, params.Required)
	if !trigger.Enabled {
		params.Required = nil
	}
	switch x := trigger.params; {
	case x != nil && (x.constant == cty.NilVal || hasFields(x.constant.Type())):
		t.check(x.Expression, &params, "params")
		t.fill(t.decoder.params, x.Expression)
	case t.decoder.stated[trigger] != nil || params.Required == nil:
	case trigger.Kind == run.TriggerSchedule, trigger.After != "":
		t.unfilled(trigger, params.Required)
	case trigger.payloads != nil:
		t.compare(&params, t.decoder.payloadShape(trigger), spot{path: "params", at: trigger.Range, what: "trigger.payload"})
	}
}

// unfilled reports params of which nothing gives a value. Fields of a payload are
// params of their names.
func (t *typing) unfilled(trigger *Trigger, required []string) {
	if trigger.Kind == run.TriggerFlow {
		payload := t.decoder.endShape(trigger)
		required = slices.DeleteFunc(slices.Clone(required), func(name string) bool { return payload.Fields[name] != nil })
	}
	if len(required) > 0 {
		t.diags.Add(RuleMissing, trigger.Range, "Missing params", "No run of this trigger could start: the flow needs %s. Write params = { %s = … }, or give the param a default.",
			diag.Join(required, "and"), strings.Join(required, " = …, "))
	}
}

// paramNames reports names that are no params in an object that is written out, and
// gives those of the required ones that none of these was meant to be.
func (t *typing) paramNames(trigger *Trigger, required []string) []string {
	stated := t.decoder.stated[trigger]
	if stated == nil {
		return required
	}
	pairs, diags := hcl.ExprMap(stated.Expr)
	if diags.HasErrors() {
		return required
	}
	known := keys(t.decoder.params)
	for _, pair := range pairs {
		name, ok := t.name(pair.Key)
		if !ok || t.decoder.params[name] != nil {
			continue
		}
		t.diags.Add(RuleUnknownName, pair.Key.Range(), "Unknown param", "The flow has no param %q.%s", name, t.diags.Guess(name, "", slices.Values(known)))
		meant := diag.Nearest(name, known)
		required = slices.DeleteFunc(slices.Clone(required), func(r string) bool { return r == meant })
	}
	return required
}

// fill tries the params that are known in full, so that their types and validations
// can be asked.
func (t *typing) fill(params map[string]*Param, e hcl.Expression) {
	if pairs, diags := hcl.ExprMap(budget.Bare(e)); !diags.HasErrors() {
		for _, pair := range pairs {
			name, _ := t.name(pair.Key)
			if v, ok := t.writtenOut(pair.Value); ok {
				t.fillOne(params[name], v, pair.Value.Range())
			}
		}
	} else if all, ok := t.writtenOut(e); ok && !all.IsNull() && hasFields(all.Type()) {
		for _, name := range keys(params) {
			if v, given := all.AsValueMap()[name]; given {
				t.fillOne(params[name], v, e.Range())
			}
		}
	}
}

func (t *typing) fillOne(p *Param, v cty.Value, at hcl.Range) {
	if p == nil || !t.shapeFits(p, v) {
		return
	}
	if _, err := p.fill(t.module.meter, v, true); err != nil {
		t.diags.Add(RuleType, at, "Not a value of the param", "%s.", err)
	}
}

package flows

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/run"
)

// assertion is what must hold at the end of a test.
type assertion struct {
	at        hcl.Range
	condition *tried
	message   *tried // nil for none
}

// Check holds the assertions of a test against its runs, in any order. Each one
// that does not hold is a diagnostic of rule RuleAssertion, with the values that
// its condition refers to; each one that cannot be told is one of another rule.
func (t *Test) Check(records []*run.Record) hcl.Diagnostics {
	values, err := t.seen(records)
	if err != nil {
		return asDiagnostics(err, t.Range)
	}
	r := new(report)
	for _, a := range t.asserts {
		if a.condition.single && len(records) == 0 {
			r.add(RuleAssertion, a.condition.Range(), "There is no run", "The trigger's filter has accepted none, so there is nothing to look at. Assert length(runs) == 0 if that is right.")
			continue
		}
		t.assert(r, a, values)
	}
	return r.diags
}

func (t *Test) assert(r *report, a *assertion, values map[string]cty.Value) {
	v, ctx, diags := t.evaluate(a.condition, values)
	if r.take(RuleExpression, diags) {
		return
	}
	v, _ = v.Unmark()
	v, err := convert.Convert(v, cty.Bool)
	if err != nil || v.IsNull() || !v.IsKnown() {
		r.add(RuleType, a.condition.Range(), "Wrong type", "\"condition\" must give true or false.")
		return
	}
	if v.True() {
		return
	}
	d := r.add(RuleAssertion, a.condition.Range(), "Assertion failed", "%s", t.complaint(r, a, values, ctx))
	d.Expression, d.EvalContext = a.condition.Expression, ctx
}

// complaint is the author's message, and what was compared.
func (t *Test) complaint(r *report, a *assertion, values map[string]cty.Value, ctx *hcl.EvalContext) string {
	text := "The condition is false."
	if a.message != nil {
		v, _, diags := t.evaluate(a.message, values)
		if !r.take(RuleExpression, diags) && !v.IsMarked() && v.IsWhollyKnown() && !v.IsNull() {
			if v, err := convert.Convert(v, cty.String); err == nil {
				text = v.AsString()
			}
		}
	}
	return text + sides(a.condition.Expression, ctx)
}

// sides writes out both sides of the comparison because of which a condition is
// false, where references alone do not tell.
func sides(e hcl.Expression, ctx *hcl.EvalContext) string {
	op, ok := bare(e).(*hclsyntax.BinaryOpExpr)
	for ok && op.Op == hclsyntax.OpLogicalAnd {
		side := op.LHS
		if v, diags := side.Value(ctx); diags.HasErrors() || v.IsMarked() || v.RawEquals(cty.True) {
			side = op.RHS
		}
		op, ok = bare(side).(*hclsyntax.BinaryOpExpr)
	}
	if !ok || op.Op != hclsyntax.OpEqual {
		return ""
	}
	got, wrong := op.LHS.Value(ctx)
	want, diags := op.RHS.Value(ctx)
	plain := isPlain(op.LHS, got) && isPlain(op.RHS, want)
	if plain || wrong.HasErrors() || diags.HasErrors() || got.ContainsMarked() || want.ContainsMarked() {
		return ""
	}
	left, err := encodeJSON(got)
	right, also := encodeJSON(want)
	if err != nil || also != nil {
		return ""
	}
	return fmt.Sprintf("\n  left:  %s\n  right: %s", shortened(left), shortened(right))
}

// isPlain reports whether a side is shown in full beside the lines of its file.
func isPlain(e hclsyntax.Expression, v cty.Value) bool {
	switch bare(e).(type) {
	case *hclsyntax.ScopeTraversalExpr, *hclsyntax.LiteralValueExpr, *hclsyntax.TemplateExpr:
		return v.Type().IsPrimitiveType()
	}
	return false
}

func shortened(text []byte) string {
	const long = 500
	if runes := []rune(string(text)); len(runes) > long {
		return string(runes[:long]) + "…"
	}
	return string(text)
}

// seen is what assertions see of runs, the first accepted first.
func (t *Test) seen(records []*run.Record) (map[string]cty.Value, error) {
	records = slices.Clone(records)
	slices.SortStableFunc(records, func(a, b *run.Record) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), a.Trigger.Time.Compare(b.Trigger.Time))
	})
	runs := make([]cty.Value, len(records))
	values := map[string]cty.Value{}
	for i, r := range records {
		attrs, tasks, err := recordValues(r)
		if err != nil {
			return nil, err
		}
		if i == 0 {
			values["run"], values["task"] = cty.ObjectVal(attrs), tasks
		}
		attrs["task"] = tasks
		runs[i] = cty.ObjectVal(attrs)
	}
	values["runs"] = cty.TupleVal(runs)
	return values, nil
}

func recordValues(r *run.Record) (attrs map[string]cty.Value, tasks cty.Value, err error) {
	attrs = map[string]cty.Value{
		"id": cty.StringVal(string(r.Run)), "flow": cty.StringVal(r.Flow), "state": cty.StringVal(string(r.State)),
		"created_at": timeValue(r.CreatedAt), "scheduled_at": timeValue(r.Trigger.Time),
		"started_at": timeOrNull(r.StartedAt), "finished_at": timeOrNull(r.FinishedAt), "duration": between(r.StartedAt, r.FinishedAt),
	}
	params := map[string]cty.Value{}
	for name, raw := range r.Params {
		if params[name], err = decodeOrNull(raw); err != nil {
			return nil, cty.NilVal, err
		}
	}
	attrs["params"] = cty.ObjectVal(params)
	if attrs["output"], err = decodeOrNull(r.Output); err != nil {
		return nil, cty.NilVal, err
	}
	if attrs["error"], err = endedWith(r.Error); err != nil {
		return nil, cty.NilVal, err
	}
	all := map[string]cty.Value{}
	for i := range r.Tasks {
		if r.Tasks[i].Key != nil {
			continue // an item: the fan-out is a record of its own
		}
		if all[r.Tasks[i].Task], err = taskRecordValue(&r.Tasks[i]); err != nil {
			return nil, cty.NilVal, err
		}
	}
	return attrs, cty.ObjectVal(all), nil
}

func taskRecordValue(t *run.TaskRecord) (cty.Value, error) {
	attrs := map[string]cty.Value{
		"state": cty.StringVal(string(t.State)), "attempts": cty.NumberIntVal(int64(t.Attempts)),
		"started_at": timeOrNull(t.StartedAt), "finished_at": timeOrNull(t.FinishedAt), "duration": between(t.StartedAt, t.FinishedAt),
	}
	for name, raw := range map[string]json.RawMessage{"input": t.Input, "output": t.Output} {
		v, err := decodeOrNull(raw)
		if err != nil {
			return cty.NilVal, fmt.Errorf("the %s of task %s is %w", name, t.Task, err)
		}
		attrs[name] = v
	}
	var err error
	attrs["error"], err = endedWith(t.Error)
	return cty.ObjectVal(attrs), err
}

// endedWith is a failure with the task that it came from, null for none.
func endedWith(f *run.Failure) (cty.Value, error) {
	if f == nil {
		return cty.NullVal(cty.DynamicPseudoType), nil
	}
	v, err := failureObject(f)
	if err != nil {
		return cty.NilVal, fmt.Errorf("the details of a failure are %w", err)
	}
	attrs := v.AsValueMap()
	attrs["task"] = textOrNull(f.Task)
	return cty.ObjectVal(attrs), nil
}

func timeOrNull(t *time.Time) cty.Value {
	if t == nil {
		return cty.NullVal(cty.String)
	}
	return timeValue(*t)
}

// between is seconds, as everywhere in the language.
func between(from, to *time.Time) cty.Value {
	if from == nil || to == nil {
		return cty.NullVal(cty.Number)
	}
	return cty.NumberFloatVal(to.Sub(*from).Seconds())
}

package flows

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/run"
)

// Conditional reports whether the task has a condition.
func (t *Task) Conditional() bool { return t.when != nil }

// When reports whether the task's condition lets it run. A failure has outcome
// rejected, code expression and the place of the expression.
func (t *Task) When(s *Scope) (bool, *run.Failure) {
	if t.when == nil {
		return true, nil
	}
	return s.truth(t.when, s)
}

// DecidesRetries reports whether Again evaluates an expression for a failure.
func (t *Task) DecidesRetries(f *run.Failure) bool {
	return t.again != nil && f.Outcome != run.OutcomeLost
}

// Again reports whether another attempt may follow one that ended with f, when
// spent attempts were made and lost of these were lost. While the policy has
// attempts left, retry { when } decides, for all failures but lost attempts;
// without it, the failure's own Retryable does. A failure to decide is like
// those of [Task.When], and there is no other attempt.
func (t *Task) Again(s *Scope, f *run.Failure, spent, lost int) (bool, *run.Failure) {
	if !t.DecidesRetries(f) {
		return t.Retry.Allows(f, spent, lost), nil
	}
	if !t.Retry.Left(f, spent, lost) {
		return false, nil
	}
	again, failure := s.truth(t.again, attempted{s, f, spent})
	if failure != nil {
		failure.Message += fmt.Sprintf(" (attempt %d ended with %s)", spent, f)
	}
	return again, failure
}

// Prepared reports whether input and config are known without evaluating anything.
func (t *Task) Prepared() bool { return t.input.prepared() && t.config.prepared() }

func (in *inputs) prepared() bool { return in.static != nil || in.expr == nil }

// Input evaluates the task's input to compact JSON; null when it has none. It
// may be bytes that the run holds: do not change it.
func (t *Task) Input(s *Scope) (json.RawMessage, *run.Failure) {
	input, failure := t.input.evaluate(s)
	if input == nil && failure == nil {
		return json.RawMessage("null"), nil
	}
	return input, failure
}

// Config evaluates the task's config, laid over its plugin's, to compact JSON;
// nil when there is none. Do not change it.
func (t *Task) Config(s *Scope) (json.RawMessage, *run.Failure) { return t.config.evaluate(s) }

func (in *inputs) evaluate(s *Scope) (json.RawMessage, *run.Failure) {
	defer s.end(s.begin())
	switch {
	case in.static != nil || in.expr == nil:
		return in.static, nil
	case in.whole != nil:
		return s.recorded(*in.whole), nil
	case in.template != nil:
		before := *s.budget
		if out, ok := in.template.render(s); ok {
			return out, nil
		}
		if s.note(); s.short {
			return nil, reject(in.expr.Range(), in.expr.argument+": "+budget.ErrCost.Error())
		}
		*s.budget = before // the other way alone decides the outcome
	}
	return in.compute(s)
}

// compute evaluates the expression as HCL does. It is the way that always works,
// and the one that explains what is wrong.
func (in *inputs) compute(s *Scope) (json.RawMessage, *run.Failure) {
	defer s.end(s.begin())
	v, failure := s.evaluate(in.expr, s)
	if failure != nil {
		return nil, failure
	}
	encoded, err := in.encode(s.budget, v)
	if err != nil {
		return nil, reject(in.expr.Range(), in.expr.argument+": "+err.Error())
	}
	return encoded, nil
}

// Output evaluates the flow's outputs to one JSON object, in declared order.
// Without any, it holds the outputs of the tasks and groups after which no other
// comes; waits do not count.
func (f *Flow) Output(s *Scope) (json.RawMessage, *run.Failure) {
	if len(f.Outputs) == 0 {
		return f.sinkOutputs(s), nil
	}
	defer s.end(s.begin())
	out := []byte{'{'}
	for _, o := range f.Outputs {
		value, failure := o.value.evaluate(s)
		if failure != nil {
			return nil, failure
		}
		out = appendField(out, o.Name, value)
	}
	return append(out, '}'), nil
}

func (f *Flow) sinkOutputs(s *Scope) json.RawMessage {
	size := len("{}")
	for _, w := range f.sinks {
		size += len(w.name) + len(s.recorded(w)) + len(`"":,`)
	}
	out := append(make([]byte, 0, size), '{')
	for _, w := range f.sinks {
		out = appendField(out, w.name, s.recorded(w))
	}
	return append(out, '}')
}

// appendField adds to an object that was begun.
func appendField(out []byte, name string, value json.RawMessage) []byte {
	if out[len(out)-1] != '{' {
		out = append(out, ',')
	}
	return append(append(ctyjson.AppendString(out, name), ':'), value...)
}

// evaluate gives an expression's value in the run.
func (s *Scope) evaluate(x *expression, v values) (cty.Value, *run.Failure) {
	if x.constant != cty.NilVal {
		return x.constant, nil
	}
	defer s.end(s.begin())
	value, diags := x.evaluate(s.flow.base, v, s.budget)
	if diags.HasErrors() {
		d := diags.Errs()[0].(*hcl.Diagnostic)
		at := x.Range()
		if d.Subject != nil {
			at = *d.Subject
		}
		return cty.NilVal, reject(at, x.argument+": "+culprit(d)+message(d))
	}
	return value, nil
}

// culprit is the reference that has no value, up to the part that cannot be had: the
// place is a line, and that may have several. Nothing when it is no reference.
func culprit(d *hcl.Diagnostic) string {
	if d.Expression == nil {
		return ""
	}
	t, diags := hcl.AbsTraversalForExpr(d.Expression)
	if diags.HasErrors() {
		return ""
	}
	for i, step := range t {
		if d.Subject != nil && step.SourceRange() == *d.Subject {
			t = t[:i+1]
			break
		}
	}
	return diag.Traversal(t) + ": "
}

// message is a diagnostic in one line.
func message(d *hcl.Diagnostic) string {
	return strings.TrimSuffix(d.Summary, ".") + ": " + strings.ReplaceAll(d.Detail, "\n", " ")
}

// truth evaluates a condition.
func (s *Scope) truth(x *expression, among values) (bool, *run.Failure) {
	v, failure := s.evaluate(x, among)
	if failure != nil {
		return false, failure
	}
	v, _ = v.Unmark()
	v, err := convert.Convert(v, cty.Bool)
	if err != nil || v.IsNull() || !v.IsKnown() {
		return false, reject(x.Range(), x.argument+" must be true or false")
	}
	return v.True(), nil
}

func reject(at hcl.Range, message string) *run.Failure {
	return &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeExpression, Message: message, At: diag.Place(at)}
}

// asDiagnostics gives an error of a value the place of the expression that
// needed it. Errors of locals have their own.
func asDiagnostics(err error, at hcl.Range) hcl.Diagnostics {
	if diags := (hcl.Diagnostics)(nil); errors.As(err, &diags) {
		return diags
	}
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Value cannot be used", Detail: err.Error(), Subject: &at}}
}

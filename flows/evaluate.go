package flows

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/run"
)

// When tells whether the task's condition lets it run. A failure has outcome
// rejected, code expression and the place of the expression.
func (t *Task) When(s *Scope) (bool, *run.Failure) {
	if t.when == nil {
		return true, nil
	}
	return s.truth(t.when)
}

// Input evaluates the task's input to compact JSON; null when it has none.
func (t *Task) Input(s *Scope) (json.RawMessage, *run.Failure) {
	input, failure := t.input.evaluate(s)
	if input == nil && failure == nil {
		return json.RawMessage("null"), nil
	}
	return input, failure
}

// Config evaluates the task's config, laid over its plugin's, to compact JSON;
// nil when there is none.
func (t *Task) Config(s *Scope) (json.RawMessage, *run.Failure) { return t.config.evaluate(s) }

func (in *inputs) evaluate(s *Scope) (json.RawMessage, *run.Failure) {
	if in.static != nil || in.expr == nil {
		return in.static, nil
	}
	if in.below == nil && in.expr.whole != "" {
		return s.recorded(in.expr.whole), nil
	}
	v, failure := s.evaluate(in.expr)
	if failure != nil {
		return nil, failure
	}
	encoded, err := in.encode(v)
	if err != nil {
		return nil, reject(in.expr.Range(), in.expr.argument+": "+err.Error())
	}
	return encoded, nil
}

// recorded gives bytes that are passed on without being looked at.
func (s *Scope) recorded(whole string) json.RawMessage {
	var bytes json.RawMessage
	if whole == wholePayload {
		bytes = s.run.Trigger.Payload
	} else if t := s.settled[whole]; t != nil {
		bytes = t.Output
	}
	if len(bytes) == 0 {
		return json.RawMessage("null")
	}
	return bytes
}

// Output evaluates the flow's outputs to one JSON object, in declared order.
// Without any, it holds the outputs of the tasks on which no other depends.
func (f *Flow) Output(s *Scope) (json.RawMessage, *run.Failure) {
	out := []byte{'{'}
	add := func(name string, value json.RawMessage) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(appendText(out, name), ':'), value...)
	}
	for _, o := range f.Outputs {
		value, failure := (&inputs{expr: o.value}).evaluate(s)
		if failure != nil {
			return nil, failure
		}
		add(o.Name, value)
	}
	if len(f.Outputs) == 0 {
		for i, t := range f.Tasks {
			if len(f.Graph.Downstream(i)) == 0 {
				add(t.Name, s.recorded(t.Name))
			}
		}
	}
	return append(out, '}'), nil
}

// evaluate gives an expression's value in the run.
func (s *Scope) evaluate(x *expression) (cty.Value, *run.Failure) {
	if x.constant != cty.NilVal {
		return x.constant, nil
	}
	v, diags := x.evaluate(s.flow.base, s)
	if diags.HasErrors() {
		d := diags.Errs()[0].(*hcl.Diagnostic)
		at := x.Range()
		if d.Subject != nil {
			at = *d.Subject
		}
		return cty.NilVal, reject(at, x.argument+": "+message(d))
	}
	return v, nil
}

// message is a diagnostic in one line.
func message(d *hcl.Diagnostic) string {
	return strings.TrimSuffix(d.Summary, ".") + ": " + strings.ReplaceAll(d.Detail, "\n", " ")
}

// truth evaluates a condition.
func (s *Scope) truth(x *expression) (bool, *run.Failure) {
	v, failure := s.evaluate(x)
	if failure != nil {
		return false, failure
	}
	v, _ = v.Unmark()
	v, err := convert.Convert(v, cty.Bool)
	if err != nil || v.IsNull() || !v.IsKnown() {
		return false, reject(x.Range(), x.argument+" must give true or false")
	}
	return v.True(), nil
}

func reject(at hcl.Range, message string) *run.Failure {
	return &run.Failure{Outcome: run.OutcomeRejected, Code: run.CodeExpression, Message: message, At: place(at)}
}

// asDiagnostics gives an error of a value the place of the expression that
// needed it. Errors of locals have their own.
func asDiagnostics(err error, at hcl.Range) hcl.Diagnostics {
	if diags := (hcl.Diagnostics)(nil); errors.As(err, &diags) {
		return diags
	}
	return hcl.Diagnostics{{Severity: hcl.DiagError, Summary: "Value cannot be used", Detail: err.Error(), Subject: &at}}
}

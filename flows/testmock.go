package flows

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/run"
)

// mock is what the calls of a task do in a test.
type mock struct {
	at      hcl.Range
	output  *testExpr
	takes   *testExpr
	fail    *testExpr
	fails   bool
	outcome run.Outcome
	times   int // attempts that fail; 0 for all, where fails is set
	hangs   bool
}

// Mocked is what one call does.
type Mocked struct {
	Takes  time.Duration
	Hangs  bool // ends only when it is canceled
	Result run.Result

	Timed   bool // the mock states how long the call takes
	Decided bool // it states how the call ends, beyond its output
}

// Called is a call as a test sees it.
type Called struct {
	*run.Call
	Path string    // its task; in a sub-flow after those that run it, "release/build"
	Item *run.Item // of a fan-out; nil for none
}

// StandsIn reports whether a mock takes the place of the sub-flow that a task runs.
func (t *Test) StandsIn(path string) bool { return t.mocks[path] != nil }

// Mock is what a call does, nil when the test has no mock for it. Diagnostics explain
// why a mock cannot be evaluated.
func (t *Test) Mock(call Called) (*Mocked, hcl.Diagnostics) {
	m := t.mockOf(call.Path)
	if m == nil {
		return nil, nil
	}
	values, err := callValues(call)
	if err != nil {
		return nil, asDiagnostics(err, m.at)
	}
	answer := &Mocked{Hangs: m.hangs, Timed: m.takes != nil || m.hangs, Decided: m.fails || m.hangs}
	if diags := t.length(m, values, answer); diags.HasErrors() {
		return nil, diags
	}
	if m.fails && (m.times == 0 || call.Attempt <= m.times) {
		failed, diags := t.failing(m, values, answer)
		if failed || diags.HasErrors() {
			return answer, diags
		}
	}
	return answer, t.succeeding(m, values, answer)
}

// mockOf is the mock of a task, or of its plugin.
func (t *Test) mockOf(path string) *mock {
	if m := t.mocks[path]; m != nil {
		return m
	}
	if spec := t.task(path); spec != nil {
		return t.plugins[spec.Plugin.Name]
	}
	return nil
}

// callValues are what a mock sees of a call.
func callValues(call Called) (map[string]cty.Value, error) {
	input, err := decodeOrNull(call.Input)
	if err != nil {
		return nil, fmt.Errorf("the input is %w", err)
	}
	config, err := decodeOrNull(call.Config)
	if err != nil {
		return nil, fmt.Errorf("the config is %w", err)
	}
	each, err := eachValue(call.Item)
	if err != nil {
		return nil, err
	}
	return map[string]cty.Value{"input": input, "config": config, "each": each, "attempt": cty.NumberIntVal(int64(call.Attempt))}, nil
}

// eachValue has nulls where there is no item.
func eachValue(item *run.Item) (cty.Value, error) {
	attrs := map[string]cty.Value{}
	for _, name := range rootWord("each").has {
		var err error
		if attrs[name], err = (&Scope{item: item}).itemValue(name); err != nil {
			return cty.NilVal, err
		}
	}
	return cty.ObjectVal(attrs), nil
}

func (t *Test) length(m *mock, values map[string]cty.Value, answer *Mocked) hcl.Diagnostics {
	if m.takes == nil {
		return nil
	}
	v, _, diags := t.evaluate(m.takes, values)
	if diags.HasErrors() {
		return diags
	}
	var err error
	if answer.Takes, err = takesOf(v); err != nil {
		return asDiagnostics(err, m.takes.Range())
	}
	return nil
}

func (t *Test) succeeding(m *mock, values map[string]cty.Value, answer *Mocked) hcl.Diagnostics {
	answer.Result = run.Result{Outcome: run.OutcomeSucceeded, Output: json.RawMessage("null")}
	if m.output == nil {
		return nil
	}
	v, _, diags := t.evaluate(m.output, values)
	if diags.HasErrors() {
		return diags
	}
	encoded, err := encodeJSON(v)
	if err != nil {
		return asDiagnostics(fmt.Errorf("the output cannot be given to others: %w", err), m.output.Range())
	}
	answer.Result.Output = encoded
	return nil
}

// failing reports whether a call fails: one whose failure is null does not.
func (t *Test) failing(m *mock, values map[string]cty.Value, answer *Mocked) (bool, hcl.Diagnostics) {
	v := cty.EmptyObjectVal
	if m.fail != nil {
		var diags hcl.Diagnostics
		if v, _, diags = t.evaluate(m.fail, values); diags.HasErrors() {
			return false, diags
		}
		if v.IsNull() {
			return false, nil
		}
	}
	failure, err := failureOf(v, m.outcome)
	if err != nil {
		return false, asDiagnostics(err, m.fail.Range())
	}
	answer.Result = run.Result{Outcome: m.outcome, Failure: failure}
	return true, nil
}

var errNoDuration = errors.New("a duration with a unit is required, such as \"30s\" or \"1h30m\", and nothing below zero")

// takesOf reads how long a call takes.
func takesOf(v cty.Value) (time.Duration, error) {
	v, _ = v.Unmark()
	if v.IsNull() {
		return 0, nil
	}
	v, err := convert.Convert(v, cty.String)
	if err != nil || !v.IsKnown() {
		return 0, errNoDuration
	}
	d, err := time.ParseDuration(v.AsString())
	if err != nil || d < 0 {
		return 0, errNoDuration
	}
	return d, nil
}

// mockedFailure are the attributes of fail, and their types.
var mockedFailure = map[string]cty.Type{
	"message": cty.String, "code": cty.String, "retryable": cty.Bool, "retry_after": cty.String, "details": cty.DynamicPseudoType,
}

// failureOf reads a failure. What it leaves out is as in other failures of that
// outcome.
func failureOf(v cty.Value, outcome run.Outcome) (*run.Failure, error) {
	f := &run.Failure{
		Outcome: outcome, Code: codeOf[outcome], Message: "the mock of the test " + string(outcome),
		Retryable: slices.Contains([]run.Outcome{run.OutcomeFailed, run.OutcomeTimedOut, run.OutcomeTrapped}, outcome),
	}
	v, _ = v.UnmarkDeep()
	if v.IsNull() || !hasFields(v.Type()) {
		return nil, errors.New("a failure is an object: { message = \"…\", retryable = false }")
	}
	attrs := v.AsValueMap()
	for _, name := range keys(attrs) {
		want, known := mockedFailure[name]
		if !known {
			return nil, fmt.Errorf("a failure has no attribute %q.%s", name, diag.DidYouMean(name, "", keys(mockedFailure)))
		}
		value, err := convert.Convert(attrs[name], want)
		if err != nil {
			return nil, fmt.Errorf("%q must be a %s", name, want.FriendlyName())
		}
		if value.IsNull() {
			continue
		}
		if err := fillFailure(f, name, value); err != nil {
			return nil, fmt.Errorf("%q: %w", name, err)
		}
	}
	return f, nil
}

func fillFailure(f *run.Failure, name string, v cty.Value) (err error) {
	switch name {
	case "message":
		f.Message = v.AsString()
	case "code":
		f.Code = v.AsString()
	case "retryable":
		f.Retryable = v.True()
	case "retry_after":
		f.RetryAfter, err = takesOf(v)
	case "details":
		f.Details, err = encodeJSON(v)
	}
	return err
}

// codeOf is the code of failures that flowhost itself makes.
var codeOf = map[run.Outcome]string{
	run.OutcomeTimedOut: run.CodeTimeout, run.OutcomeTrapped: run.CodeTrap, run.OutcomeDenied: run.CodeDenied,
}

package flows

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/funcs"
	"github.com/flowhost/flowhost/run"
)

// This file makes the run values that expressions name, one at a time: only what
// is named costs anything.

// param brings a recorded param back to its declared type.
func (s *Scope) param(name string) (cty.Value, error) {
	p := s.flow.params[name]
	v, err := s.decodeOrNull(s.run.Params[name])
	if err == nil {
		v, err = s.convert(v, p.Type)
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("param %s: %w", p.Name, err)
	}
	if p.Sensitive {
		v = v.Mark(funcs.Sensitive)
	}
	return v, nil
}

func (s *Scope) convert(v cty.Value, to cty.Type) (cty.Value, error) {
	defer s.end(s.begin())
	return s.budget.Convert(v, to)
}

func (s *Scope) triggerValue(name string) (cty.Value, error) {
	t := &s.run.Trigger
	switch name {
	case "kind":
		return cty.StringVal(string(t.Kind)), nil
	case "name":
		return textOrNull(t.Name), nil
	case "subject":
		return textOrNull(t.Subject), nil
	case "time":
		return timeValue(t.Time), nil
	case "headers":
		return headersValue(t.Headers), nil
	}
	return s.payloadValue()
}

func headersValue(headers map[string][]string) cty.Value {
	if len(headers) == 0 {
		return cty.MapValEmpty(cty.List(cty.String))
	}
	all := make(map[string]cty.Value, len(headers))
	for name, values := range headers {
		list := cty.ListValEmpty(cty.String)
		if len(values) > 0 {
			items := make([]cty.Value, len(values))
			for i, v := range values {
				items[i] = cty.StringVal(v)
			}
			list = cty.ListVal(items)
		}
		all[name] = list
	}
	return cty.MapVal(all)
}

func (s *Scope) runValue(name string) cty.Value {
	switch name {
	case "id":
		return cty.StringVal(string(s.run.ID))
	case "flow":
		return cty.StringVal(s.flow.Name)
	case "attempt":
		return cty.NumberIntVal(int64(s.run.Attempt))
	case "scheduled_at":
		return timeValue(s.run.Trigger.Time)
	case "started_at":
		return timeValue(s.run.StartedAt)
	case "previous_success_at":
		return timeValue(s.run.PreviousSuccess)
	}
	if len(s.flow.Labels) == 0 {
		return cty.MapValEmpty(cty.String)
	}
	all := make(map[string]cty.Value, len(s.flow.Labels))
	for name, label := range s.flow.Labels {
		all[name] = cty.StringVal(label)
	}
	return cty.MapVal(all)
}

func (s *Scope) taskValue(w ref) (cty.Value, error) {
	t := s.task(w.number)
	var err error
	v := cty.NullVal(cty.DynamicPseudoType)
	switch w.attribute {
	case "state":
		v = cty.StringVal(string(t.State))
	case "attempts":
		v = cty.NumberIntVal(int64(t.Attempts))
	case "duration":
		var took time.Duration
		if !t.StartedAt.IsZero() && !t.FinishedAt.IsZero() {
			took = t.FinishedAt.Sub(t.StartedAt)
		}
		v = cty.NumberFloatVal(took.Seconds())
	case "output", "payload":
		v, err = s.decodeOrNull(s.output(t))
	case "errors":
		v, err = s.itemErrors(t)
	case "error":
		if t.Failure != nil {
			var attrs map[string]cty.Value
			attrs, err = failureValues(t.Failure, s.decodeOrNull)
			v = cty.ObjectVal(attrs)
		}
	}
	if err != nil {
		return cty.NilVal, fmt.Errorf("the %s of %s %s is %w", w.attribute, w.root.name, w.name, err)
	}
	return v, nil
}

// failureAttributes are those of task.NAME.error.
var failureAttributes = []string{"code", "details", "message", "outcome", "retryable"}

// opener decodes JSON, a null of none.
type opener func(json.RawMessage) (cty.Value, error)

// failureValues are the attributes of a failure, to which one more may be added.
func failureValues(f *run.Failure, open opener) (map[string]cty.Value, error) {
	attrs := make(map[string]cty.Value, len(failureAttributes)+1)
	for _, name := range failureAttributes {
		var err error
		if attrs[name], err = failureValue(f, name, open); err != nil {
			return nil, err
		}
	}
	return attrs, nil
}

func failureValue(f *run.Failure, name string, open opener) (cty.Value, error) {
	switch name {
	case "outcome":
		return cty.StringVal(string(f.Outcome)), nil
	case "code":
		return cty.StringVal(f.Code), nil
	case "message":
		return cty.StringVal(f.Message), nil
	case "retryable":
		return cty.BoolVal(f.Retryable), nil
	}
	return open(f.Details)
}

// errorValue is what tasks of on_failure and finally see as error: never a null, so
// that a hook can put it into a text. Without a failure it is empty.
func (s *Scope) errorValue(name string) cty.Value {
	f := s.failure
	switch {
	case f == nil && name == "attempt":
		return cty.NumberIntVal(0)
	case f == nil:
		return cty.StringVal("")
	}
	switch name {
	case "task":
		return cty.StringVal(blamed(f).Task)
	case "attempt":
		attempt := 0
		if t := s.flow.tasks[f.Task]; t != nil {
			attempt = s.task(t.number).Attempts
		}
		return cty.NumberIntVal(int64(attempt))
	}
	v, _ := failureValue(f, name, s.decodeOrNull) // a string, which cannot fail
	return v
}

// runItself is what expressions see as the task that failed first where a run failed
// without one: its time was up, it was canceled, or an output could not be evaluated.
const runItself = "run"

// blamed is a failure that always names what failed, nil for none.
func blamed(f *run.Failure) *run.Failure {
	if f == nil || f.Task != "" {
		return f
	}
	named := *f
	named.Task = runItself
	return &named
}

func textOrNull(s string) cty.Value {
	if s == "" {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(s)
}

// timeValue writes a time as RFC 3339 in UTC, the form that formatdate and
// timeadd read.
func timeValue(t time.Time) cty.Value {
	if t.IsZero() {
		return cty.NullVal(cty.String)
	}
	return cty.StringVal(t.UTC().Format(time.RFC3339Nano))
}

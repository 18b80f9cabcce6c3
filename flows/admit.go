package flows

import (
	"encoding/json"
	"errors"
	"maps"

	"github.com/zclconf/go-cty/cty"
	"github.com/zclconf/go-cty/cty/convert"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/ctyjson"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/run"
)

// Admission is what a flow makes of a request for a run.
type Admission struct {
	Accepted    bool                       // false: the trigger's filter refused it
	Trigger     run.Trigger                // as it is to be recorded: the payload checked and compact
	Params      map[string]json.RawMessage // of their declared types, defaults filled in
	Concurrency string                     // the run's key under the flow's limit
}

// Admit decides a request: it checks the payload, which stays as it came, asks the
// trigger's filter, and fills the params from the request, the trigger's params or
// the equally named fields of the payload, and the defaults, the first of these
// first. An error is a *run.RequestError.
func (f *Flow) Admit(r run.Request) (*Admission, error) {
	a, _, err := f.TryAdmit(0, r)
	return a, err
}

// TryAdmit is Admit with at most so many units for all evaluations, as of [Scope.Try]; 0
// for as many as Admit has. With enough false, they needed more.
func (f *Flow) TryAdmit(units int, r run.Request) (a *Admission, enough bool, err error) {
	t, err := f.triggerOf(&r)
	if err != nil {
		return nil, true, err
	}
	a = &Admission{Trigger: r.Trigger}
	if a.Trigger.Payload, err = checkedPayload(r.Trigger.Payload); err != nil {
		return nil, true, err
	}
	if f.admitsAll(t) && len(r.Params) == 0 {
		a.Accepted = true
		return a, true, nil
	}
	s := f.Scope(&run.Run{Trigger: a.Trigger})
	trial := s.BeginTrial(units)
	a, err = s.admit(a, r, t)
	return a, trial.End(), err
}

func (s *Scope) admit(a *Admission, r run.Request, t *Trigger) (*Admission, error) {
	f := s.flow
	defer s.end(s.begin()) // all that is evaluated for a request shares one budget
	if err := s.checkPayload(t); err != nil {
		return nil, err
	}
	if t != nil && t.filter != nil {
		accepted, failure := s.truth(t.filter, s)
		if failure != nil {
			return nil, expressionError(failure)
		}
		if !accepted {
			return a, nil
		}
	}
	var err error
	if a.Params, err = f.fillParams(&r, t, s); err != nil {
		return nil, err
	}
	s.run.Params = a.Params
	if a.Concurrency, err = f.concurrencyKey(s); err != nil {
		return nil, err
	}
	a.Accepted = true
	return a, nil
}

// triggerOf is the trigger that a request names; nil when it names none.
func (f *Flow) triggerOf(r *run.Request) (*Trigger, error) {
	if r.Trigger.Name == "" {
		return nil, nil
	}
	if t := f.Trigger(r.Trigger.Name); t != nil {
		return t, nil
	}
	return nil, run.Requestf(run.RequestUnknownFlow, "flow %s has no trigger %q", f.Name, r.Trigger.Name)
}

// admitsAll reports whether nothing needs to be evaluated for a request without
// params.
func (f *Flow) admitsAll(t *Trigger) bool {
	evaluates := t != nil && (t.filter != nil || t.params != nil) || f.Concurrency != nil && f.Concurrency.key != nil
	return !evaluates && len(f.Params) == 0 && len(f.payloadsOf(t)) == 0
}

// checkedPayload is the payload without white space, nil for none.
func checkedPayload(payload json.RawMessage) (json.RawMessage, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	compact, err := run.CompactPayload(payload)
	switch {
	case errors.Is(err, run.ErrPayloadSyntax):
		return nil, run.Requestf(run.RequestPayload, "the message is %s", err)
	case err != nil:
		return nil, run.Requestf(run.RequestPayload, "the payload is refused: %s", err)
	}
	return compact, nil
}

func expressionError(f *run.Failure) error {
	return run.Requestf(run.RequestExpression, "%s: %s", f.At, f.Message)
}

// fillParams gives every param its value.
func (f *Flow) fillParams(r *run.Request, t *Trigger, s *Scope) (map[string]json.RawMessage, error) {
	for _, name := range keys(r.Params) {
		if f.params[name] == nil {
			return nil, f.unknownParam(name)
		}
	}
	if len(f.Params) == 0 && (t == nil || t.params == nil) {
		return nil, nil
	}
	derived, err := f.derivedParams(t, s)
	if err != nil {
		return nil, err
	}
	out := make(map[string]json.RawMessage, len(f.Params))
	for _, p := range f.Params {
		v, given := derived[p.Name]
		if raw, explicit := r.Params[p.Name]; explicit {
			given = true
			if v, err = s.decodeOrNull(raw); err != nil {
				return nil, run.Requestf(run.RequestParams, "param %s is %s", p.Name, err)
			}
		}
		if out[p.Name], err = p.fill(s.budget, v, given); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (f *Flow) unknownParam(name string) error {
	return run.Requestf(run.RequestParams, "flow %s has no param %q.%s", f.Name, name, diag.DidYouMean(name, "", keys(f.params)))
}

// derivedParams are the params that come from the trigger: its own, or the
// fields of an object payload.
func (f *Flow) derivedParams(t *Trigger, s *Scope) (map[string]cty.Value, error) {
	if t == nil || t.params == nil {
		return f.namedParams(t, s)
	}
	v, failure := s.evaluate(t.params, s)
	if failure != nil {
		return nil, expressionError(failure)
	}
	v, _ = v.UnmarkDeep()
	if v.IsNull() {
		return nil, nil
	}
	if !hasFields(v.Type()) {
		return nil, run.Requestf(run.RequestExpression, "%s: params must be an object", diag.Place(t.params.Range()))
	}
	values := v.AsValueMap()
	for _, name := range keys(values) {
		if f.params[name] == nil {
			return nil, f.unknownParam(name)
		}
	}
	return values, nil
}

// namedParams are the fields of an object payload that are called like params. Of a
// large one only these are decoded.
func (f *Flow) namedParams(t *Trigger, s *Scope) (map[string]cty.Value, error) {
	payload := s.run.Trigger.Payload
	if len(payload) == 0 || payload[0] != '{' {
		return nil, nil
	}
	fields := map[string]cty.Value{}
	var err error
	if s.large(payloadRef) {
		var members map[string]json.RawMessage
		members, err = s.members(payload, func(name string) bool { return f.params[name] != nil })
		for _, name := range keys(members) {
			if err == nil {
				fields[name], err = s.decodeOrNull(members[name])
			}
		}
	} else {
		var v cty.Value
		if v, err = s.value(payloadRef); err == nil {
			fields = v.AsValueMap()
		}
	}
	if err != nil {
		return nil, run.Requestf(run.RequestPayload, "%s", err)
	}
	if len(f.payloadsOf(t)) > 0 { // which gives what is missing as null
		maps.DeleteFunc(fields, func(_ string, v cty.Value) bool { return v.IsNull() })
	}
	return fields, nil
}

// fill converts a param's value, or takes its default. A null is as good as
// none when there is a default.
func (p *Param) fill(m *budget.Budget, v cty.Value, given bool) (json.RawMessage, error) {
	switch {
	case !given && p.Required:
		return nil, run.Requestf(run.RequestParams, "param %s is required: give it a value of type %s", p.Name, typeText(p.Type))
	case !p.Required && (!given || v.IsNull()):
		return p.Default, nil
	}
	v, err := p.declaration.convert(m, v)
	if err == nil && !v.IsNull() {
		err = p.declaration.check(m, v)
	}
	if err == nil {
		var encoded json.RawMessage
		if encoded, err = ctyjson.Encode(v, m); err == nil {
			return encoded, nil
		}
	}
	return nil, run.Requestf(run.RequestParams, "param %s: %s; its type is %s", p.Name, err, typeText(p.Type))
}

func (f *Flow) concurrencyKey(s *Scope) (string, error) {
	if f.Concurrency == nil || f.Concurrency.key == nil {
		return "", nil
	}
	x := f.Concurrency.key
	v, failure := s.evaluate(x, s)
	if failure != nil {
		return "", expressionError(failure)
	}
	v, _ = v.UnmarkDeep()
	v, err := convert.Convert(v, cty.String)
	if err != nil || !v.IsKnown() {
		return "", run.Requestf(run.RequestExpression, "%s: key must be a string, a number or a bool", diag.Place(x.Range()))
	}
	if v.IsNull() {
		return "", nil
	}
	return v.AsString(), nil
}

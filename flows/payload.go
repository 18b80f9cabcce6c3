package flows

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/run"
)

// payloads are the types of which a payload must be one, each called by its
// trigger; none when a payload may be anything.
type payloads []*declaration

// takes reads the type that a message trigger states for what it takes.
func (s *exprContext) takes(t *Trigger, a *hcl.Attribute) {
	if a == nil {
		return
	}
	d := &declaration{root: "trigger", name: t.Name}
	if s.decodeType(a, d); d.typ != cty.DynamicPseudoType {
		t.Payload, t.payloads = typeText(d.typ), payloads{d}
	}
}

// payloadTypes are those of requests that name no message trigger. They are held to
// the types of messages, so that its tasks can rely on them; a trigger that
// takes anything opens the flow to anything.
func payloadTypes(triggers []*Trigger) payloads {
	var all payloads
	for _, t := range triggers {
		switch {
		case t.Kind == run.TriggerSchedule:
		case t.payloads == nil:
			return nil
		default:
			all = append(all, t.payloads...)
		}
	}
	return all
}

// payloadsOf are the types of the payloads of what a trigger starts.
func (f *Flow) payloadsOf(t *Trigger) payloads {
	if t != nil && t.Kind != run.TriggerSchedule {
		return t.payloads
	}
	return f.payloads
}

// convert brings a payload to the first type that it fits. What is not there fits
// all of them.
func (all payloads) convert(m *budget.Budget, v cty.Value) (cty.Value, error) {
	if len(all) == 0 || v.IsNull() {
		return v, nil
	}
	var misfits []string
	for _, d := range all {
		converted, err := d.convert(m, v)
		if err == nil {
			return converted, nil
		}
		misfits = append(misfits, fmt.Sprintf("%s; trigger %q takes %s", err, d.name, typeText(d.typ)))
	}
	return cty.NilVal, fmt.Errorf("the payload is of the wrong type: %s", strings.Join(misfits, ". Or: "))
}

// payloadShape describes the payloads of what a trigger starts as expressions see
// them, those of all runs without one.
func (d *flowDecoder) payloadShape(t *Trigger) *jsonschema.Shape {
	if t != nil && t.Kind == run.TriggerFlow {
		return d.endShape(t)
	}
	all := d.flow.payloadsOf(t)
	if len(all) == 0 {
		return jsonschema.Any()
	}
	s := jsonschema.FromType(all[0].typ)
	for _, d := range all[1:] {
		s = jsonschema.Union(s, jsonschema.FromType(d.typ))
	}
	return s
}

var payloadRef = ref{root: rootWord("trigger"), name: "payload"}

// checkPayload refuses a payload that is not what its trigger takes. A trigger that
// states a type starts nothing on an empty message; who asks for the flow by name
// may leave the payload out.
func (s *Scope) checkPayload(t *Trigger) error {
	types := s.flow.payloadsOf(t)
	if len(types) == 0 {
		return nil
	}
	v, err := s.value(payloadRef)
	if err == nil && v.IsNull() && t != nil && t.Kind == run.TriggerMessage {
		err = fmt.Errorf("there is no payload, and trigger %q takes %s", t.Name, t.Payload)
	}
	if err != nil {
		return run.Requestf(run.RequestPayload, "%s", err)
	}
	return nil
}

// payloadValue is the payload as expressions see it: of its type where one is
// stated. The run keeps it as it came.
func (s *Scope) payloadValue() (cty.Value, error) {
	defer s.end(s.begin())
	v, err := s.decodeOrNull(s.run.Trigger.Payload)
	if err != nil {
		return cty.NilVal, fmt.Errorf("the trigger's payload is %w", err)
	}
	return s.payloadTypes().convert(s.budget, v)
}

func (s *Scope) payloadTypes() payloads {
	return s.flow.payloadsOf(s.flow.Trigger(s.run.Trigger.Name))
}

// payloadJSON is the same as JSON. Without a type these are the recorded bytes.
func (s *Scope) payloadJSON() json.RawMessage {
	if s.payload != nil {
		return s.payload
	}
	s.payload = s.run.Trigger.Payload
	if len(s.payload) == 0 || len(s.payloadTypes()) == 0 {
		return s.payload
	}
	if v, err := s.value(payloadRef); err == nil {
		if encoded, err := encodeJSON(v); err == nil {
			s.payload = encoded
		}
	}
	return s.payload
}

// checkTriggers compares what triggers evaluate with what starts them, and what they
// give with the flow's params.
func (d *flowDecoder) checkTriggers() {
	for _, trigger := range d.flow.Triggers {
		t := d.context.typing()
		t.trigger = trigger
		t.condition(trigger.filter)
		t.triggerParams(trigger)
	}
	if c := d.flow.Concurrency; c != nil && c.key != nil && c.key.constant == cty.NilVal {
		d.context.typing().operand(c.key.Expression, jsonschema.String|jsonschema.Number|jsonschema.Bool)
	}
}

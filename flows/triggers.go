package flows

import (
	"errors"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/dag"
	"github.com/flowhost/flowhost/flows/internal/budget"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

func (d *flowDecoder) decodeTrigger(b *hcl.Block) {
	s := d.context
	kind := b.Labels[0]
	w, known := triggerKinds[kind]
	switch {
	case !known:
		s.diags.Add(RuleUnknownBlock, b.LabelRanges[0], "Unknown kind of trigger", "There is no trigger %q.%s", kind, diag.DidYouMean(kind, "", []string{"schedule", "message", "flow"}))
		return
	case w == nil:
		lang.NotYet(s.diags, kind, "a trigger", b.LabelRanges[0])
		return
	}
	name, at, ok := s.module.label(b)
	if !ok {
		return
	}
	if first := d.triggers[name]; first != nil {
		s.diags.Duplicate("trigger", name, at, first.Range)
		return
	}
	inner, c := s.decodeAt(b, w)
	t := &Trigger{Name: name, Kind: run.TriggerKind(kind), Enabled: true, Range: b.DefRange}
	if on, ok := inner.flag(c.Arg("enabled")); ok {
		t.Enabled = on
	}
	switch t.Kind {
	case run.TriggerSchedule:
		inner.schedule(t, c)
	case run.TriggerMessage:
		inner.message(t, c)
		inner.takes(t, c.Arg("payload"))
		t.filter = inner.condition(c.Arg("filter"))
	case run.TriggerFlow:
		inner.follows(t, c)
		t.filter = inner.condition(c.Arg("filter"))
	}
	d.stated[t] = c.Arg("params")
	t.params = inner.fitting(d.stated[t], hasFields)
	d.triggers[name] = t
	d.flow.Triggers = append(d.flow.Triggers, t)
}

func hasFields(t cty.Type) bool { return t.IsObjectType() || t.IsMapType() }

func (s *exprContext) message(t *Trigger, c *lang.Content) {
	subject := c.Arg("subject")
	t.Subject, _ = s.text(subject)
	switch {
	case subject == nil || t.Subject == "":
	case !isSubject(t.Subject):
		s.diags.Add(RuleSubject, subject.Expr.Range(), "Not a subject",
			"%q is not a subject of NATS: tokens are joined by dots, hold no spaces, and * and > are whole tokens, > only the last.", t.Subject)
	case run.ReservedSubject(t.Subject) != "":
		s.diags.Add(RuleReserved, subject.Expr.Range(), "Reserved subject", "A flow cannot listen to %q: %s.", t.Subject, run.ReservedSubject(t.Subject))
	}
	t.Stream, _ = s.text(c.Arg("stream"))
	if why := run.ReservedStream(t.Stream); why != "" && isToken(t.Stream) {
		s.diags.Add(RuleReserved, c.Arg("stream").Expr.Range(), "Reserved stream", "A flow cannot read stream %q: %s.", t.Stream, why)
	}
	t.Durable, _ = s.text(c.Arg("durable"))
	for _, a := range []*hcl.Attribute{c.Arg("stream"), c.Arg("durable")} {
		if v, ok := s.text(a); ok && !isToken(v) {
			s.diags.Add(RuleName, a.Expr.Range(), "Name cannot be used", "%q is not a name for NATS: use letters, digits, - and _ only.", v)
		}
	}
	if stream, durable := c.Arg("stream"), c.Arg("durable"); (stream == nil) != (durable == nil) {
		s.diags.Add(RuleMissing, c.At, "stream and durable", "To consume from JetStream, give both stream and durable; for plain messages give neither.")
	}
}

// isSubject reports whether s is a subject that can be subscribed to.
func isSubject(s string) bool {
	if strings.ContainsAny(s, " \t\r\n\x00") {
		return false
	}
	tokens := strings.Split(s, ".")
	for i, token := range tokens {
		wild := strings.ContainsAny(token, "*>") && len(token) > 1
		if token == "" || wild || (token == ">" && i < len(tokens)-1) {
			return false
		}
	}
	return true
}

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
	if _, err := p.fill(t.module.budget, v, true); err != nil {
		t.diags.Add(RuleType, at, "Not a value of the param", "%s.", err)
	}
}

// follows decodes a trigger that fires when a run of another flow ends.
func (s *exprContext) follows(t *Trigger, c *lang.Content) {
	t.On = []run.State{run.Succeeded}
	if words, ok := s.someWords(c.Arg("on")); ok {
		t.On = nil
		for _, word := range words {
			t.On = append(t.On, run.State(word))
		}
	}
	a := c.Arg("after")
	if a == nil {
		return
	}
	t.after = a.Expr.Range()
	if d := s.flow(a); d != nil {
		t.After = d.flow.Name
	}
}

// Follower is a flow that may start when a run of another one ends.
type Follower struct {
	Flow    *Flow
	Trigger *Trigger // states in which ends
}

// Followers are the flows of the set that may start when runs end, by the flow whose
// runs these are.
func (s *Set) Followers() map[string][]Follower {
	all := map[string][]Follower{}
	for _, f := range s.Flows {
		for _, t := range f.Triggers {
			if t.Kind == run.TriggerFlow && t.Enabled {
				all[t.After] = append(all[t.After], Follower{f, t})
			}
		}
	}
	return all
}

// Ended is the payload of a run that starts when another one has ended.
func Ended(r *run.Run, end *run.Finished) ([]byte, error) {
	return run.EncodeJSON(struct {
		Run    run.ID       `json:"run"`
		Flow   string       `json:"flow"`
		State  run.State    `json:"state"`
		Output any          `json:"output"`
		Error  *run.Failure `json:"error"`
	}{r.ID, r.Flow, end.State, end.Output, blamed(end.Failure)})
}

// endShape describes the payload of a flow trigger. There is an output only if the
// run has succeeded.
func (d *flowDecoder) endShape(t *Trigger) *jsonschema.Shape {
	output := jsonschema.Any()
	if of := d.context.module.decoders[strings.TrimPrefix(t.After, d.context.module.src.prefix)]; of != nil && slices.Equal(t.On, []run.State{run.Succeeded}) {
		output = of.asSubflow().output
	}
	fields := map[string]*jsonschema.Shape{
		"run": jsonschema.FromType(cty.String), "flow": jsonschema.FromType(cty.String), "state": jsonschema.FromType(cty.String),
		"output": output, "error": jsonschema.Any(),
	}
	return &jsonschema.Shape{Kinds: jsonschema.Object, Fields: fields, Required: keys(fields), Closed: true}
}

// checkFollowers reports flows whose runs start each other for as long as all goes
// well.
func (m *module) checkFollowers() {
	b, at := dag.New(), map[[2]string]*Trigger{}
	for _, name := range keys(m.decoders) {
		b.Add(m.decoders[name].flow.Name) // keys are unique
	}
	for _, name := range keys(m.decoders) {
		f := m.decoders[name].flow
		for _, t := range f.Triggers {
			pair := [2]string{t.After, f.Name}
			always := t.Kind == run.TriggerFlow && t.After != "" && t.Enabled && t.filter == nil && slices.Contains(t.On, run.Succeeded)
			if always && at[pair] == nil {
				at[pair] = t
				b.Connect(pair[0], pair[1]) // both are there
			}
		}
	}
	_, err := b.Build()
	cycle := (*dag.CycleError)(nil)
	if !errors.As(err, &cycle) {
		return
	}
	var around []string
	for i := range cycle.Path[1:] {
		t := at[[2]string{cycle.Path[i], cycle.Path[i+1]}]
		around = append(around, cycle.Path[i+1]+" starts after "+cycle.Path[i]+" ("+diag.Place(t.after)+")")
	}
	m.diags.Add(RuleCycle, at[[2]string{cycle.Path[0], cycle.Path[1]}].after, "Flows start each other without end",
		"Each run of these flows that succeeds starts another one: %s. Give one of these triggers a filter.", strings.Join(around, ", "))
}

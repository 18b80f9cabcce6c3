package flows

import (
	"errors"
	"slices"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/dag"
	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/flows/internal/lang"
	"github.com/flowhost/flowhost/run"
)

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

package flows

import (
	"errors"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/dag"
	"github.com/flowhost/flowhost/flows/internal/diag"
)

// call is a task of one flow that runs another.
type call struct {
	from, to *flowDecoder
	task     *Task
	certain  bool // it is made by every run in which nothing fails
}

func (c call) text() string {
	return c.from.flow.Name + " runs " + c.to.flow.Name + " in task " + c.task.Name + " (" + diag.Place(c.task.called) + ")"
}

// checkCalls reports flows that run each other without end, and those that would
// wait for themselves.
func (m *module) checkCalls() {
	calls := map[*flowDecoder][]call{}
	for _, name := range keys(m.decoders) {
		d := m.decoders[name]
		calls[d] = d.calls()
	}
	m.endless(calls)
	for _, name := range keys(m.decoders) {
		d := m.decoders[name]
		if b := d.content.One("concurrency"); b == nil {
			continue
		} else if around := circle(calls, d); around != nil {
			m.diags.Add(RuleConflict, b.DefRange, "Flow that waits for itself",
				"While a run of %s holds a slot, it would wait for a slot for another one: %s. Leave the block out, or move the tasks that are to be limited into a separate flow.",
				d.flow.Name, textOf(around))
		}
	}
}

// calls are the tasks of a flow that run flows, in order of declaration.
func (d *flowDecoder) calls() []call {
	var out []call
	for _, s := range d.flow.Sections {
		certain := s.certain()
		for i, t := range s.Tasks {
			if t.Child != nil {
				out = append(out, call{from: d, to: d.context.module.decoderOf(t.Child), task: t, certain: certain[i]})
			}
		}
	}
	return out
}

// certain reports which tasks of a part of the flow start in every run in which
// nothing fails: neither they nor all that they wait for can be skipped.
func (s *Section) certain() []bool {
	certain := make([]bool, len(s.Tasks))
	if s.Graph == nil || s.Part == PartOnFailure {
		return certain
	}
	for _, i := range s.Graph.Order() {
		if i >= len(s.Tasks) || s.Tasks[i].when != nil || s.Tasks[i].FanOut {
			continue
		}
		up := s.Graph.Upstream(i)
		switch s.Tasks[i].RunOn {
		case RunAlways:
			certain[i] = true
		case RunOnSuccess:
			certain[i] = len(up) == 0 || slices.ContainsFunc(up, func(node int) bool { return node < len(s.Tasks) && certain[node] })
		}
	}
	return certain
}

// endless reports flows whose runs always make another run of themselves.
func (m *module) endless(calls map[*flowDecoder][]call) {
	b, at := dag.New(), map[[2]string]call{}
	for _, name := range keys(m.decoders) {
		b.Add(name) // keys are unique
	}
	for _, name := range keys(m.decoders) {
		for _, c := range calls[m.decoders[name]] {
			pair := [2]string{name, c.to.block.Labels[0]}
			if _, known := at[pair]; c.certain && !known {
				at[pair] = c
				b.Connect(pair[0], pair[1]) // both are there
			}
		}
	}
	_, err := b.Build()
	if cycle := (*dag.CycleError)(nil); errors.As(err, &cycle) {
		var around []call
		for i := range cycle.Path[1:] {
			around = append(around, at[[2]string{cycle.Path[i], cycle.Path[i+1]}])
		}
		m.diags.Add(RuleCycle, around[0].task.called, "Flows run each other without end",
			"No run of these flows could ever succeed: %s. Give one of these tasks a condition with \"when\".", textOf(around))
	}
}

// circle is the shortest way by which runs of a flow come to make another one of
// it, nil when there is none.
func circle(calls map[*flowDecoder][]call, start *flowDecoder) []call {
	came := map[*flowDecoder]call{}
	for next := []*flowDecoder{start}; len(next) > 0; next = next[1:] {
		for _, c := range calls[next[0]] {
			if _, known := came[c.to]; known {
				continue
			}
			came[c.to] = c
			if c.to == start {
				return wayTo(came, start)
			}
			next = append(next, c.to)
		}
	}
	return nil
}

func wayTo(came map[*flowDecoder]call, start *flowDecoder) []call {
	last := came[start]
	way := []call{last}
	for last.from != start {
		last = came[last.from]
		way = append(way, last)
	}
	slices.Reverse(way)
	return way
}

func textOf(calls []call) string {
	texts := make([]string, len(calls))
	for i, c := range calls {
		texts[i] = c.text()
	}
	return strings.Join(texts, ", ")
}

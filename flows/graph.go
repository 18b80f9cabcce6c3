package flows

import (
	"errors"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/dag"
)

// Edge says that task To starts after task From is done.
type Edge struct {
	From, To string
	Via      Via
	Range    hcl.Range // of the reference
}

// Via is what made an edge.
type Via string

// Origins of edges.
const (
	ViaReference Via = "reference" // an expression of To uses From
	ViaAfter     Via = "after"     // To lists From in its argument after
)

// Edges are the edges between the flow's tasks in order of their declaration,
// each pair of tasks once. Those from one part to another, which order nothing, are
// left out.
func (f *Flow) Edges() []Edge { return f.edges }

// connect builds the graph of each part.
func (d *draft) connect() {
	f := d.flow
	for _, s := range f.Sections {
		s.Graph = d.graph(s.Tasks)
	}
	f.Graph = f.Section(PartMain).Graph
	f.sinks = f.lastCalls()
}

func (d *draft) graph(tasks []*Task) *dag.Graph {
	b := dag.New()
	for _, t := range tasks {
		b.Add(t.Name) // names are unique: declareTask sees to it
	}
	for _, t := range tasks {
		for _, e := range d.edgesTo(t) {
			if err := b.Connect(e.From, e.To); err == nil {
				d.flow.edges = append(d.flow.edges, e)
			}
		}
	}
	g, err := b.Build()
	if cycle := (*dag.CycleError)(nil); errors.As(err, &cycle) {
		d.cycle(cycle.Path)
	}
	return g
}

// edgesTo are the edges that end at a task, each pair once.
func (d *draft) edgesTo(t *Task) []Edge {
	var out []Edge
	seen := map[string]bool{}
	add := func(u use, via Via) {
		from := d.tasks[u.task]
		switch {
		case from == t:
			d.site.add(RuleSelfReference, u.at, "Task refers to itself", "%s cannot wait for its own end%s. Leave the reference out.", referred(t.Name), throughLocal(u))
		case from.part == t.part && !seen[u.task]:
			seen[u.task] = true
			out = append(out, Edge{From: u.task, To: t.Name, Via: via, Range: u.at})
		}
	}
	for _, x := range t.expressions() {
		for _, u := range x.needs {
			add(u, ViaReference)
		}
	}
	for _, u := range t.after {
		add(u, ViaAfter)
	}
	return out
}

// expressions are those that are evaluated before the task starts or while it is
// attempted: what they refer to must be done.
func (t *Task) expressions() []*expression {
	var out []*expression
	for _, x := range []*expression{t.when, t.again} {
		if x != nil {
			out = append(out, x)
		}
	}
	if t.isWait() && t.Wait.value != nil {
		out = append(out, t.Wait.value)
	}
	for _, in := range []*inputs{t.input, t.config} {
		if in != nil && in.expr != nil {
			out = append(out, in.expr)
		}
	}
	return out
}

func throughLocal(u use) string {
	if u.via == "" {
		return ""
	}
	return " (through " + u.via + ")"
}

// cycle reports tasks that wait for each other, with the line of every edge.
func (d *draft) cycle(path []string) {
	var lines []string
	var first hcl.Range
	for i := 1; i < len(path); i++ {
		for _, e := range d.flow.edges {
			if e.From == path[i-1] && e.To == path[i] {
				lines = append(lines, referred(e.To)+" needs "+referred(e.From)+" ("+place(e.Range)+")")
				if i == 1 {
					first = e.Range
				}
			}
		}
	}
	d.site.add(RuleCycle, first, "Tasks wait for each other", "None of these tasks could ever start: %s. Take one of the references out.", strings.Join(lines, ", "))
}

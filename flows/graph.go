package flows

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/dag"
	"github.com/flowhost/flowhost/flows/internal/diag"
)

// Edge is the rule that To starts after From is done. Each is the name of a task, or that
// of a group after "group.".
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
	ViaOrder     Via = "order"     // both are members of a group that has an order
	ViaMember    Via = "member"    // To is a group, and a member of it uses From
)

// Edges are the edges between the flow's tasks and groups in order of their
// declaration, each pair once. Those from one part to another, which order
// nothing, are left out, and so is that a group holds its members.
func (f *Flow) Edges() []Edge { return f.edges }

// connect builds the graph of each part.
func (d *flowDecoder) connect() {
	f := d.flow
	for _, s := range f.Sections {
		w := &graphBuilder{flowDecoder: d, section: s, builder: dag.New(), needs: map[pair]bool{}, edges: map[pair]int{}}
		w.number()
		w.connect()
		s.Graph = w.build()
	}
	f.Graph = f.Section(PartMain).Graph
	if f.Graph != nil {
		f.sinks = d.unused(f.Section(PartMain))
	}
}

// unused are the tasks and groups of the section itself, not of its groups, after which
// no other comes, in declared order. Waits do not count.
func (d *flowDecoder) unused(s *Section) []ref {
	counts := func(node int) bool {
		n := &s.Nodes[node]
		return n.Parent == nil && (n.End || n.Task != nil && !n.Task.isWait())
	}
	var out []ref
	followed := make([]bool, len(s.Nodes))
	for _, node := range slices.Backward(s.Graph.Order()) {
		followed[node] = slices.ContainsFunc(s.Graph.Downstream(node), func(next int) bool { return counts(next) || followed[next] })
		if counts(node) && !followed[node] {
			out = append(out, d.outputs[s.Nodes[node].name()])
		}
	}
	slices.SortFunc(out, func(a, b ref) int { return cmp.Compare(a.number, b.number) })
	return out
}

// name is that of the task, or that of the group after "group.".
func (n *Node) name() string {
	if n.Group != nil {
		return "group." + n.Group.Name
	}
	return n.Task.Name
}

// graphBuilder is a section's graph being made.
type graphBuilder struct {
	*flowDecoder
	section *Section
	builder *dag.Builder
	ids     []string      // of the nodes in the builder
	needs   map[pair]bool // those of all nodes
	edges   map[pair]int  // where an edge is among the flow's
}

// pair is an edge between nodes.
type pair struct{ from, to int }

// number lays out the nodes: those of tasks first, so that a task's node is its
// place.
func (w *graphBuilder) number() {
	s := w.section
	add := func(id string, n Node) int {
		w.builder.Add(id) // names are unique: declareName sees to it
		w.ids = append(w.ids, id)
		s.Nodes = append(s.Nodes, n)
		return len(s.Nodes) - 1
	}
	for _, t := range s.Tasks {
		t.Node = add(t.Name, Node{Task: t, Parent: t.Group})
	}
	for _, g := range s.Groups {
		g.Begin = add(beginning(g), Node{Group: g, Parent: g.Parent})
		g.End = add("group."+g.Name, Node{Group: g, Parent: g.Parent, End: true})
		for place, m := range g.Members {
			if m.Task != nil {
				s.Nodes[m.Task.Node].Place = place
			}
		}
	}
	for _, g := range s.Groups {
		for place, m := range g.Members {
			if m.Group != nil {
				s.Nodes[m.Group.Begin].Place, s.Nodes[m.Group.End].Place = place, place
			}
		}
	}
}

// beginning is the id of the node at which a group begins. No name has a space.
func beginning(g *Group) string { return "group." + g.Name + " begins" }

func (w *graphBuilder) connect() {
	for _, t := range w.section.Tasks {
		w.refer(t.Node, t.Group, t.uses())
	}
	for _, g := range w.section.Groups {
		w.refer(g.Begin, g.Parent, g.uses())
		if g.Mode != GroupParallel {
			w.gather(g, g)
		}
	}
	// What is referred to is more than what only comes before.
	for _, g := range w.section.Groups {
		w.enclose(g)
	}
}

// usage is a use of a task or a group, and what makes it an edge.
type usage struct {
	dependency
	via Via
}

// uses are what must be done before the task starts or another attempt of it is
// decided.
func (t *Task) uses() []usage {
	return usages(t.expressions(), t.after)
}

// uses are what must be done before the group begins.
func (g *Group) uses() []usage {
	if g.when == nil {
		return usages(nil, g.after)
	}
	return usages([]*expression{g.when}, g.after)
}

func usages(expressions []*expression, after []dependency) []usage {
	var out []usage
	for _, x := range expressions {
		for _, u := range x.dependencies {
			out = append(out, usage{u, ViaReference})
		}
	}
	for _, u := range after {
		out = append(out, usage{u, ViaAfter})
	}
	return out
}

// target is what a use refers to: the node at which it ends, its group, and itself
// if it is a group. It is not ok for what is in another part.
func (w *graphBuilder) target(u dependency) (node int, in *Group, itself *Group, ok bool) {
	if name, group := strings.CutPrefix(u.task, "group."); group {
		g := w.groups[name]
		return g.End, g.Parent, g, g.part == w.section.Part
	}
	t := w.tasks[u.task]
	return t.Node, t.Group, nil, t.part == w.section.Part
}

// refer connects a node with what it uses. It is a member of the given group.
func (w *graphBuilder) refer(node int, in *Group, uses []usage) {
	n := &w.section.Nodes[node]
	for _, u := range uses {
		from, _, itself, ok := w.target(u.dependency)
		switch {
		case !ok:
		case from == node || n.Group != nil && n.Group == itself:
			w.context.diags.Add(RuleSelfReference, u.at, selfSummary(n), "%s cannot wait for its own end%s. Leave the reference out.", w.called(n), throughLocal(u.dependency))
		case itself != nil && itself.holds(in):
			w.context.diags.Add(RuleSelfReference, u.at, "Member waits for its group",
				"%s is part of group.%s and cannot wait for its end%s: a group ends after all of its members. Leave the reference out.", w.called(n), itself.Name, throughLocal(u.dependency))
		default:
			w.need(node, Need{Node: from}, u)
		}
	}
}

func selfSummary(n *Node) string {
	switch {
	case n.Group != nil:
		return "Group refers to itself"
	case n.Task.isWait():
		return "Wait refers to itself"
	}
	return "Task refers to itself"
}

// called is how messages call a node.
func (w *graphBuilder) called(n *Node) string {
	if n.Group != nil {
		return "group." + n.Group.Name
	}
	return referred(n.Task.Name)
}

// need makes an edge that decides whether a node runs, each pair once.
func (w *graphBuilder) need(node int, need Need, u usage) {
	if p := (pair{need.Node, node}); !w.needs[p] {
		w.needs[p] = true
		n := &w.section.Nodes[node]
		n.Needs = append(n.Needs, need)
		w.wait(p, u)
	}
}

// wait makes an edge of the graph, and the flow's edge from which it comes.
func (w *graphBuilder) wait(p pair, u usage) {
	w.order(p.from, p.to)
	if _, known := w.edges[p]; !known {
		w.edges[p] = len(w.flow.edges)
		nodes := w.section.Nodes
		w.flow.edges = append(w.flow.edges, Edge{From: nodes[p.from].name(), To: nodes[p.to].name(), Via: u.via, Range: u.at})
	}
}

// order makes an edge of the graph.
func (w *graphBuilder) order(from, to int) {
	if err := w.builder.Connect(w.ids[from], w.ids[to]); err != nil {
		panic(err) // both nodes are there
	}
}

// gather lets a group whose members have an order or a race wait for what they
// refer to outside of it: one without references would begin at once.
func (w *graphBuilder) gather(g, from *Group) {
	for _, m := range from.Members {
		if m.Group != nil {
			w.union(g, m.Group.uses(), true)
			w.gather(g, m.Group)
			continue
		}
		w.union(g, m.Task.uses(), m.Task.RunOn == RunOnSuccess)
	}
}

// union connects a group with what a member uses. What a member runs after in any
// case only orders.
func (w *graphBuilder) union(g *Group, uses []usage, decides bool) {
	for _, u := range uses {
		from, in, itself, ok := w.target(u.dependency)
		switch {
		case !ok || g.holds(in) || itself != nil && itself.holds(g):
		case decides:
			w.need(g.Begin, Need{Node: from}, usage{u.dependency, ViaMember})
		default:
			w.wait(pair{from, g.Begin}, usage{u.dependency, ViaMember})
		}
	}
}

// enclose puts the members between the beginning and the end of their group, one
// after the other where they have an order.
func (w *graphBuilder) enclose(g *Group) {
	w.order(g.Begin, g.End)
	for i, m := range g.Members {
		w.order(g.Begin, m.entry())
		w.order(m.Exit(), g.End)
		if i == 0 || !g.ordered() {
			continue
		}
		before, why := g.Members[i-1].Exit(), usage{dependency{at: g.Range}, ViaOrder}
		if g.Mode == GroupFirstSuccess {
			w.wait(pair{before, m.entry()}, why)
		} else {
			w.need(m.entry(), Need{Node: before, Before: true}, why)
		}
	}
}

func (w *graphBuilder) build() *dag.Graph {
	g, err := w.builder.Build()
	if cycle := (*dag.CycleError)(nil); errors.As(err, &cycle) {
		w.cycle(cycle.Path)
	}
	return g
}

// expressions are those that are evaluated before the task starts or while it is
// attempted: what they refer to must be done.
func (t *Task) expressions() []*expression {
	var out []*expression
	for _, x := range []*expression{t.when, t.each, t.again} {
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

func throughLocal(u dependency) string {
	if u.via == "" {
		return ""
	}
	return " (through " + u.via + ")"
}

// maxLinks is how many edges of a cycle are listed.
const maxLinks = 40

// cycle reports tasks and groups that wait for each other, with the line of every
// edge. Its place is where one of them refers to another, if any does.
func (w *graphBuilder) cycle(path []string) {
	nodes := make(map[string]int, len(w.ids))
	for i, id := range w.ids {
		nodes[id] = i
	}
	var lines []string
	var at hcl.Range
	referred := false
	summary, these, or := "Tasks wait for each other", "these tasks", ""
	for i := 1; i < len(path); i++ {
		p := pair{nodes[path[i-1]], nodes[path[i]]}
		line, place, via := w.link(p)
		if line == "" {
			continue
		}
		lines = append(lines, line)
		if refers := via != "" && via != ViaOrder; len(lines) == 1 || refers && !referred {
			at, referred = place, refers
		}
		if w.section.Nodes[p.to].Group != nil {
			summary, these = "Tasks and groups wait for each other", "these"
		}
		if via == ViaOrder {
			or = ", or change the order of the members"
		}
	}
	if more := len(lines) - maxLinks; more > 1 {
		lines = append(lines[:maxLinks], fmt.Sprintf("and %d more on the way back to %s", more, w.called(&w.section.Nodes[nodes[path[0]]])))
	}
	w.context.diags.Add(RuleCycle, at, summary, "None of %s could ever start: %s. Take one of the references out%s.", these, strings.Join(lines, ", "), or)
}

// link explains why one node comes after another and where that is written. It is
// without an origin where it is so because a group holds its members, and without
// words where a group ends after it has begun.
func (w *graphBuilder) link(p pair) (line string, at hcl.Range, via Via) {
	a, b := &w.section.Nodes[p.from], &w.section.Nodes[p.to]
	i, edge := w.edges[p]
	switch {
	case !edge && a.Group != nil && a.Group == b.Group:
		return "", at, ""
	case !edge && a.Group != nil && !a.End:
		line, at = w.called(b)+" is in "+w.called(a), a.Group.Range
	case !edge:
		line, at = w.called(b)+" ends after "+w.called(a), b.Group.Range
	default:
		at, via = w.flow.edges[i].Range, w.flow.edges[i].Via
		line = w.called(b) + " needs " + w.called(a)
	}
	switch via {
	case ViaOrder:
		line = w.called(b) + " comes after " + w.called(a) + " in group." + b.Parent.Name
	case ViaMember:
		line += " for a member"
	}
	return line + " (" + diag.Place(at) + ")", at, via
}

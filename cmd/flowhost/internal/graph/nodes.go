package graph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/flows"
)

// graphNode is a task of a graph, or a group with its members, and the edges to it.
type graphNode struct {
	task    *flows.Task
	group   *flows.Group // instead of the task
	part    flows.Part
	edges   []flows.Edge
	members []*graphNode // of the group
}

// nodesOf are a flow's tasks and groups, part by part. The nodes of one part and the
// members of one group are in topological order.
func nodesOf(f *flows.Flow) []*graphNode {
	to := map[string][]flows.Edge{}
	for _, e := range f.Edges() {
		to[e.To] = append(to[e.To], e)
	}
	var outer []*graphNode
	for _, s := range f.Sections {
		groups := map[*flows.Group]*graphNode{}
		for _, g := range s.Groups {
			groups[g] = &graphNode{group: g, part: s.Part, edges: to["group."+g.Name]}
		}
		for _, i := range s.Graph.Order() {
			n := s.Nodes[i]
			node := groups[n.Group]
			switch {
			case n.Task != nil:
				node = &graphNode{task: n.Task, part: s.Part, edges: to[n.Task.Name]}
			case !n.End:
				continue // a group is placed by its end: after all that it waits for
			}
			if in := groups[n.Parent]; in != nil {
				in.members = append(in.members, node)
			} else {
				outer = append(outer, node)
			}
		}
	}
	return outer
}

// visit calls enter for the nodes and all nodes within them, and leave at the end of
// each group.
func visit(nodes []*graphNode, depth int, enter, leave func(n *graphNode, depth int)) {
	for _, n := range nodes {
		enter(n, depth)
		if n.group != nil {
			visit(n.members, depth+1, enter, leave)
			leave(n, depth)
		}
	}
}

// flat are the nodes and all nodes within them.
func flat(nodes []*graphNode) []*graphNode {
	var all []*graphNode
	visit(nodes, 0, func(n *graphNode, _ int) { all = append(all, n) }, func(*graphNode, int) {})
	return all
}

func (n *graphNode) hook() bool { return n.part != flows.PartMain }

// name is that of the task, or that of the group after "group.", as edges have it.
func (n *graphNode) name() string {
	if n.group != nil {
		return "group." + n.group.Name
	}
	return n.task.Name
}

// label is the name as drawn, with the mode of a group, and a mark for a task that
// runs for each item.
func (n *graphNode) label() string {
	switch {
	case n.group != nil:
		return fmt.Sprintf("%s (%s)", n.group.Name, n.group.Mode)
	case n.task.FanOut:
		return n.task.Name + " (each)"
	}
	return n.task.Name
}

// runOn is the condition on its predecessors under which it runs.
func (n *graphNode) runOn() flows.RunOn {
	if n.group != nil {
		return flows.RunOnSuccess
	}
	return n.task.RunOn
}

// from are the names of its predecessors.
func (n *graphNode) from() []string {
	from := make([]string, len(n.edges))
	for i, e := range n.edges {
		from[i] = e.From
	}
	return from
}

// waitsFor describes its predecessors.
func (n *graphNode) waitsFor() string {
	if len(n.edges) == 0 {
		return ""
	}
	text := "after " + strings.Join(n.from(), ", ")
	if on := n.runOn(); on != flows.RunOnSuccess {
		text += " (on " + string(on) + ")"
	}
	return text
}

// detail describes its predecessors and the flow that it runs.
func (n *graphNode) detail() string {
	text := n.waitsFor()
	if n.task == nil || n.task.Child == nil {
		return text
	}
	if text != "" {
		text += ", "
	}
	return text + "runs flow " + n.task.Flow
}

// grouped reports whether there are groups among the nodes.
func grouped(nodes []*graphNode) bool {
	return slices.ContainsFunc(nodes, func(n *graphNode) bool { return n.group != nil })
}

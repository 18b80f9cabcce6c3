package graph

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/flows"
)

// Text writes the tasks of each flow in topological order, one per line.
func Text(w io.Writer, chosen []*flows.Flow) {
	for i, f := range chosen {
		if i > 0 {
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w, f.Name)
		for nodes := nodesOf(f); len(nodes) > 0; {
			n := 1
			for n < len(nodes) && nodes[n].part == nodes[0].part {
				n++
			}
			partText(w, nodes[:n])
			nodes = nodes[n:]
		}
	}
}

// partText writes the tasks and groups of one part of a flow, one per line, members
// below their group.
func partText(w io.Writer, nodes []*graphNode) {
	outer := 1
	if nodes[0].hook() {
		outer = 2
		fmt.Fprintf(w, "  %s:\n", strings.ReplaceAll(string(nodes[0].part), "_", " "))
	}
	width := 0
	nothing := func(*graphNode, int) {}
	visit(nodes, outer, func(n *graphNode, depth int) { width = max(width, 2*depth+len(n.label())) }, nothing)
	visit(nodes, outer, func(n *graphNode, depth int) {
		line := strings.Repeat("  ", depth) + n.label()
		fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%-*s  %s", width, line, n.detail()), " "))
	}, nothing)
}

// Mermaid writes one flowchart with a subgraph for each flow and each group.
// Syntax: https://mermaid.js.org/syntax/flowchart.html.
func Mermaid(w io.Writer, chosen []*flows.Flow) {
	fmt.Fprintln(w, "flowchart TD")
	for i, f := range chosen {
		fmt.Fprintf(w, "  subgraph flow%d [%q]\n", i, f.Name)
		nodes := nodesOf(f)
		visit(nodes, 2, func(n *graphNode, depth int) {
			indent := strings.Repeat("  ", depth)
			if n.group != nil {
				fmt.Fprintf(w, "%ssubgraph %s [%q]\n", indent, mermaidID(i, n.name()), n.label())
				return
			}
			fmt.Fprintf(w, "%s%s"+mermaidShape(n)+"\n", indent, mermaidID(i, n.name()), n.label())
		}, func(_ *graphNode, depth int) {
			fmt.Fprintf(w, "%send\n", strings.Repeat("  ", depth))
		})
		for _, n := range flat(nodes) {
			for _, from := range n.from() {
				fmt.Fprintf(w, "    %s %s %s\n", mermaidID(i, from), mermaidArrow(n.runOn()), mermaidID(i, n.name()))
			}
		}
		fmt.Fprintln(w, "  end")
	}
}

// mermaidShape is a box; round for hooks, with double sides for fan-outs and
// sub-flows.
func mermaidShape(n *graphNode) string {
	switch {
	case n.hook():
		return "([%q])"
	case n.task.FanOut || n.task.Child != nil:
		return "[[%q]]"
	}
	return "[%q]"
}

// mermaidID avoids keywords of Mermaid, such as end, and hyphens, which it may parse as
// a part of an arrow. Different names have different ids.
func mermaidID(flow int, name string) string {
	kind := "f"
	if group, ok := strings.CutPrefix(name, "group."); ok {
		kind, name = "g", group
	}
	return fmt.Sprintf("%s%d_%s", kind, flow, mermaidNames.Replace(name))
}

var mermaidNames = strings.NewReplacer("_", "__", "-", "_h", ".", "_d")

func mermaidArrow(on flows.RunOn) string {
	if on == flows.RunOnSuccess {
		return "-->"
	}
	return "-. " + string(on) + " .->"
}

// DOT writes one digraph with a cluster for each flow and each group.
// Syntax: https://graphviz.org/doc/info/lang.html.
func DOT(w io.Writer, chosen []*flows.Flow) {
	drawn := make([][]*graphNode, len(chosen))
	for i, f := range chosen {
		drawn[i] = nodesOf(f)
	}
	fmt.Fprintln(w, "digraph flows {")
	if slices.ContainsFunc(drawn, grouped) {
		fmt.Fprintln(w, "  compound=true;") // edges end at clusters
	}
	fmt.Fprintln(w, "  node [shape=box];")
	for i, f := range chosen {
		fmt.Fprintf(w, "  subgraph cluster_%d {\n    label=%q;\n", i, f.Name)
		(&dotFlow{w, i, f, groupsByName(drawn[i])}).draw(drawn[i])
		fmt.Fprintln(w, "  }")
	}
	fmt.Fprintln(w, "}")
}

// dotFlow is a flow that is written in DOT.
type dotFlow struct {
	io.Writer
	number int
	flow   *flows.Flow
	groups map[string]*flows.Group
}

func groupsByName(nodes []*graphNode) map[string]*flows.Group {
	groups := map[string]*flows.Group{}
	for _, n := range flat(nodes) {
		if n.group != nil {
			groups[n.name()] = n.group
		}
	}
	return groups
}

func (d *dotFlow) draw(nodes []*graphNode) {
	visit(nodes, 2, func(n *graphNode, depth int) {
		indent, style := strings.Repeat("  ", depth), ""
		switch {
		case n.group != nil:
			fmt.Fprintf(d, "%ssubgraph %q {\n%s  label=%q;\n", indent, d.cluster(n.group), indent, n.label())
			return
		case n.hook():
			style = ", style=rounded"
		}
		if n.task.FanOut || n.task.Child != nil {
			style += ", peripheries=2"
		}
		fmt.Fprintf(d, "%s%q [label=%q%s];\n", indent, d.id(n.task), n.label(), style)
	}, func(_ *graphNode, depth int) {
		fmt.Fprintf(d, "%s}\n", strings.Repeat("  ", depth))
	})
	for _, n := range flat(nodes) {
		for _, from := range n.from() {
			d.edge(from, n)
		}
	}
}

func (d *dotFlow) id(t *flows.Task) string { return d.flow.Name + "/" + t.Name }

func (d *dotFlow) cluster(g *flows.Group) string {
	return fmt.Sprintf("cluster_%d_%s", d.number, g.Name)
}

// edge writes an edge. DOT has edges between nodes only: an edge of a group is drawn
// to one of its tasks and clipped at the cluster.
func (d *dotFlow) edge(from string, n *graphNode) {
	var attributes []string
	tail, head := d.flow.Name+"/"+from, ""
	if g := d.groups[from]; g != nil {
		leaves := g.Leaves()
		tail = d.id(leaves[len(leaves)-1])
		attributes = append(attributes, fmt.Sprintf("ltail=%q", d.cluster(g)))
	}
	if n.group != nil {
		head = d.id(n.group.Leaves()[0])
		attributes = append(attributes, fmt.Sprintf("lhead=%q", d.cluster(n.group)))
	} else {
		head = d.id(n.task)
	}
	if on := n.runOn(); on != flows.RunOnSuccess {
		attributes = append(attributes, "style=dashed", fmt.Sprintf("label=%q", on))
	}
	text := ""
	if len(attributes) > 0 {
		text = " [" + strings.Join(attributes, ", ") + "]"
	}
	fmt.Fprintf(d, "    %q -> %q%s;\n", tail, head, text)
}

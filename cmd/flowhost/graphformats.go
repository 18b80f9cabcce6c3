package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/flowhost/flowhost/flows"
)

// graphNode is one task of a graph and the tasks that it waits for.
type graphNode struct {
	task *flows.Task
	part flows.Part
	from []string
}

// nodesOf are a flow's tasks in topological order, part by part.
func nodesOf(f *flows.Flow) []graphNode {
	from := map[string][]string{}
	for _, e := range f.Edges() {
		from[e.To] = append(from[e.To], e.From)
	}
	var nodes []graphNode
	for _, s := range f.Sections {
		for _, i := range s.Graph.Order() {
			if s.Nodes[i].Task == nil {
				continue
			}
			nodes = append(nodes, graphNode{s.Tasks[i], s.Part, from[s.Tasks[i].Name]})
		}
	}
	return nodes
}

func (n graphNode) hook() bool { return n.part != flows.PartMain }

func graphText(w io.Writer, chosen []*flows.Flow) {
	for i, f := range chosen {
		if i > 0 {
			fmt.Fprintln(w)
		}
		nodes := nodesOf(f)
		width := 0
		for _, n := range nodes {
			width = max(width, len(n.task.Name))
		}
		fmt.Fprintln(w, f.Name)
		for j, n := range nodes {
			indent := "  "
			if n.hook() {
				indent = "    "
			}
			if n.hook() && (j == 0 || nodes[j-1].part != n.part) {
				fmt.Fprintf(w, "  %s:\n", strings.ReplaceAll(string(n.part), "_", " "))
			}
			fmt.Fprintln(w, strings.TrimRight(fmt.Sprintf("%s%-*s  %s", indent, width, n.task.Name, n.detail()), " "))
		}
	}
}

// detail is what a task waits for, and which flow it runs.
func (n graphNode) detail() string {
	text := n.waitsFor()
	if n.task.Child == nil {
		return text
	}
	if text != "" {
		text += ", "
	}
	return text + "runs flow " + n.task.Flow
}

func (n graphNode) waitsFor() string {
	if len(n.from) == 0 {
		return ""
	}
	text := "after " + strings.Join(n.from, ", ")
	if n.task.RunOn != flows.RunOnSuccess {
		text += " (on " + string(n.task.RunOn) + ")"
	}
	return text
}

// graphMermaid writes one flowchart with a subgraph for each flow.
// Syntax: https://mermaid.js.org/syntax/flowchart.html.
func graphMermaid(w io.Writer, chosen []*flows.Flow) {
	fmt.Fprintln(w, "flowchart TD")
	for i, f := range chosen {
		fmt.Fprintf(w, "  subgraph flow%d [%q]\n", i, f.Name)
		nodes := nodesOf(f)
		for _, n := range nodes {
			fmt.Fprintf(w, "    %s"+n.mermaidShape()+"\n", mermaidID(i, n.task.Name), n.task.Name)
		}
		for _, n := range nodes {
			for _, from := range n.from {
				fmt.Fprintf(w, "    %s %s %s\n", mermaidID(i, from), mermaidArrow(n.task.RunOn), mermaidID(i, n.task.Name))
			}
		}
		fmt.Fprintln(w, "  end")
	}
}

// mermaidShape is a box; round for hooks, with double sides for what is a graph
// itself.
func (n graphNode) mermaidShape() string {
	switch {
	case n.task.Child != nil:
		return "[[%q]]"
	case n.hook():
		return "([%q])"
	}
	return "[%q]"
}

// mermaidID avoids names that mean something to Mermaid, such as end, and hyphens,
// which it may take for a part of an arrow. Different tasks keep different names.
func mermaidID(flow int, task string) string {
	return fmt.Sprintf("f%d_%s", flow, mermaidNames.Replace(task))
}

var mermaidNames = strings.NewReplacer("_", "__", "-", "_h", ".", "_d")

func mermaidArrow(on flows.RunOn) string {
	if on == flows.RunOnSuccess {
		return "-->"
	}
	return "-. " + string(on) + " .->"
}

// graphDOT writes one digraph with a cluster for each flow.
// Syntax: https://graphviz.org/doc/info/lang.html.
func graphDOT(w io.Writer, chosen []*flows.Flow) {
	fmt.Fprintln(w, "digraph flows {")
	fmt.Fprintln(w, "  node [shape=box];")
	for i, f := range chosen {
		fmt.Fprintf(w, "  subgraph cluster_%d {\n    label=%q;\n", i, f.Name)
		nodes := nodesOf(f)
		for _, n := range nodes {
			style := ""
			if n.hook() {
				style = ", style=rounded"
			}
			if n.task.Child != nil {
				style += ", peripheries=2"
			}
			fmt.Fprintf(w, "    %q [label=%q%s];\n", f.Name+"/"+n.task.Name, n.task.Name, style)
		}
		for _, n := range nodes {
			for _, from := range n.from {
				fmt.Fprintf(w, "    %q -> %q%s;\n", f.Name+"/"+from, f.Name+"/"+n.task.Name, dotStyle(n.task.RunOn))
			}
		}
		fmt.Fprintln(w, "  }")
	}
	fmt.Fprintln(w, "}")
}

func dotStyle(on flows.RunOn) string {
	if on == flows.RunOnSuccess {
		return ""
	}
	return fmt.Sprintf(" [style=dashed, label=%q]", on)
}

type (
	graphFile struct {
		Flows []graphFlow `json:"flows"`
	}
	graphFlow struct {
		Flow      string      `json:"flow"`
		Tasks     []graphTask `json:"tasks"` // in topological order
		OnFailure []graphTask `json:"on_failure"`
		OnSuccess []graphTask `json:"on_success"`
		Finally   []graphTask `json:"finally"`
	}
	graphTask struct {
		Task     string      `json:"task"`
		After    []string    `json:"after"`
		RunOn    flows.RunOn `json:"run_on"`
		Plugin   string      `json:"plugin,omitempty"` // as the flow file names its module
		Function string      `json:"function,omitempty"`
		Limits   []string    `json:"limits,omitempty"` // full names
		Flow     string      `json:"flow,omitempty"`   // that the task runs, in place of a function
		Wait     flows.WaitFor `json:"wait,omitempty"` // what ends a wait
		At       string      `json:"at"`               // "orders.hcl:14"
	}
)

// graphOf is what --format json prints.
func graphOf(chosen []*flows.Flow) graphFile {
	out := graphFile{Flows: []graphFlow{}}
	for _, f := range chosen {
		g := graphFlow{Flow: f.Name, Tasks: []graphTask{}, OnFailure: []graphTask{}, OnSuccess: []graphTask{}, Finally: []graphTask{}}
		for _, n := range nodesOf(f) {
			t := graphTask{
				Task: n.task.Name, After: append([]string{}, n.from...), RunOn: n.task.RunOn,
				Plugin: n.task.Plugin.Source, Function: n.task.Function, Flow: n.task.Flow, At: n.task.At(),
			}
			for _, l := range n.task.LimitedBy {
				t.Limits = append(t.Limits, l.Name)
			}
			if n.task.Wait != nil {
				t.Wait = n.task.Wait.For
			}
			list := map[flows.Part]*[]graphTask{
				flows.PartMain: &g.Tasks, flows.PartOnFailure: &g.OnFailure, flows.PartOnSuccess: &g.OnSuccess, flows.PartFinally: &g.Finally,
			}[n.part]
			*list = append(*list, t)
		}
		out.Flows = append(out.Flows, g)
	}
	return out
}

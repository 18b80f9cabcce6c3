package flows

import (
	"fmt"
	"strings"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

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

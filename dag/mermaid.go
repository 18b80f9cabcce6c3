package dag

import (
	"fmt"
	"strings"
	"unicode"
)

// Mermaid is the graph as a flowchart of Mermaid, from top to bottom. Nodes are
// labelled with their ids and named n0, n1 … , because names such as end mean
// something to Mermaid. Everything is in order of addition.
//
// Syntax: https://mermaid.js.org/syntax/flowchart.html.
func (g *Graph) Mermaid() string {
	var s strings.Builder
	s.WriteString("flowchart TD\n")
	for i := range g.Len() {
		fmt.Fprintf(&s, "  n%d[\"%s\"]\n", i, mermaidLabel(g.ID(i)))
	}
	for i := range g.Len() {
		for _, j := range g.Downstream(i) {
			fmt.Fprintf(&s, "  n%d --> n%d\n", i, j)
		}
	}
	return s.String()
}

// mermaidLabel is the text with what Mermaid could take for more than text as
// entities: it reads HTML, Markdown, comments and directives in labels, and two of
// its patterns look for style and classDef with a colon.
func mermaidLabel(text string) string {
	var s strings.Builder
	for _, r := range text {
		switch {
		case unicode.IsLetter(r), unicode.IsMark(r), unicode.IsDigit(r), strings.ContainsRune(" -_.,/()=+!?'", r):
			s.WriteRune(r)
		case r == '\n':
			s.WriteString("<br/>")
		case unicode.IsSpace(r):
			s.WriteRune(' ')
		case unicode.IsPrint(r):
			fmt.Fprintf(&s, "#%d;", r)
		default:
			s.WriteRune(unicode.ReplacementChar)
		}
	}
	if strings.TrimSpace(text) == "" {
		return "#32;" // a label must not be empty
	}
	return s.String()
}

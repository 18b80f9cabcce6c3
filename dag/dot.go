package dag

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// DOT is the graph in the language of Graphviz: a digraph whose nodes are named by
// their ids, and whose edges point downstream. Everything is in order of addition.
//
// Syntax: https://graphviz.org/doc/info/lang.html.
func (g *Graph) DOT() string {
	var s strings.Builder
	s.WriteString("digraph {\n")
	for _, id := range g.ids {
		if label := dotLabel(id); label != id {
			fmt.Fprintf(&s, "  \"%s\" [label=\"%s\"];\n", dotName(id), label)
		} else {
			fmt.Fprintf(&s, "  \"%s\";\n", dotName(id))
		}
	}
	for i, id := range g.ids {
		for _, j := range g.Downstream(i) {
			fmt.Fprintf(&s, "  \"%s\" -> \"%s\";\n", dotName(id), dotName(g.ids[j]))
		}
	}
	s.WriteString("}\n")
	return s.String()
}

// In a name between quotes only a quote is special, and a backslash before one or
// at the end of a line. Labels have escapes besides, and the entities of HTML.
var (
	dotNames  = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)
	dotLabels = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", "", "\x00", "�", "&", "&amp;")
)

func dotLabel(id string) string {
	return dotLabels.Replace(strings.ToValidUTF8(id, "�"))
}

// dotName is different for different ids, also for those that are not UTF-8.
func dotName(id string) string {
	name := dotNames.Replace(id)
	if utf8.ValidString(name) {
		return name
	}
	var s strings.Builder
	for len(name) > 0 {
		r, size := utf8.DecodeRuneInString(name)
		if r == utf8.RuneError && size == 1 {
			fmt.Fprintf(&s, `\x%02x`, name[0])
		} else {
			s.WriteString(name[:size])
		}
		name = name[size:]
	}
	return s.String()
}

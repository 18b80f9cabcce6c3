package diag

import (
	"fmt"
	"path"
	"path/filepath"
	"strings"

	"github.com/hashicorp/hcl/v2"
	"github.com/zclconf/go-cty/cty"
)

// Place is a range as messages name it: "orders.hcl:14", the file by its name in its
// directory.
func Place(r hcl.Range) string {
	return fmt.Sprintf("%s:%d", path.Base(filepath.ToSlash(r.Filename)), r.Start.Line)
}

// Traversal spells a traversal: "task.a.output.items[0]".
func Traversal(path hcl.Traversal) string {
	text := strings.Builder{}
	for _, s := range path {
		switch s := s.(type) {
		case hcl.TraverseRoot:
			text.WriteString(s.Name)
		case hcl.TraverseAttr:
			text.WriteString("." + s.Name)
		case hcl.TraverseIndex:
			text.WriteString(ValuePath([]cty.PathStep{cty.IndexStep{Key: s.Key}}))
		}
	}
	return text.String()
}

// ValuePath spells a path into a value: ".items[0]".
func ValuePath(path cty.Path) string {
	text := ""
	for _, s := range path {
		switch s := s.(type) {
		case cty.GetAttrStep:
			text += "." + s.Name
		case cty.IndexStep:
			if s.Key.Type() == cty.String {
				text += fmt.Sprintf("[%q]", s.Key.AsString())
			} else if s.Key.Type() == cty.Number {
				text += "[" + s.Key.AsBigFloat().Text('f', -1) + "]"
			}
		}
	}
	return text
}

// Join spells a list for messages: "var, local and trigger".
func Join(names []string, last string) string {
	switch n := len(names); n {
	case 0:
		return ""
	case 1:
		return names[0]
	default:
		text := names[0]
		for _, name := range names[1 : n-1] {
			text += ", " + name
		}
		return text + " " + last + " " + names[n-1]
	}
}

// Sentence begins a sentence with a title.
func Sentence(title string) string {
	if title == "" {
		return ""
	}
	return string(title[0]-'a'+'A') + title[1:]
}

// StartOf is the beginning of a file.
func StartOf(file string) hcl.Range {
	return hcl.Range{Filename: file, Start: hcl.InitialPos, End: hcl.InitialPos}
}

// Subject is the place of a diagnostic, empty for none.
func Subject(d *hcl.Diagnostic) hcl.Range {
	if d.Subject == nil {
		return hcl.Range{}
	}
	return *d.Subject
}

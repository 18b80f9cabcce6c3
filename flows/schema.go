package flows

import (
	"slices"
	"strings"

	"github.com/flowhost/flowhost/flows/internal/lang"
)

// Language is all that may be written in flow files, from the tables that they
// are decoded with. Its JSON form is stable: fields are added to it, and none
// changes what it means.
type Language struct {
	FormatVersion string `json:"format_version"` // "1.0"

	// File is the name of the body that a flow file is.
	File string `json:"file"`

	// Bodies are the insides of blocks, the file first.
	Bodies []*Body `json:"bodies"`

	// TestFile and TestBodies are the same for test files.
	TestFile   string  `json:"test_file"`
	TestBodies []*Body `json:"test_bodies"`

	// Phases are the beginnings of references that an argument of a phase may use.
	// Beside them, a "plugin or text" may use plugin, in on_failure and finally the
	// phase "run" has error, and in a task with for_each, input, config and retry
	// have each.
	Phases map[string][]string `json:"phases"`
}

// Body is what may be written in one kind of block, or in a file.
type Body struct {
	Name      string     `json:"name"` // "task", "schedule trigger"
	Arguments []Argument `json:"arguments"`
	Blocks    []Block    `json:"blocks"`
}

// Argument is a word of the form name = value. Those of later versions have a
// name only.
type Argument struct {
	Name string `json:"name"`

	// Type is "text", "bool", "number", "whole number", "duration", "size", "time",
	// "text, number or bool", "object", "map of texts", "list of tasks",
	// "list, set or object", "limit or list of limits", "plugin or text",
	// "flow or text", "list of texts", "secret", "text or secret", "map of texts or
	// secrets", "map of secrets", "list of connections", "type" or "any value".
	Type   string   `json:"type,omitempty"`
	Bounds string   `json:"bounds,omitempty"` // of numbers: "from 0 to 1"
	OneOf  []string `json:"one_of,omitempty"` // the strings that it may be

	// Phase is when the value is computed: "constant", "load", "fire", "key",
	// "run", "retry", of tests also "mock" and "assert", or "own" for what is read in
	// a way of its own.
	Phase string `json:"phase,omitempty"`

	Required bool   `json:"required"`
	Default  string `json:"default,omitempty"` // as it is written, or a few words; for readers
	About    string `json:"about,omitempty"`
	Later    bool   `json:"later,omitempty"` // not part of this version
}

// Block is a word of the form name "label" { … }. Those of later versions have a
// name and labels only.
type Block struct {
	Name   string   `json:"name"`
	Labels []string `json:"labels,omitempty"` // the meaning of the labels

	// Body is the name of the body; without one, any arguments may be written. With
	// Kinds, the first label decides.
	Body  string `json:"body,omitempty"`
	Kinds []Kind `json:"kinds,omitempty"`

	Once  bool   `json:"once,omitempty"` // there may be one at most
	About string `json:"about,omitempty"`
	Later bool   `json:"later,omitempty"` // not part of this version
}

// Kind is a first label and the body that goes with it.
type Kind struct {
	Label string `json:"label"`
	Body  string `json:"body,omitempty"`
	Later bool   `json:"later,omitempty"` // not part of this version
}

// Schema gives the language.
func Schema() *Language {
	l := &Language{FormatVersion: "1.0", File: idOf(fileSchema), TestFile: idOf(testFileSchema), Phases: map[string][]string{}}
	for at, phase := range lang.Phases {
		if at != lang.LoadPlugin {
			l.Phases[phase] = usableIn(at, false).list()
		}
	}
	l.Phases[lang.Phases[lang.Mock]], l.Phases[lang.Phases[lang.Assert]] = mockRoots, assertRoots
	for _, w := range tables(fileSchema) {
		l.Bodies = append(l.Bodies, describe(w))
	}
	for _, w := range tables(testFileSchema) {
		l.TestBodies = append(l.TestBodies, describe(w))
	}
	return l
}

// tables are those of a file and of all that may be in it, each before those of
// its blocks.
func tables(file *lang.Schema) []*lang.Schema {
	var all []*lang.Schema
	var visit func(w *lang.Schema)
	visit = func(w *lang.Schema) {
		if w == nil || slices.Contains(all, w) {
			return
		}
		all = append(all, w)
		for _, b := range w.Blocks {
			visit(b.Body)
			if b.Name == "trigger" {
				for _, kind := range keys(triggerKinds) {
					visit(triggerKinds[kind])
				}
			}
		}
	}
	visit(file)
	return all
}

// idOf is a table's name: its title without article and "block".
func idOf(w *lang.Schema) string {
	_, id, _ := strings.Cut(w.Title, " ")
	return strings.TrimSuffix(id, " block")
}

func describe(w *lang.Schema) *Body {
	body := &Body{Name: idOf(w), Arguments: []Argument{}, Blocks: []Block{}}
	for _, a := range w.Arguments {
		described := Argument{Name: a.Name, Later: a.Later}
		if !a.Later {
			described = Argument{a.Name, string(a.Kind), a.Bounds, a.OneOf, lang.Phases[a.Phase], a.Required, a.Default, a.About, false}
		}
		body.Arguments = append(body.Arguments, described)
	}
	for _, b := range w.Blocks {
		described := Block{Name: b.Name, Labels: b.Labels, Once: b.Single, About: b.About, Later: b.Later}
		if b.Body != nil {
			described.Body = idOf(b.Body)
		}
		if b.Name == "trigger" {
			described.Kinds = triggerForms()
		}
		body.Blocks = append(body.Blocks, described)
	}
	return body
}

func triggerForms() []Kind {
	var forms []Kind
	for _, label := range keys(triggerKinds) {
		if w := triggerKinds[label]; w != nil {
			forms = append(forms, Kind{Label: label, Body: idOf(w)})
			continue
		}
		forms = append(forms, Kind{Label: label, Later: true})
	}
	return forms
}

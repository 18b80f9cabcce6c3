package lang

import (
	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

// Argument is a word of the form name = expression. One of a later version needs
// a name only.
type Argument struct {
	Name     string
	Phase    Phase
	Kind     Kind
	Bounds   string   // of a number: "from 1 to 100"
	OneOf    []string // the strings that it may be; any without them
	Required bool
	Either   bool   // required, unless another one is in its place
	Default  string // what holds without it: a value as it is written, or a few words
	About    string // what it is for, in one line
	Later    bool   // known to the full language, not to this version
}

// Block is a word of the form name "label" { … }.
type Block struct {
	Name   string
	Labels []string
	Body   *Schema // nil for later ones and for free attributes
	Single bool    // at most one in its parent
	About  string  // what it declares, in one line
	Later  bool
}

// Schema is what may be written in one kind of block. The tables below are the
// whole language, including what comes later.
type Schema struct {
	Title     string // in messages: "a task block"
	Arguments []Argument
	Blocks    []Block

	// Foreign are words that other tools have here, with what this language has
	// instead, in a sentence.
	Foreign map[string]string
}

// hint advises about a name that the schema does not have.
func (w *Schema) hint(name string, known []string) string {
	if instead := w.Foreign[name]; instead != "" {
		return " " + instead
	}
	return diag.DidYouMean(name, "", known)
}

func (w *Schema) Argument(name string) *Argument {
	for i := range w.Arguments {
		if w.Arguments[i].Name == name {
			return &w.Arguments[i]
		}
	}
	return nil
}

// Block is the block of that name, or nil.
func (w *Schema) Block(name string) *Block {
	for i := range w.Blocks {
		if w.Blocks[i].Name == name {
			return &w.Blocks[i]
		}
	}
	return nil
}

// Names lists the names of this version.
func (w *Schema) Names() (arguments, blocks []string) {
	for _, a := range w.Arguments {
		if !a.Later {
			arguments = append(arguments, a.Name)
		}
	}
	for _, b := range w.Blocks {
		if !b.Later {
			blocks = append(blocks, b.Name)
		}
	}
	return arguments, blocks
}

// hclSchema is the form of a table that hcl reads with. It contains later ones too,
// so that they are distinguished from unknown ones.
func (w *Schema) hclSchema() *hcl.BodySchema {
	s := new(hcl.BodySchema)
	for _, a := range w.Arguments {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: a.Name})
	}
	for _, b := range w.Blocks {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: b.Name, LabelNames: b.Labels})
	}
	return s
}

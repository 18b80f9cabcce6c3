package lang

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

// Content is what one block holds, sorted out by its schema: nothing in
// it is unknown, of a later version, or twice where once is allowed.
type Content struct {
	Args   map[string]*hcl.Attribute
	Blocks map[string][]*hcl.Block
	At     hcl.Range // the block's header
}

// Arg is the named argument, or nil.
func (c *Content) Arg(name string) *hcl.Attribute { return c.Args[name] }

// One is the only block of that name, or nil.
func (c *Content) One(name string) *hcl.Block {
	if blocks := c.Blocks[name]; len(blocks) > 0 {
		return blocks[0]
	}
	return nil
}

// Decode sorts out a body. What cannot be used is reported and left out.
func Decode(r *diag.Report, body hcl.Body, w *Schema, at hcl.Range) *Content {
	c := &Content{Args: map[string]*hcl.Attribute{}, Blocks: map[string][]*hcl.Block{}, At: at}
	var found *hcl.BodyContent
	var diags hcl.Diagnostics
	if native, ok := body.(*hclsyntax.Body); ok {
		reportUnknown(r, native, w)
		found, _, diags = body.PartialContent(w.hclSchema())
	} else {
		found, diags = body.Content(w.hclSchema())
	}
	for _, d := range diags {
		rule := diag.RuleStructure
		if d.Summary == "Extraneous JSON object property" {
			rule = diag.RuleUnknownArgument
		}
		r.Take(rule, hcl.Diagnostics{d})
	}
	for _, a := range found.Attributes {
		if w.Argument(a.Name).Later {
			NotYet(r, a.Name, w.Title, a.NameRange)
			continue
		}
		c.Args[a.Name] = a
	}
	for _, b := range found.Blocks {
		decodeBlock(r, c, w, b)
	}
	for _, a := range w.Arguments {
		if _, given := found.Attributes[a.Name]; a.Required && !given && !Misused(body, a.Name) {
			r.Add(diag.RuleMissing, at, "Missing argument", "%s needs the argument %q (%s): write %s = …", diag.Sentence(w.Title), a.Name, a.About, a.Name)
		}
	}
	return c
}

func decodeBlock(r *diag.Report, c *Content, w *Schema, b *hcl.Block) {
	word := w.Block(b.Type)
	switch {
	case word.Later:
		NotYet(r, b.Type, w.Title, b.TypeRange)
	case word.Single && len(c.Blocks[b.Type]) > 0:
		first := c.Blocks[b.Type][0].DefRange
		r.Add(diag.RuleDuplicate, b.DefRange, "Duplicate block", "There may be only one %s block here, and the first is at %s. Put the two together.", b.Type, diag.Place(first))
	default:
		c.Blocks[b.Type] = append(c.Blocks[b.Type], b)
	}
}

func NotYet(r *diag.Report, word, where string, at hcl.Range) {
	r.Add(diag.RuleLater, at, "Not part of this version",
		"%q in %s is not part of this version of flowhost: it belongs to the flow language, and a later version knows it. Leave it out for now.", word, where)
}

// Misused reports whether a native body holds a block in place of an argument,
// which has its own diagnostic.
func Misused(body hcl.Body, name string) bool {
	native, ok := body.(*hclsyntax.Body)
	return ok && slices.ContainsFunc(native.Blocks, func(b *hclsyntax.Block) bool { return b.Type == name })
}

// reportUnknown reports what no table holds, and what is written in the other
// form.
func reportUnknown(r *diag.Report, body *hclsyntax.Body, w *Schema) {
	arguments, blocks := w.Names()
	for _, a := range body.Attributes {
		switch {
		case w.Argument(a.Name) != nil:
		case w.Block(a.Name) != nil:
			r.Add(diag.RuleBlockWithEquals, a.NameRange, "A block is written without =",
				"%q is a block in %s: write %s { … } without the equals sign.", a.Name, w.Title, header(w.Block(a.Name)))
		default:
			r.Add(diag.RuleUnknownArgument, a.NameRange, "Unknown argument",
				"%s has no argument %q.%s", diag.Sentence(w.Title), a.Name, w.hint(a.Name, slices.Concat(arguments, blocks)))
		}
	}
	for _, b := range body.Blocks {
		switch {
		case w.Block(b.Type) != nil:
		case w.Argument(b.Type) != nil:
			r.Add(diag.RuleArgumentAsBlock, b.TypeRange, "An argument is written with =",
				"%q is an argument in %s: write %s = … with an equals sign.", b.Type, w.Title, b.Type)
		default:
			r.Add(diag.RuleUnknownBlock, b.TypeRange, "Unknown block",
				"%s has no block %q.%s", diag.Sentence(w.Title), b.Type, w.hint(b.Type, blocks))
		}
	}
}

// Attributes reads a body whose arguments may have any names, in order of the file.
func Attributes(r *diag.Report, body hcl.Body, title string) []*hcl.Attribute {
	if native, ok := body.(*hclsyntax.Body); ok {
		for _, b := range native.Blocks {
			r.Add(diag.RuleArgumentAsBlock, b.TypeRange, "An argument is written with =", "%s holds arguments only: write %s = … with an equals sign.", diag.Sentence(title), b.Type)
		}
	}
	attrs, diags := body.JustAttributes()
	if _, native := body.(*hclsyntax.Body); !native {
		r.Take(diag.RuleStructure, diags)
	}
	out := make([]*hcl.Attribute, 0, len(attrs))
	for _, a := range attrs {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hcl.Attribute) int { return a.Range.Start.Byte - b.Range.Start.Byte })
	return out
}

func header(b *Block) string {
	h := b.Name
	for _, label := range b.Labels {
		h += ` "` + label + `"`
	}
	return h
}

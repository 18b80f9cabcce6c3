package flows

import (
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

// content is what one block holds, sorted out by its table of words: nothing in
// it is unknown, of a later version, or twice where once is allowed.
type content struct {
	args   map[string]*hcl.Attribute
	blocks map[string][]*hcl.Block
	at     hcl.Range // the block's header
}

// arg is the named argument, or nil.
func (c *content) arg(name string) *hcl.Attribute { return c.args[name] }

// one is the only block of that name, or nil.
func (c *content) one(name string) *hcl.Block {
	if blocks := c.blocks[name]; len(blocks) > 0 {
		return blocks[0]
	}
	return nil
}

// decodeBody sorts out a body. What cannot be used is reported and left out.
func decodeBody(r *diag.Report, body hcl.Body, w *words, at hcl.Range) *content {
	c := &content{args: map[string]*hcl.Attribute{}, blocks: map[string][]*hcl.Block{}, at: at}
	var found *hcl.BodyContent
	var diags hcl.Diagnostics
	if native, ok := body.(*hclsyntax.Body); ok {
		unknownWords(r, native, w)
		found, _, diags = body.PartialContent(w.schema())
	} else {
		found, diags = body.Content(w.schema())
	}
	for _, d := range diags {
		rule := RuleStructure
		if d.Summary == "Extraneous JSON object property" {
			rule = RuleUnknownArgument
		}
		r.Take(rule, hcl.Diagnostics{d})
	}
	for _, a := range found.Attributes {
		if w.argument(a.Name).later {
			notYet(r, a.Name, w.title, a.NameRange)
			continue
		}
		c.args[a.Name] = a
	}
	for _, b := range found.Blocks {
		decodeBlock(r, c, w, b)
	}
	for _, a := range w.arguments {
		if _, given := found.Attributes[a.name]; a.required && !given && !misused(body, a.name) {
			r.Add(RuleMissing, at, "Missing argument", "%s needs the argument %q (%s): write %s = …", diag.Sentence(w.title), a.name, a.about, a.name)
		}
	}
	return c
}

func decodeBlock(r *diag.Report, c *content, w *words, b *hcl.Block) {
	word := w.block(b.Type)
	switch {
	case word.later:
		notYet(r, b.Type, w.title, b.TypeRange)
	case word.single && len(c.blocks[b.Type]) > 0:
		first := c.blocks[b.Type][0].DefRange
		r.Add(RuleDuplicate, b.DefRange, "Duplicate block", "There may be only one %s block here, and the first is at %s. Put the two together.", b.Type, diag.Place(first))
	default:
		c.blocks[b.Type] = append(c.blocks[b.Type], b)
	}
}

func notYet(r *diag.Report, word, where string, at hcl.Range) {
	r.Add(RuleLater, at, "Not part of this version",
		"%q in %s is not part of this version of flowhost: it belongs to the flow language, and a later version knows it. Leave it out for now.", word, where)
}

// misused reports whether a native body holds a block in place of an argument,
// which has its own diagnostic.
func misused(body hcl.Body, name string) bool {
	native, ok := body.(*hclsyntax.Body)
	return ok && slices.ContainsFunc(native.Blocks, func(b *hclsyntax.Block) bool { return b.Type == name })
}

// unknownWords reports what no table holds, and what is written in the other
// form.
func unknownWords(r *diag.Report, body *hclsyntax.Body, w *words) {
	arguments, blocks := w.names()
	for _, a := range body.Attributes {
		switch {
		case w.argument(a.Name) != nil:
		case w.block(a.Name) != nil:
			r.Add(RuleBlockWithEquals, a.NameRange, "A block is written without =",
				"%q is a block in %s: write %s { … } without the equals sign.", a.Name, w.title, header(w.block(a.Name)))
		default:
			r.Add(RuleUnknownArgument, a.NameRange, "Unknown argument",
				"%s has no argument %q.%s", diag.Sentence(w.title), a.Name, diag.DidYouMean(a.Name, "", slices.Concat(arguments, blocks)))
		}
	}
	for _, b := range body.Blocks {
		switch {
		case w.block(b.Type) != nil:
		case w.argument(b.Type) != nil:
			r.Add(RuleArgumentAsBlock, b.TypeRange, "An argument is written with =",
				"%q is an argument in %s: write %s = … with an equals sign.", b.Type, w.title, b.Type)
		default:
			r.Add(RuleUnknownBlock, b.TypeRange, "Unknown block",
				"%s has no block %q.%s", diag.Sentence(w.title), b.Type, diag.DidYouMean(b.Type, "", blocks))
		}
	}
}

// schema is the form of a table that hcl reads with. It holds later words too,
// so that they are told apart from unknown ones.
func (w *words) schema() *hcl.BodySchema {
	s := new(hcl.BodySchema)
	for _, a := range w.arguments {
		s.Attributes = append(s.Attributes, hcl.AttributeSchema{Name: a.name})
	}
	for _, b := range w.blocks {
		s.Blocks = append(s.Blocks, hcl.BlockHeaderSchema{Type: b.name, LabelNames: b.labels})
	}
	return s
}

// freeAttributes reads a body whose arguments may have any names, in order of the file.
func freeAttributes(r *diag.Report, body hcl.Body, title string) []*hcl.Attribute {
	if native, ok := body.(*hclsyntax.Body); ok {
		for _, b := range native.Blocks {
			r.Add(RuleArgumentAsBlock, b.TypeRange, "An argument is written with =", "%s holds arguments only: write %s = … with an equals sign.", diag.Sentence(title), b.Type)
		}
	}
	attrs, diags := body.JustAttributes()
	if _, native := body.(*hclsyntax.Body); !native {
		r.Take(RuleStructure, diags)
	}
	out := make([]*hcl.Attribute, 0, len(attrs))
	for _, a := range attrs {
		out = append(out, a)
	}
	slices.SortFunc(out, func(a, b *hcl.Attribute) int { return a.Range.Start.Byte - b.Range.Start.Byte })
	return out
}

func header(b *block) string {
	h := b.name
	for _, label := range b.labels {
		h += ` "` + label + `"`
	}
	return h
}

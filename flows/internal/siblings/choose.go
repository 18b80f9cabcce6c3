package siblings

import (
	"bytes"
	"slices"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"

	"github.com/flowhost/flowhost/flows/internal/syntax"
)

// File is a flow file. Its name decides the syntax.
type File struct {
	Name  string
	Bytes []byte
}

// Choice is what the files that are loaded need of others.
type Choice struct {
	Files     []File            // with what is needed, in the order of the others
	Variables map[string]bool   // that the others declare, needed or not
	Unread    []hcl.Diagnostics // of others that cannot be parsed, by file
	Missing   bool              // something that is needed is in no file that can be parsed
}

// name is what a block declares, and how others refer to it.
type name struct{ kind, name string }

// item is a part of a file that is needed or not.
type item struct {
	file     int
	at       hcl.Range
	declares name
	needs    []name
	needed   bool
}

// Choose looks at the references of files and gives what they need of the others. Without
// a syntax tree of their own there is nothing to choose.
func Choose(own, others []File) Choice {
	c := &chooser{declared: map[name]bool{}, offers: map[name][]*item{}, choice: Choice{Variables: map[string]bool{}}}
	for _, f := range own {
		if !c.read(f) {
			return Choice{}
		}
	}
	for i, f := range others {
		c.index(i, f)
	}
	if !c.declared[defaults] {
		for _, it := range c.offers[defaults] {
			c.keep(it)
		}
	}
	for len(c.open) > 0 {
		next := c.open[len(c.open)-1]
		c.open = c.open[:len(c.open)-1]
		c.find(next)
	}
	c.write(others)
	return c.choice
}

type chooser struct {
	declared map[name]bool    // by the files themselves
	offers   map[name][]*item // by the others
	items    []*item          // all of them
	frames   [][]hcl.Range    // by file: what is kept around items
	open     []name           // needed and not found yet
	choice   Choice
}

// read notes what a file declares and needs.
func (c *chooser) read(f File) bool {
	parsed, diags := syntax.ParseFile(f.Bytes, f.Name)
	if diags.HasErrors() {
		return false
	}
	body, native := parsed.Body.(*hclsyntax.Body)
	if !native {
		for _, n := range namesInJSON(f.Bytes) {
			c.declared[n] = true
		}
		c.open = append(c.open, needsOfJSON(f.Bytes)...)
		return true
	}
	for _, it := range itemsOf(body, 0) {
		c.declared[it.declares] = true
	}
	for _, local := range localsWithin(body) {
		c.declared[local] = true
	}
	c.open = append(c.open, needsOf(body)...)
	return true
}

// index notes what another file offers. One in the JSON syntax is taken whole.
func (c *chooser) index(i int, f File) {
	c.frames = append(c.frames, nil)
	parsed, diags := syntax.ParseFile(f.Bytes, f.Name)
	if diags.HasErrors() {
		c.choice.Unread = append(c.choice.Unread, diags)
		return
	}
	body, native := parsed.Body.(*hclsyntax.Body)
	if native {
		c.frames[i] = framesOf(body)
		for _, it := range itemsOf(body, i) {
			c.offer(it)
		}
		return
	}
	whole := hcl.Range{Filename: f.Name, Start: hcl.InitialPos, End: hcl.Pos{Byte: len(f.Bytes)}}
	needs := needsOfJSON(f.Bytes)
	for _, n := range namesInJSON(f.Bytes) {
		c.offer(&item{file: i, at: whole, declares: n, needs: needs})
	}
}

func (c *chooser) offer(it *item) {
	c.items = append(c.items, it)
	c.offers[it.declares] = append(c.offers[it.declares], it)
	if it.declares.kind == "var" {
		c.choice.Variables[it.declares.name] = true
	}
}

func (c *chooser) find(n name) {
	offers := c.offers[n]
	switch {
	case c.declared[n]:
	case len(offers) == 0:
		c.choice.Missing = true
	}
	for _, it := range offers {
		if !c.declared[n] {
			c.keep(it)
		}
	}
}

func (c *chooser) keep(it *item) {
	if !it.needed {
		it.needed = true
		c.open = append(c.open, it.needs...)
	}
}

// write makes the files that hold what is needed.
func (c *chooser) write(others []File) {
	for i, f := range others {
		var kept []hcl.Range
		for _, it := range c.items {
			if it.file == i && it.needed {
				kept = append(kept, it.at)
			}
		}
		if kept != nil {
			c.choice.Files = append(c.choice.Files, File{Name: f.Name, Bytes: only(f.Bytes, slices.Concat(kept, c.frames[i]))})
		}
	}
}

// only is a file with everything but some ranges blank.
func only(src []byte, kept []hcl.Range) []byte {
	out := bytes.Repeat([]byte{' '}, len(src))
	for i, b := range src {
		if b == '\n' || b == '\r' {
			out[i] = b
		}
	}
	for _, at := range kept {
		copy(out[at.Start.Byte:at.End.Byte], src[at.Start.Byte:at.End.Byte])
	}
	return out
}

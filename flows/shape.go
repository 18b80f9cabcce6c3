package flows

import (
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

// shape describes the JSON values that can stand in a place. It may describe more
// than there are, never fewer: what cannot be known is left open, so that a shape
// never speaks against a value that is right. Shapes of recursive types refer to
// themselves. A shape is not changed once it is made.
type shape struct {
	kinds kinds

	whole    bool     // numbers have no fraction
	fraction bool     // numbers have one: of a value that is known
	words    []string // the only texts there are; nil for any
	named    bool     // the words are those of a schema or of the language, not of values

	fields   map[string]*shape // of objects
	required []string          // fields that are always there
	rest     *shape            // fields that are not named; nil for anything
	closed   bool              // there are none but the named ones

	items *shape // of lists; nil for anything
	sets  sets   // whether lists are sets of HCL, which only fan-outs tell apart
}

// sets says which of the values that are lists in JSON are sets in HCL.
type sets uint8

const (
	noSets   sets = iota // none of them
	someSets             // perhaps some
	onlySets             // all of them
)

// kinds is a set of the kinds of JSON values.
type kinds uint8

const (
	kindNull kinds = 1 << iota
	kindBool
	kindNumber
	kindString
	kindList
	kindObject

	allKinds = kindNull | kindBool | kindNumber | kindString | kindList | kindObject
)

var kindNames = []struct {
	bit          kinds
	name, schema string
}{
	{kindBool, "bool", "boolean"},
	{kindNumber, "number", "number"},
	{kindString, "string", "string"},
	{kindList, "list", "array"},
	{kindObject, "object", "object"},
	{kindNull, "null", "null"},
}

// String spells the kinds for messages: "a number", "a string or an object".
func (k kinds) String() string {
	var names []string
	for _, n := range kindNames {
		switch {
		case k&n.bit == 0:
		case n.bit == kindNull:
			names = append(names, n.name)
		case n.bit == kindObject:
			names = append(names, "an "+n.name)
		default:
			names = append(names, "a "+n.name)
		}
	}
	return diag.Join(names, "or")
}

func openShape() *shape         { return &shape{kinds: allKinds} }
func ofKind(k kinds) *shape     { return &shape{kinds: k} }
func listOf(item *shape) *shape { return &shape{kinds: kindList, items: item} }

// present is the kinds of values that are not null. Whatever is null fits
// everywhere: which values are, nobody can know before a run.
func (s *shape) present() kinds { return s.kinds &^ kindNull }

// open reports whether nothing is known.
func (s *shape) open() bool {
	return s.kinds == allKinds && !s.structured() && s.items == nil && s.words == nil
}

// structured reports whether anything is known of objects.
func (s *shape) structured() bool {
	return s.fields != nil || s.closed || s.rest != nil || s.required != nil
}

// field is what a name gives in a value that is an object. It is nil when there
// can be none.
func (s *shape) field(name string) *shape {
	switch f := s.fields[name]; {
	case f != nil:
		return f
	case s.closed:
		return nil
	case s.rest != nil:
		return s.rest
	}
	return openShape()
}

// item is what an element of a list is.
func (s *shape) item() *shape {
	if s.items == nil {
		return openShape()
	}
	return s.items
}

// union describes what either of two shapes does. Neither needs to be filled in
// below its own level.
func union(a, b *shape) *shape {
	if a == b {
		return a
	}
	u := &shape{kinds: a.kinds | b.kinds}
	numbers := [2]bool{a.kinds&kindNumber != 0, b.kinds&kindNumber != 0}
	u.whole = (a.whole || !numbers[0]) && (b.whole || !numbers[1])
	if a.kinds&kindString == 0 {
		u.words, u.named = b.words, b.named
	} else if b.kinds&kindString == 0 {
		u.words, u.named = a.words, a.named
	} else if a.words != nil && b.words != nil {
		u.words, u.named = slices.Concat(a.words, b.words), a.named && b.named
	}
	switch {
	case a.kinds&kindObject == 0:
		u.takeObject(b)
	case b.kinds&kindObject == 0:
		u.takeObject(a)
	}
	switch {
	case a.kinds&kindList == 0:
		u.items, u.sets = b.items, b.sets
	case b.kinds&kindList == 0:
		u.items, u.sets = a.items, a.sets
	default:
		if a.items == b.items {
			u.items = a.items
		}
		if u.sets = a.sets; a.sets != b.sets {
			u.sets = someSets
		}
	}
	return u
}

// unionOf describes what any of the shapes does; nil for none. Halves keep it from
// copying the words of the first for each of the others.
func unionOf(all []*shape) *shape {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	half := len(all) / 2
	return union(unionOf(all[:half]), unionOf(all[half:]))
}

func (s *shape) takeObject(from *shape) {
	s.fields, s.required, s.rest, s.closed = from.fields, from.required, from.rest, from.closed
}

// narrowed is what both shapes describe, or more than that.
func narrowed(s, by *shape) *shape {
	if s.kinds&by.kinds == 0 {
		return openShape() // nothing can be right, or this package does not understand it
	}
	out := *s
	out.kinds &= by.kinds
	if !s.structured() {
		out.takeObject(by)
	}
	if s.items == nil {
		out.items = by.items
	}
	if s.words == nil {
		out.words, out.named = by.words, by.named
	}
	out.whole = s.whole || by.whole
	return &out
}

// shapeOfType describes the values of a type. They may be null, also inside.
func shapeOfType(t cty.Type) *shape {
	switch {
	case t == cty.String:
		return ofKind(kindString | kindNull)
	case t == cty.Number:
		return ofKind(kindNumber | kindNull)
	case t == cty.Bool:
		return ofKind(kindBool | kindNull)
	case t.IsListType():
		return &shape{kinds: kindList | kindNull, items: shapeOfType(t.ElementType())}
	case t.IsSetType():
		return &shape{kinds: kindList | kindNull, items: shapeOfType(t.ElementType()), sets: onlySets}
	case t.IsTupleType():
		return ofKind(kindList | kindNull)
	case t.IsMapType():
		return &shape{kinds: kindObject | kindNull, rest: shapeOfType(t.ElementType())}
	case t.IsObjectType():
		s := &shape{kinds: kindObject | kindNull, fields: map[string]*shape{}, closed: true}
		for _, name := range keys(t.AttributeTypes()) {
			s.fields[name] = shapeOfType(t.AttributeType(name))
			s.required = append(s.required, name)
		}
		return s
	}
	return openShape()
}

// shapeOfValue describes one value, as far as it is known. Sensitive texts are
// not repeated.
func shapeOfValue(v cty.Value) *shape {
	secret := v.IsMarked()
	v, _ = v.Unmark()
	t := v.Type()
	switch {
	case !v.IsKnown():
		return shapeOfType(t)
	case v.IsNull():
		return ofKind(kindNull)
	case t == cty.String && !secret:
		return &shape{kinds: kindString, words: []string{v.AsString()}}
	case t == cty.String:
		return ofKind(kindString)
	case t == cty.Number:
		whole := v.AsBigFloat().IsInt()
		return &shape{kinds: kindNumber, whole: whole, fraction: !whole}
	case t == cty.Bool:
		return ofKind(kindBool)
	case t.IsObjectType() || t.IsMapType():
		s := &shape{kinds: kindObject, fields: map[string]*shape{}, closed: true}
		for name, field := range v.AsValueMap() {
			s.fields[name] = shapeOfValue(field)
			s.required = append(s.required, name)
		}
		slices.Sort(s.required)
		return s
	case t.IsTupleType() || t.IsListType():
		return listOf(shapeOfItems(v))
	case t.IsSetType():
		return &shape{kinds: kindList, items: shapeOfItems(v), sets: onlySets}
	}
	return openShape()
}

func shapeOfItems(list cty.Value) *shape {
	var all []*shape
	for it := list.ElementIterator(); it.Next(); {
		_, item := it.Element()
		all = append(all, shapeOfValue(item))
	}
	return unionOf(all)
}

// Bounds of how much of a type is spelt out: types may be recursive, and of one
// with a few fields of its own kind there are millions within six levels.
const (
	maxTypeDepth = 6
	maxTypeText  = 4 << 10 // bytes, about
)

const elided = "…"

// text spells a shape as the type constraints of variables are spelt.
func (s *shape) text() string {
	w := typeWriter{left: maxTypeText}
	return w.text(s, 0)
}

// typeWriter spells one type, as long as there is room.
type typeWriter struct{ left int }

func (w *typeWriter) text(s *shape, depth int) string {
	if w.left <= 0 {
		return elided
	}
	var alternatives []string
	for _, n := range kindNames {
		switch {
		case s.present()&n.bit == 0:
		case n.bit == kindList && s.items != nil && !s.items.open():
			alternatives = append(alternatives, "list("+w.nested(s.items, depth)+")")
		case n.bit == kindString && s.words != nil:
			alternatives = w.words(alternatives, s.words)
		case n.bit == kindObject && s.structured():
			alternatives = append(alternatives, w.object(s, depth))
		default:
			w.left -= len(n.name)
			alternatives = append(alternatives, n.name)
		}
	}
	switch {
	case s.open() || s.present() == allKinds&^kindNull && !s.structured() && s.items == nil:
		return "any"
	case s.kinds&kindNull != 0:
		alternatives = append(alternatives, "null")
	}
	return strings.Join(alternatives, " | ")
}

func (w *typeWriter) words(alternatives, words []string) []string {
	for _, word := range words {
		if w.left <= 0 {
			return append(alternatives, elided)
		}
		w.left -= len(word)
		alternatives = append(alternatives, strconv.Quote(word))
	}
	return alternatives
}

func (w *typeWriter) nested(s *shape, depth int) string {
	if depth >= maxTypeDepth {
		w.left -= len(elided)
		return elided
	}
	return w.text(s, depth+1)
}

func (w *typeWriter) object(s *shape, depth int) string {
	if len(s.fields) == 0 && !s.closed {
		return "map(" + w.nested(s.field(""), depth) + ")"
	}
	var fields []string
	for _, name := range keys(s.fields) {
		if w.left <= 0 {
			break
		}
		w.left -= len(name)
		typ := w.nested(s.fields[name], depth)
		if !slices.Contains(s.required, name) {
			typ = "optional(" + typ + ")"
		}
		fields = append(fields, name+" = "+typ)
	}
	if !s.closed || len(fields) < len(s.fields) {
		fields = append(fields, elided)
	}
	if len(fields) == 0 {
		return "object({})"
	}
	return "object({ " + strings.Join(fields, ", ") + " })"
}

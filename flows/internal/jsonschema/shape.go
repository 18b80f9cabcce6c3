package jsonschema

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/zclconf/go-cty/cty"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

// Shape describes the JSON values that can be in a place. It may describe more
// than there are, never fewer: what cannot be known is left open, so that a shape
// never speaks against a value that is right. Shapes of recursive types refer to
// themselves. A shape is not changed once it is made.
type Shape struct {
	Kinds Kinds

	Integer  bool     // numbers have no fraction
	Fraction bool     // numbers have one: of a value that is known
	Enum     []string // the only strings there are; nil for any
	Declared bool     // the strings are those of a schema or of the language, not of values

	Fields   map[string]*Shape // of objects
	Required []string          // fields that are always there
	Rest     *Shape            // fields that are not named; nil for anything
	Closed   bool              // there are none but the named ones
	AnyCase  bool              // the guest finds them without regard to case

	items *Shape // of lists; nil for anything
	Sets  sets   // whether lists are sets of HCL, which only fan-outs distinguish
}

// sets is which of the values that are lists in JSON are sets in HCL.
type sets uint8

const (
	NoSets   sets = iota // none of them
	someSets             // perhaps some
	OnlySets             // all of them
)

// Kinds is a set of the kinds of JSON values.
type Kinds uint8

const (
	Null Kinds = 1 << iota
	Bool
	Number
	String
	List
	Object

	AllKinds = Null | Bool | Number | String | List | Object
)

var kindNames = []struct {
	bit          Kinds
	name, schema string
}{
	{Bool, "bool", "boolean"},
	{Number, "number", "number"},
	{String, "string", "string"},
	{List, "list", "array"},
	{Object, "object", "object"},
	{Null, "null", "null"},
}

// String spells the kinds for messages: "a number", "a string or an object".
func (k Kinds) String() string {
	var names []string
	for _, n := range kindNames {
		switch {
		case k&n.bit == 0:
		case n.bit == Null:
			names = append(names, n.name)
		case n.bit == Object:
			names = append(names, "an "+n.name)
		default:
			names = append(names, "a "+n.name)
		}
	}
	return diag.Join(names, "or")
}

func Any() *Shape               { return &Shape{Kinds: AllKinds} }
func OfKind(k Kinds) *Shape     { return &Shape{Kinds: k} }
func ListOf(item *Shape) *Shape { return &Shape{Kinds: List, items: item} }

// Present is the kinds of values that are not null. Whatever is null fits
// everywhere: which values are, nobody can know before a run.
func (s *Shape) Present() Kinds { return s.Kinds &^ Null }

// Open reports whether nothing is known.
func (s *Shape) Open() bool {
	return s.Kinds == AllKinds && !s.structured() && s.items == nil && s.Enum == nil
}

// structured reports whether anything is known of objects.
func (s *Shape) structured() bool {
	return s.Fields != nil || s.Closed || s.Rest != nil || s.Required != nil
}

// Field is what a name gives in a value that is an object. It is nil when there
// can be none.
func (s *Shape) Field(name string) *Shape {
	switch f := s.Fields[s.FieldName(name)]; {
	case f != nil:
		return f
	case s.Closed:
		return nil
	case s.Rest != nil:
		return s.Rest
	}
	return Any()
}

// FieldName is the name with which the shape has the field that a guest takes for the
// given one.
func (s *Shape) FieldName(name string) string {
	if s.Fields[name] != nil || !s.AnyCase {
		return name
	}
	for _, other := range sortedKeys(s.Fields) {
		if strings.EqualFold(name, other) {
			return other
		}
	}
	return name
}

// Item is what an element of a list is.
func (s *Shape) Item() *Shape {
	if s.items == nil {
		return Any()
	}
	return s.items
}

// Union describes what either of two shapes does. Neither needs to be filled in
// below its own level.
func Union(a, b *Shape) *Shape {
	if a == b {
		return a
	}
	u := &Shape{Kinds: a.Kinds | b.Kinds}
	numbers := [2]bool{a.Kinds&Number != 0, b.Kinds&Number != 0}
	u.Integer = (a.Integer || !numbers[0]) && (b.Integer || !numbers[1])
	if a.Kinds&String == 0 {
		u.Enum, u.Declared = b.Enum, b.Declared
	} else if b.Kinds&String == 0 {
		u.Enum, u.Declared = a.Enum, a.Declared
	} else if a.Enum != nil && b.Enum != nil {
		u.Enum, u.Declared = slices.Concat(a.Enum, b.Enum), a.Declared && b.Declared
	}
	switch {
	case a.Kinds&Object == 0:
		u.takeObject(b)
	case b.Kinds&Object == 0:
		u.takeObject(a)
	}
	switch {
	case a.Kinds&List == 0:
		u.items, u.Sets = b.items, b.Sets
	case b.Kinds&List == 0:
		u.items, u.Sets = a.items, a.Sets
	default:
		if a.items == b.items {
			u.items = a.items
		}
		if u.Sets = a.Sets; a.Sets != b.Sets {
			u.Sets = someSets
		}
	}
	return u
}

// UnionOf describes what any of the shapes does; nil for none. Halves keep it from
// copying the strings of the first for each of the others.
func UnionOf(all []*Shape) *Shape {
	switch len(all) {
	case 0:
		return nil
	case 1:
		return all[0]
	}
	half := len(all) / 2
	return Union(UnionOf(all[:half]), UnionOf(all[half:]))
}

func (s *Shape) takeObject(from *Shape) {
	s.Fields, s.Required, s.Rest, s.Closed, s.AnyCase = from.Fields, from.Required, from.Rest, from.Closed, from.AnyCase
}

// narrowed is what both shapes describe, or more than that.
func narrowed(s, by *Shape) *Shape {
	if s.Kinds&by.Kinds == 0 {
		return Any() // nothing can be right, or this package does not understand it
	}
	out := *s
	out.Kinds &= by.Kinds
	if !s.structured() {
		out.takeObject(by)
	}
	if s.items == nil {
		out.items = by.items
	}
	if s.Enum == nil {
		out.Enum, out.Declared = by.Enum, by.Declared
	}
	out.Integer = s.Integer || by.Integer
	return &out
}

// FromType describes the values of a type. They may be null, also inside.
func FromType(t cty.Type) *Shape {
	switch {
	case t == cty.String:
		return OfKind(String | Null)
	case t == cty.Number:
		return OfKind(Number | Null)
	case t == cty.Bool:
		return OfKind(Bool | Null)
	case t.IsListType():
		return &Shape{Kinds: List | Null, items: FromType(t.ElementType())}
	case t.IsSetType():
		return &Shape{Kinds: List | Null, items: FromType(t.ElementType()), Sets: OnlySets}
	case t.IsTupleType():
		return OfKind(List | Null)
	case t.IsMapType():
		return &Shape{Kinds: Object | Null, Rest: FromType(t.ElementType())}
	case t.IsObjectType():
		s := &Shape{Kinds: Object | Null, Fields: map[string]*Shape{}, Closed: true}
		for _, name := range sortedKeys(t.AttributeTypes()) {
			s.Fields[name] = FromType(t.AttributeType(name))
			s.Required = append(s.Required, name)
		}
		return s
	}
	return Any()
}

// FromValue describes one value, as far as it is known. Sensitive strings are
// not repeated.
func FromValue(v cty.Value) *Shape {
	secret := v.IsMarked()
	v, _ = v.Unmark()
	t := v.Type()
	switch {
	case !v.IsKnown():
		return FromType(t)
	case v.IsNull():
		return OfKind(Null)
	case t == cty.String && !secret:
		return &Shape{Kinds: String, Enum: []string{v.AsString()}}
	case t == cty.String:
		return OfKind(String)
	case t == cty.Number:
		whole := v.AsBigFloat().IsInt()
		return &Shape{Kinds: Number, Integer: whole, Fraction: !whole}
	case t == cty.Bool:
		return OfKind(Bool)
	case t.IsObjectType() || t.IsMapType():
		s := &Shape{Kinds: Object, Fields: map[string]*Shape{}, Closed: true}
		for name, field := range v.AsValueMap() {
			s.Fields[name] = FromValue(field)
			s.Required = append(s.Required, name)
		}
		slices.Sort(s.Required)
		return s
	case t.IsTupleType() || t.IsListType():
		return ListOf(shapeOfItems(v))
	case t.IsSetType():
		return &Shape{Kinds: List, items: shapeOfItems(v), Sets: OnlySets}
	}
	return Any()
}

func shapeOfItems(list cty.Value) *Shape {
	var all []*Shape
	for it := list.ElementIterator(); it.Next(); {
		_, item := it.Element()
		all = append(all, FromValue(item))
	}
	return UnionOf(all)
}

// Bounds of how much of a type is spelled out: types may be recursive, and of one
// with a few recursive fields there are millions within six levels.
const (
	maxTypeDepth = 6
	maxTypeText  = 4 << 10 // bytes, about
)

const elided = "…"

// Text spells a shape as the type constraints of variables are spelled.
func (s *Shape) Text() string {
	w := typeWriter{left: maxTypeText}
	return w.text(s, 0)
}

// typeWriter spells one type, as long as there is room.
type typeWriter struct{ left int }

func (w *typeWriter) text(s *Shape, depth int) string {
	if w.left <= 0 {
		return elided
	}
	var alternatives []string
	for _, n := range kindNames {
		switch {
		case s.Present()&n.bit == 0:
		case n.bit == List && s.items != nil && !s.items.Open():
			alternatives = append(alternatives, "list("+w.nested(s.items, depth)+")")
		case n.bit == String && s.Enum != nil:
			alternatives = w.words(alternatives, s.Enum)
		case n.bit == Object && s.structured():
			alternatives = append(alternatives, w.object(s, depth))
		default:
			w.left -= len(n.name)
			alternatives = append(alternatives, n.name)
		}
	}
	switch {
	case s.Open() || s.Present() == AllKinds&^Null && !s.structured() && s.items == nil:
		return "any"
	case s.Kinds&Null != 0:
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

func (w *typeWriter) nested(s *Shape, depth int) string {
	if depth >= maxTypeDepth {
		w.left -= len(elided)
		return elided
	}
	return w.text(s, depth+1)
}

func (w *typeWriter) object(s *Shape, depth int) string {
	if len(s.Fields) == 0 && !s.Closed {
		return "map(" + w.nested(s.Field(""), depth) + ")"
	}
	var fields []string
	for _, name := range sortedKeys(s.Fields) {
		if w.left <= 0 {
			break
		}
		w.left -= len(name)
		typ := w.nested(s.Fields[name], depth)
		if !slices.Contains(s.Required, name) {
			typ = "optional(" + typ + ")"
		}
		fields = append(fields, name+" = "+typ)
	}
	if !s.Closed || len(fields) < len(s.Fields) {
		fields = append(fields, elided)
	}
	if len(fields) == 0 {
		return "object({})"
	}
	return "object({ " + strings.Join(fields, ", ") + " })"
}

// ConvertibleTo describes the values that can be converted to a type, which may be
// more than its own: a string may be a number, and an object may have more fields
// than are asked for.
func ConvertibleTo(t cty.Type) *Shape {
	switch {
	case t == cty.String:
		return OfKind(String | Number | Bool | Null)
	case t == cty.Number:
		return OfKind(Number | String | Null)
	case t == cty.Bool:
		return OfKind(Bool | String | Null)
	case t.IsListType() || t.IsSetType():
		return &Shape{Kinds: List | Null, items: ConvertibleTo(t.ElementType())}
	case t.IsTupleType():
		return OfKind(List | Null)
	case t.IsMapType():
		return &Shape{Kinds: Object | Null, Rest: ConvertibleTo(t.ElementType())}
	case t.IsObjectType():
		s := &Shape{Kinds: Object | Null, Fields: map[string]*Shape{}}
		for _, name := range sortedKeys(t.AttributeTypes()) {
			s.Fields[name] = ConvertibleTo(t.AttributeType(name))
			if !t.AttributeOptional(name) {
				s.Required = append(s.Required, name)
			}
		}
		return s
	}
	return Any()
}

// UnionOfKnown is the union of two shapes that are complete: of two objects whose fields
// are all known, those of the union are too.
func UnionOfKnown(a, b *Shape) *Shape {
	switch {
	case a == nil:
		return b
	case a.Present() != Object || b.Present() != Object || !a.Closed || !b.Closed:
		return Union(a, b)
	}
	u := &Shape{Kinds: a.Kinds | b.Kinds, Fields: map[string]*Shape{}, Closed: true}
	for name, field := range a.Fields {
		u.Fields[name] = field
	}
	for name, field := range b.Fields {
		if u.Fields[name] == nil {
			u.Fields[name] = field
		} else {
			u.Fields[name] = Union(u.Fields[name], field)
		}
	}
	for _, name := range a.Required {
		if slices.Contains(b.Required, name) {
			u.Required = append(u.Required, name)
		}
	}
	return u
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

package jsonschema

import (
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
)

// TypeText spells a JSON Schema as the types of variables are spelled, "list(string)"
// or "object({ id = string, note = optional(string) })". What the schema leaves
// open, and what this package does not understand of it, is "any".
func TypeText(schema json.RawMessage) string { return FromSchema(schema).Text() }

// AnyCase is the keyword at the root of a schema whose guest takes names of fields that
// differ in case for each other; the contract with guests has the same.
const AnyCase = "x-any-case"

// FromSchema describes the values that a JSON Schema (draft 2020-12, and what
// the earlier ones have in common with it) lets pass. Keywords that only narrow
// what others allow and that a shape cannot express are left out.
func FromSchema(schema json.RawMessage) *Shape {
	var root any
	if len(schema) == 0 || json.Unmarshal(schema, &root) != nil {
		return Any()
	}
	if m, ok := root.(map[string]any); ok {
		delete(m, "$id")
	}
	r := &schemaReader{root: root, known: map[string]*Shape{}, pending: map[*Shape]bool{}}
	if m, ok := root.(map[string]any); ok {
		r.anyCase = m[AnyCase] == true
	}
	return r.shape(root)
}

// schemaReader reads one document. References may be recursive: what they refer
// to is found in known before it is filled in.
type schemaReader struct {
	root    any
	known   map[string]*Shape // by reference
	pending map[*Shape]bool   // not filled in yet
	anyCase bool
}

func (r *schemaReader) shape(schema any) *Shape {
	m, ok := schema.(map[string]any)
	if !ok {
		return Any() // true, false or no schema
	}
	if m["$id"] != nil {
		return Any() // references inside mean another document
	}
	if ref, ok := m["$ref"].(string); ok {
		return r.reference(ref)
	}
	s := r.own(m)
	for _, word := range []string{"anyOf", "oneOf"} {
		if all, ok := m[word].([]any); ok && len(all) > 0 {
			s = narrowed(s, r.alternatives(all))
		}
	}
	if all, ok := m["allOf"].([]any); ok {
		for _, one := range all {
			s = narrowed(s, r.filled(one))
		}
	}
	return s
}

// own describes what a schema itself requires, without the schemas that it combines.
func (r *schemaReader) own(m map[string]any) *Shape {
	s := &Shape{Kinds: kindsOf(m)}
	s.Integer = isWhole(m["type"])
	s.constants(m)
	if s.Kinds&Object != 0 {
		r.object(m, s)
	}
	if items, ok := m["items"].(map[string]any); ok && m["prefixItems"] == nil {
		s.items = r.shape(items)
	}
	return s
}

func (r *schemaReader) object(m map[string]any, s *Shape) {
	s.AnyCase = r.anyCase
	if properties, ok := m["properties"].(map[string]any); ok {
		s.Fields = make(map[string]*Shape, len(properties))
		for name, property := range properties {
			s.Fields[name] = r.shape(property)
		}
	}
	s.Required = textsOf(m["required"])
	if m["patternProperties"] != nil {
		return
	}
	switch rest := m["additionalProperties"].(type) {
	case bool:
		s.Closed = !rest
	case map[string]any:
		s.Rest = r.shape(rest)
	}
}

// kindsOf reads the keyword type, and nullable of OpenAPI.
func kindsOf(m map[string]any) Kinds {
	var k Kinds
	switch t := m["type"].(type) {
	case string:
		k = kindOfName(t)
	case []any:
		for _, one := range t {
			name, _ := one.(string)
			k |= kindOfName(name)
		}
	}
	if k == 0 {
		return AllKinds
	}
	if m["nullable"] == true {
		k |= Null
	}
	return k
}

func kindOfName(name string) Kinds {
	if name == "integer" {
		return Number
	}
	for _, n := range kindNames {
		if n.schema == name {
			return n.bit
		}
	}
	return AllKinds
}

func isWhole(typ any) bool {
	list, ok := typ.([]any)
	if !ok {
		list = []any{typ}
	}
	whole := false
	for _, name := range list {
		if name == "number" {
			return false
		}
		whole = whole || name == "integer"
	}
	return whole
}

// constants reads enum and const.
func (s *Shape) constants(m map[string]any) {
	values, ok := m["enum"].([]any)
	if constant, has := m["const"]; has {
		values, ok = []any{constant}, true
	}
	if !ok || len(values) == 0 {
		return
	}
	var k Kinds
	var words []string
	for _, v := range values {
		k |= kindOfJSON(v)
		if word, ok := v.(string); ok {
			words = append(words, word)
		}
	}
	if s.Kinds&k == 0 {
		return
	}
	s.Kinds &= k
	s.Enum, s.Declared = words, words != nil
}

func kindOfJSON(v any) Kinds {
	switch v.(type) {
	case nil:
		return Null
	case bool:
		return Bool
	case float64:
		return Number
	case string:
		return String
	case []any:
		return List
	}
	return Object
}

func textsOf(v any) []string {
	list, _ := v.([]any)
	var out []string
	for _, one := range list {
		if text, ok := one.(string); ok {
			out = append(out, text)
		}
	}
	return out
}

func (r *schemaReader) alternatives(all []any) *Shape {
	shapes := make([]*Shape, len(all))
	for i, one := range all {
		shapes[i] = r.filled(one)
	}
	return UnionOf(shapes)
}

// filled is a shape that can be looked into at once. A schema that is an
// alternative of itself requires nothing.
func (r *schemaReader) filled(schema any) *Shape {
	s := r.shape(schema)
	if r.pending[s] {
		return Any()
	}
	return s
}

// reference follows a reference within the document; others are open.
func (r *schemaReader) reference(ref string) *Shape {
	if s := r.known[ref]; s != nil {
		return s
	}
	target, ok := r.find(ref)
	if !ok {
		return Any()
	}
	s := new(Shape)
	r.known[ref], r.pending[s] = s, true
	*s = *r.filled(target)
	delete(r.pending, s)
	return s
}

// find resolves a JSON pointer (RFC 6901) in the fragment of a reference.
func (r *schemaReader) find(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil, false
	}
	pointer, err := url.PathUnescape(pointer)
	if err != nil || pointer != "" && pointer[0] != '/' {
		return nil, false
	}
	at := r.root
	for i, part := range strings.Split(pointer, "/") {
		if i == 0 {
			continue
		}
		part = strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		switch v := at.(type) {
		case map[string]any:
			at, ok = v[part]
		case []any:
			n, err := strconv.Atoi(part)
			if ok = err == nil && n >= 0 && n < len(v); ok {
				at = v[n]
			}
		default:
			ok = false
		}
		if !ok {
			return nil, false
		}
	}
	return at, true
}

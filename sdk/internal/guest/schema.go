package guest

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/flowhost/flowhost/sdk/abi"
)

// direction is the way in which values of a type go: the decoder takes more than the
// encoder gives.
type direction int

const (
	taken  direction = iota // by a function: input
	given                   // by a function: output
	preset                  // into a value that has defaults: config
)

// schemaOf is the JSON Schema (draft 2020-12) of what encoding/json makes of a
// type, or makes a value of it from. It never states more than that: what has its
// own way into JSON is open.
func schemaOf(t reflect.Type, way direction) json.RawMessage {
	m := &schemaMaker{way: way, uses: map[reflect.Type]int{}, names: map[reflect.Type]string{}, defs: map[string]any{}}
	m.count(t)
	schema := m.schema(t)
	if len(m.defs) > 0 {
		schema["$defs"] = m.defs
	}
	if way != given && m.named {
		schema[abi.AnyCase] = true // encoding/json finds fields without regard to case
	}
	text, err := Encode(schema)
	if err != nil {
		return nil // not for maps of texts
	}
	return text
}

// schemaMaker makes one document. Named types that are used more than once, and so
// all recursive ones, are written once, below $defs.
type schemaMaker struct {
	way   direction
	uses  map[reflect.Type]int
	names map[reflect.Type]string // below $defs
	defs  map[string]any
	named bool // there are fields
}

// Types that implement these decide themselves what their JSON is.
var (
	marshaler       = reflect.TypeFor[json.Marshaler]()
	unmarshaler     = reflect.TypeFor[json.Unmarshaler]()
	textMarshaler   = reflect.TypeFor[encoding.TextMarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()

	timeType   = reflect.TypeFor[time.Time]()
	numberType = reflect.TypeFor[json.Number]()
)

// own is the schema of a type whose JSON does not follow from its kind.
func (m *schemaMaker) own(t reflect.Type) (map[string]any, bool) {
	whole, text := marshaler, textMarshaler
	if m.way != given {
		whole, text = unmarshaler, textUnmarshaler
	}
	pointer := reflect.PointerTo(t)
	switch {
	case t.Kind() == reflect.Pointer:
		return nil, false // as what it points to
	case t == timeType:
		return map[string]any{"type": "string", "format": "date-time"}, true
	case t == numberType, t.Kind() == reflect.Interface, t.Implements(whole), pointer.Implements(whole):
		return map[string]any{}, true
	case t.Implements(text), m.way != given && pointer.Implements(text):
		return map[string]any{"type": "string"}, true
	case pointer.Implements(text):
		return map[string]any{}, true // a text where the value has an address
	}
	return nil, false
}

// count finds out how often named types are used.
func (m *schemaMaker) count(t reflect.Type) {
	if _, own := m.own(t); own {
		return
	}
	if shared(t) {
		m.uses[t]++
		if m.uses[t] > 1 {
			return
		}
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		m.count(t.Elem())
	case reflect.Struct:
		for _, f := range fieldsOf(t) {
			m.count(f.typ)
		}
	}
}

// shared reports whether a type can be written once for all its uses.
func shared(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Array, reflect.Map, reflect.Pointer:
		return t.Name() != ""
	}
	return false
}

func (m *schemaMaker) schema(t reflect.Type) map[string]any {
	if s, own := m.own(t); own {
		return s
	}
	if m.uses[t] < 2 {
		return m.structure(t)
	}
	name, known := m.names[t]
	if !known {
		name = m.newName(t)
		m.names[t] = name
		m.defs[name] = m.structure(t)
	}
	return map[string]any{"$ref": "#/$defs/" + name}
}

// newName is a type's name with nothing that a reference would have to escape.
func (m *schemaMaker) newName(t reflect.Type) string {
	base := strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' {
			return r
		}
		return '_'
	}, t.Name())
	name := base
	for n := 2; m.taken(name); n++ {
		name = fmt.Sprintf("%s_%d", base, n)
	}
	return name
}

func (m *schemaMaker) taken(name string) bool {
	for _, other := range m.names {
		if other == name {
			return true
		}
	}
	return false
}

// structure is the schema that follows from a type's kind.
func (m *schemaMaker) structure(t reflect.Type) map[string]any {
	switch t.Kind() {
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Pointer:
		return nullable(m.schema(t.Elem()))
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return m.bytes(t.Elem())
		}
		return nullable(map[string]any{"type": "array", "items": m.schema(t.Elem())})
	case reflect.Array:
		return map[string]any{"type": "array", "items": m.schema(t.Elem())}
	case reflect.Map:
		return nullable(map[string]any{"type": "object", "additionalProperties": m.schema(t.Elem())})
	case reflect.Struct:
		return m.object(t)
	}
	if t.Kind() >= reflect.Int && t.Kind() <= reflect.Uintptr {
		return map[string]any{"type": "integer"}
	}
	return map[string]any{} // functions and channels: the encoder reports what is wrong
}

// bytes are base64, unless each has its own form.
func (m *schemaMaker) bytes(element reflect.Type) map[string]any {
	if _, own := m.own(element); own {
		return map[string]any{}
	}
	return map[string]any{"type": []string{"string", "null"}, "contentEncoding": "base64"}
}

func (m *schemaMaker) object(t reflect.Type) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range fieldsOf(t) {
		s := m.schema(f.typ)
		if f.quoted {
			s = quoted(f.typ)
		}
		properties[f.name] = s
		if m.requires(f) {
			required = append(required, f.name)
		}
	}
	s := map[string]any{"type": "object", "additionalProperties": false}
	if len(properties) > 0 {
		m.named = true
		s["properties"] = properties
	}
	if len(required) > 0 {
		slices.Sort(required)
		s["required"] = required
	}
	return s
}

// requires reports whether a field is always there. Those of a config have the
// defaults that are set before it is decoded.
func (m *schemaMaker) requires(f field) bool {
	switch m.way {
	case preset:
		return false
	case taken:
		return !f.optional && f.typ.Kind() != reflect.Pointer
	}
	return !f.optional
}

// quoted is a field with the option string.
func quoted(t reflect.Type) map[string]any {
	s := map[string]any{"type": "string"}
	if t.Kind() == reflect.Pointer {
		return nullable(s)
	}
	return s
}

func nullable(s map[string]any) map[string]any {
	switch t := s["type"].(type) {
	case string:
		s["type"] = []string{t, "null"}
		return s
	case []string:
		return s // it is already
	}
	if len(s) == 0 {
		return s
	}
	return map[string]any{"anyOf": []any{s, map[string]any{"type": "null"}}}
}

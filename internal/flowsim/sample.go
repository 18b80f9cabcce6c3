package flowsim

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"
)

// Sample makes a value that fits a JSON Schema, as far as types go: what it
// proposes itself (const, default, examples, enum), otherwise objects with all
// their properties, lists of as few items as may be, at least one, and texts and
// numbers that are as small as may be. It is null for a schema without constraints.
func Sample(schema json.RawMessage) json.RawMessage {
	var root any
	if json.Unmarshal(schema, &root) != nil {
		return json.RawMessage("null")
	}
	s := sampler{root: root, left: maxValues}
	out, err := json.Marshal(s.value(root, 0))
	if err != nil {
		return json.RawMessage("null")
	}
	return out
}

type sampler struct {
	root any
	left int // values that may still be made
}

// A schema may refer to itself: values are nested so deep, and there are so many of
// them.
const (
	maxSampled = 16
	maxValues  = 10_000
)

func (s *sampler) value(schema any, depth int) any {
	m, ok := schema.(map[string]any)
	if s.left--; !ok || depth > maxSampled || s.left < 0 {
		return nil
	}
	if ref, ok := m["$ref"].(string); ok {
		return s.value(s.find(ref), depth+1)
	}
	for _, word := range []string{"const", "default"} {
		if v, stated := m[word]; stated {
			return v
		}
	}
	for _, word := range []string{"examples", "enum"} {
		if list, ok := m[word].([]any); ok && len(list) > 0 {
			return list[0]
		}
	}
	for _, word := range []string{"oneOf", "anyOf"} {
		if list, ok := m[word].([]any); ok && len(list) > 0 {
			return s.value(list[0], depth+1)
		}
	}
	if list, ok := m["allOf"].([]any); ok {
		return s.all(m, list, depth)
	}
	return s.typed(m, depth)
}

// all puts the objects of several schemas together.
func (s *sampler) all(m map[string]any, list []any, depth int) any {
	whole, found := map[string]any{}, false
	for _, one := range append([]any{s.typed(m, depth)}, s.each(list, depth+1)...) {
		part, ok := one.(map[string]any)
		if !ok {
			if one != nil {
				return one
			}
			continue
		}
		found = true
		maps.Copy(whole, part)
	}
	if !found {
		return nil
	}
	return whole
}

func (s *sampler) each(list []any, depth int) []any {
	out := make([]any, len(list))
	for i, one := range list {
		out[i] = s.value(one, depth)
	}
	return out
}

func (s *sampler) typed(m map[string]any, depth int) any {
	switch typeOf(m) {
	case "object":
		return s.object(m, depth)
	case "array":
		return s.array(m, depth)
	case "string":
		least, _ := m["minLength"].(float64)
		return strings.Repeat("x", min(max(int(least), 0), 1000))
	case "number":
		return number(m)
	case "integer":
		n := number(m)
		return math.Copysign(math.Ceil(math.Abs(n)), n)
	case "boolean":
		return false
	}
	return nil
}

// typeOf is the first type of a schema that is not null, or the type that its other
// words are about.
func typeOf(m map[string]any) string {
	switch t := m["type"].(type) {
	case string:
		return t
	case []any:
		for _, one := range t {
			if name, ok := one.(string); ok && name != "null" {
				return name
			}
		}
		return ""
	}
	switch {
	case m["properties"] != nil:
		return "object"
	case m["items"] != nil:
		return "array"
	}
	return ""
}

func (s *sampler) object(m map[string]any, depth int) any {
	out := map[string]any{}
	properties, _ := m["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		out[name] = s.value(properties[name], depth+1)
	}
	return out
}

func (s *sampler) array(m map[string]any, depth int) any {
	least, _ := m["minItems"].(float64)
	out := []any{}
	if prefix, ok := m["prefixItems"].([]any); ok {
		out = s.each(prefix, depth+1)
	}
	for len(out) < min(max(int(least), 1), 1000) {
		out = append(out, s.value(m["items"], depth+1))
	}
	return out
}

// number is 0, or what lies next to it within the bounds.
func number(m map[string]any) float64 {
	v := 0.0
	if least, ok := m["minimum"].(float64); ok {
		v = max(v, least)
	}
	if least, ok := m["exclusiveMinimum"].(float64); ok && v <= least {
		v = least + 1
	}
	if most, ok := m["maximum"].(float64); ok {
		v = min(v, most)
	}
	return v
}

// find is what a reference within the schema leads to; nil for nothing.
func (s *sampler) find(ref string) any {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	at := s.root
	for part := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if part == "" {
			continue
		}
		m, ok := at.(map[string]any)
		if !ok {
			return nil
		}
		at = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]
	}
	return at
}

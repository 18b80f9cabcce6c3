package jsonschema

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

// Check finds what in a JSON Schema cannot be what its author meant: types
// that do not exist, references to nothing, fields that are required and cannot be
// there, and values of these keywords that are of the wrong kind. When a flow is
// checked they make a type wider, and mistakes pass. Each fault is a sentence
// with its place, a JSON pointer; nil is none. Keywords that are not known here
// are not looked at.
func Check(schema json.RawMessage) []string {
	var root any
	if err := json.Unmarshal(schema, &root); err != nil {
		return []string{"it is not JSON: " + err.Error()}
	}
	c := &schemaCheck{schemaReader: schemaReader{root: root}}
	c.check("", root)
	return c.found
}

type schemaCheck struct {
	schemaReader
	found []string
}

func (c *schemaCheck) add(at, format string, args ...any) {
	if at == "" {
		at = "/"
	}
	c.found = append(c.found, at+": "+fmt.Sprintf(format, args...))
}

// Keywords that hold schemas, by how they do.
var (
	schemaMaps  = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
	schemaLists = []string{"allOf", "anyOf", "oneOf", "prefixItems"}
	schemaOne   = []string{"additionalProperties", "contains", "else", "if", "not", "propertyNames", "then"}
)

func (c *schemaCheck) check(at string, schema any) {
	m, ok := schema.(map[string]any)
	if !ok {
		if _, ok := schema.(bool); !ok {
			c.add(at, "a schema is an object, or true or false")
		}
		return
	}
	if m["$id"] != nil && at != "" {
		return // another document
	}
	c.types(at, m["type"])
	if ref, ok := m["$ref"].(string); ok && strings.HasPrefix(ref, "#/") {
		if _, ok := c.find(ref); !ok {
			c.add(at, "$ref refers to %s, which does not exist", ref)
		}
	}
	c.required(at, m)
	c.below(at, m)
}

func (c *schemaCheck) types(at string, typ any) {
	list, ok := typ.([]any)
	if !ok {
		if typ == nil {
			return
		}
		list = []any{typ}
	}
	names := []string{"array", "boolean", "integer", "null", "number", "object", "string"}
	for _, one := range list {
		name, ok := one.(string)
		if !ok {
			c.add(at, "type is a name, or a list of names")
		} else if !slices.Contains(names, name) {
			c.add(at, "there is no type %q.%s", name, diag.DidYouMean(name, "", names))
		}
	}
}

// required looks for fields that a closed object must have and cannot.
func (c *schemaCheck) required(at string, m map[string]any) {
	if m["required"] == nil {
		return
	}
	list, ok := m["required"].([]any)
	if !ok {
		c.add(at, "required is a list of names")
		return
	}
	properties, _ := m["properties"].(map[string]any)
	open := m["additionalProperties"] != false || m["patternProperties"] != nil
	for _, one := range list {
		name, ok := one.(string)
		if !ok {
			c.add(at, "required is a list of names")
		} else if _, there := properties[name]; !there && !open {
			c.add(at, "%q is required, and no property has that name.%s", name, diag.DidYouMean(name, "", sortedKeys(properties)))
		}
	}
}

// below checks the schemas that a schema holds.
func (c *schemaCheck) below(at string, m map[string]any) {
	for _, word := range slices.Sorted(maps.Keys(m)) {
		place := at + "/" + pointerPart(word)
		inner := m[word]
		list, isList := inner.([]any)
		switch {
		case slices.Contains(schemaMaps, word):
			named, ok := inner.(map[string]any)
			if !ok {
				c.add(at, "%s is an object of schemas", word)
			}
			for _, name := range sortedKeys(named) {
				c.check(place+"/"+pointerPart(name), named[name])
			}
		case word == "items" && isList, slices.Contains(schemaLists, word):
			if !isList {
				c.add(at, "%s is a list of schemas", word)
			}
			for n, one := range list {
				c.check(fmt.Sprintf("%s/%d", place, n), one)
			}
		case word == "items", slices.Contains(schemaOne, word):
			c.check(place, inner)
		}
	}
}

// pointerPart escapes a word for a JSON pointer (RFC 6901).
func pointerPart(word string) string {
	return strings.ReplaceAll(strings.ReplaceAll(word, "~", "~0"), "/", "~1")
}

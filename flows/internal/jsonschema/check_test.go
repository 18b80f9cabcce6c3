package jsonschema

import (
	"encoding/json"
	"slices"
	"testing"
)

func TestCheckSchemaPasses(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{
		`true`, `{}`, `{"type":"string"}`, `{"type":["integer","null"]}`, `{"unknown":{"type":"strange"}}`,
		`{"$defs":{"a/b":{"type":"object","properties":{"next":{"$ref":"#/$defs/a~1b"}}}},"$ref":"#/$defs/a~1b"}`,
		`{"$ref":"#anchor"}`, `{"$ref":"other.json#/a"}`, `{"items":[{"type":"string"},true]}`,
		`{"$id":"https://example.com/s","properties":{"a":{"$id":"b","$ref":"#/nowhere"}}}`,
		`{"required":["a"]}`, `{"required":["a"],"additionalProperties":{}}`,
		`{"required":["a"],"additionalProperties":false,"patternProperties":{"^a":{}}}`,
		`{"required":["a"],"additionalProperties":false,"properties":{"a":{}}}`,
		`{"properties":{"type":{"type":"string"},"$ref":{"type":"string"},"required":{}}}`,
		`{"enum":[{"type":"strange"}],"const":{"type":"strange"},"default":{"required":1}}`,
	} {
		if found := Check(json.RawMessage(schema)); found != nil {
			t.Errorf("%s: %q", schema, found)
		}
	}
}

func TestCheckSchemaFinds(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string][]string{
		``:                     {"it is not JSON: unexpected end of JSON input"},
		`3`:                    {"/: a schema is an object, or true or false"},
		`{"type":"strng"}`:     {`/: there is no type "strng". Did you mean string?`},
		`{"type":["null",1]}`:  {"/: type is a name, or a list of names"},
		`{"anyOf":{}}`:         {"/: anyOf is a list of schemas"},
		`{"properties":[]}`:    {"/: properties is an object of schemas"},
		`{"required":"a"}`:     {"/: required is a list of names"},
		`{"required":[{}]}`:    {"/: required is a list of names"},
		`{"items":"string"}`:   {"/items: a schema is an object, or true or false"},
		`{"$ref":"#/$defs/x"}`: {"/: $ref refers to #/$defs/x, which does not exist"},
		`{"properties":{"b/c":{"oneOf":[{},{"type":"text"}]},"a":{"items":{"type":"int"}}}}`: {
			`/properties/a/items: there is no type "int". Known here: array, boolean, integer, null, number, object, string.`,
			`/properties/b~1c/oneOf/1: there is no type "text". Known here: array, boolean, integer, null, number, object, string.`,
		},
		`{"properties":{"name":{}},"required":["nmae"],"additionalProperties":false}`: {
			`/: "nmae" is required, and no property has that name. Did you mean name?`,
		},
	} {
		if found := Check(json.RawMessage(schema)); !slices.Equal(found, want) {
			t.Errorf("%s: %q, want %q", schema, found, want)
		}
	}
}

// FuzzCheckSchema holds that whatever is found is found again in the same words.
func FuzzCheckSchema(f *testing.F) {
	f.Add([]byte(`{"$defs":{"a":{"$ref":"#/$defs/b"}},"type":["string","x"],"required":["a"],"additionalProperties":false}`))
	f.Add([]byte(`{"properties":{"a":{"items":[1,{"anyOf":{}}]}},"$ref":"#/properties/~1"}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		if first, second := Check(schema), Check(schema); !slices.Equal(first, second) {
			t.Errorf("%q, then %q", first, second)
		}
		TypeText(schema)
	})
}

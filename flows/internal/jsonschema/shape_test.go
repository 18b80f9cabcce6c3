package jsonschema

import (
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	"github.com/zclconf/go-cty/cty"
)

func TestTypeText(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		``:                   "any",
		`true`:               "any",
		`{`:                  "any",
		`{"type":"strange"}`: "any",
		`{"type":["string","number","boolean","array","object"]}`: "any",
		`{"type":"integer"}`:                         "number",
		`{"type":["string","null"]}`:                 "string | null",
		`{"type":"string","nullable":true}`:          "string | null",
		`{"type":"null"}`:                            "null",
		`{"enum":["a","b",null]}`:                    `"a" | "b" | null`,
		`{"const":3}`:                                "number",
		`{"type":"number","enum":["a"]}`:             "number",
		`{"type":"array"}`:                           "list",
		`{"type":"array","items":{"type":"string"}}`: "list(string)",
		`{"type":"array","items":{"type":"string"},"prefixItems":[{}]}`: "list",
		`{"type":"object"}`: "object",
		`{"type":"object","additionalProperties":{"type":"number"}}`:                                                  "map(number)",
		`{"type":"object","additionalProperties":false}`:                                                              "object({})",
		`{"type":"object","properties":{"a":{"type":"string"}}}`:                                                      "object({ a = optional(string), … })",
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}`:                       "object({ a = any })",
		`{"type":"object","patternProperties":{"^a":{}},"additionalProperties":false}`:                                "object",
		`{"anyOf":[{"type":"string"},{"type":"number"}]}`:                                                             "number | string",
		`{"oneOf":[{"type":"array","items":{"type":"string"}},{"type":"null"}]}`:                                      "list(string) | null",
		`{"anyOf":[{"type":"object","properties":{"a":{}}},{"type":"object","properties":{"b":{}}}]}`:                 "object",
		`{"type":"string","anyOf":[{"type":"number"}]}`:                                                               "any",
		`{"allOf":[{"type":"string"},{"enum":["a"]}]}`:                                                                `"a"`,
		`{"$ref":"#/$defs/a","$defs":{"a":{"type":"array","items":{"$ref":"#/$defs/b~1c"}},"b/c":{"type":"string"}}}`: "list(string)",
		`{"$ref":"#/$defs/a%20b","$defs":{"a b":{"type":"string"}}}`:                                                  "string",
		`{"$ref":"#/allOf/0","allOf":[{"type":"string"}]}`:                                                            "string",
		`{"$ref":"#/nothing"}`:     "any",
		`{"$ref":"other.json#/a"}`: "any",
		`{"$ref":"#name"}`:         "any",
		`{"$ref":"#"}`:             "any",
		`{"$ref":"#/a","a":{"$ref":"#/b"},"b":{"$ref":"#/a"}}`:                                        "any",
		`{"anyOf":[{"$ref":"#"},{"type":"string"}]}`:                                                  "any",
		`{"$id":"https://example.com/a","type":"array","items":{"$ref":"#/b"},"b":{"type":"string"}}`: "list(string)",
		`{"type":"array","items":{"$id":"b","$ref":"#/b"},"b":{"type":"string"}}`:                     "list",
		`{"type":"array","items":{"$ref":"#"}}`:                                                       "list(list(list(list(list(list(list(…)))))))",
	} {
		if got := TypeText(json.RawMessage(schema)); got != want {
			t.Errorf("%s\ngot  %s\nwant %s", schema, got, want)
		}
	}
}

func TestShapesOfValues(t *testing.T) {
	t.Parallel()
	secret := cty.ObjectVal(map[string]cty.Value{"a": cty.StringVal("hunter2").Mark("sensitive"), "b": cty.UnknownVal(cty.Number)})
	if got := FromValue(secret).Text(); got != "object({ a = string, b = number | null })" {
		t.Error(got)
	}
	mixed := cty.TupleVal([]cty.Value{cty.StringVal("x"), cty.NumberIntVal(1), cty.NullVal(cty.DynamicPseudoType)})
	if got := FromValue(mixed).Text(); got != `list(number | "x" | null)` {
		t.Error(got)
	}
	declared := cty.Object(map[string]cty.Type{"m": cty.Map(cty.Bool), "l": cty.Set(cty.String), "t": cty.Tuple(nil), "d": cty.DynamicPseudoType})
	if got := FromType(declared).Text(); got != "object({ d = any, l = list(string | null) | null, m = map(bool | null) | null, t = list | null }) | null" {
		t.Error(got)
	}
}

// TestWordsOfManyTexts describes a long list without copying all of its texts for
// each of them.
func TestWordsOfManyTexts(t *testing.T) {
	texts := make([]cty.Value, 20_000)
	for i := range texts {
		texts[i] = cty.StringVal(fmt.Sprint(i))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	s := shapeOfItems(cty.TupleVal(texts))
	runtime.ReadMemStats(&after)
	if made := after.TotalAlloc - before.TotalAlloc; len(s.Enum) != len(texts) || made > 200<<20 {
		t.Errorf("%d words, %d bytes", len(s.Enum), made)
	}
}

package flowsim

import (
	"encoding/json"
	"testing"
)

func TestSample(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]string{
		`{"type":"object","properties":{"a":{"type":"string"},"b":{"type":["null","integer"],"minimum":3}}}`:  `{"a":"","b":3}`,
		`{"properties":{"a":{"const":7},"b":{"default":"d"},"c":{"enum":["e","f"]},"d":{"examples":[1.5]}}}`:  `{"a":7,"b":"d","c":"e","d":1.5}`,
		`{"type":"array","items":{"type":"boolean"}}`:                                                         `[false]`,
		`{"type":"array","prefixItems":[{"type":"integer","minimum":0.5},{"type":"integer","maximum":-0.5}]}`: `[1,-1]`,
		`{"items":{"type":"number","exclusiveMinimum":0},"minItems":2}`:                                       `[1,1]`,
		`{"type":"array","prefixItems":[{"type":"string","minLength":2},{"type":"number","maximum":-1}]}`:     `["xx",-1]`,
		`{"$ref":"#/$defs/a~1b","$defs":{"a/b":{"type":"string"}}}`:                                           `""`,
		`{"$ref":"#/$defs/none"}`:                          `null`,
		`{"oneOf":[{"type":"boolean"},{"type":"string"}]}`: `false`,
		`{"allOf":[{"properties":{"a":{"type":"string"}}},{"properties":{"b":{"type":"boolean"}}}]}`: `{"a":"","b":false}`,
		`{"allOf":[{"type":"string"}]}`: `""`,
		`true`:                          `null`, `{}`: `null`, `?`: `null`, `{"type":"null"}`: `null`,
	} {
		if got := string(Sample(json.RawMessage(schema))); got != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
	if got := Sample(json.RawMessage(`{"properties":{"next":{"$ref":"#"}}}`)); len(got) > 1000 || !json.Valid(got) {
		t.Errorf("one that refers to itself: %s", got)
	}
}

// Whatever a schema says, there is a value.
func FuzzSample(f *testing.F) {
	f.Add([]byte(`{"type":["object"],"properties":{"a":{"$ref":"#"}},"allOf":[{"minItems":1e300}]}`))
	f.Add([]byte(`{"type":"array","minItems":-5,"items":{"type":"array","minItems":3,"items":{"$ref":"#/items"}}}`))
	f.Add([]byte(`{"type":"array","minItems":1000,"items":{"$ref":"#"}}`))
	f.Fuzz(func(t *testing.T, schema []byte) {
		if got := Sample(schema); !json.Valid(got) {
			t.Errorf("%s: %s", schema, got)
		}
	})
}

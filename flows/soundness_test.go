package flows

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// FuzzTypesAreSound: what works in a run is never refused before it. A task gives
// a value of a random schema; an expression makes of it what the next task takes,
// by another random schema. Where evaluating the expression succeeds and its result
// is what is taken, loading must have found nothing wrong. Everything is there:
// that a value is null, absent or empty makes nothing fit.
func FuzzTypesAreSound(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &wiring{Rand: rand.New(rand.NewPCG(seed, 1))}
		gives := w.schema(3)
		value := w.value(gives)
		e := w.expression(gives, "task.a.output", 3)
		loose, diags := loadTyped(t, map[string]any{}, map[string]any{}, e)
		if diags != "" {
			return // an expression that is wrong whatever it is given
		}
		s := loose.Scope(aRun(loose, "", nil))
		encoded, _ := json.Marshal(value)
		s.Settle(done("a", string(encoded)))
		out, failure := loose.task(t, "b").Input(s)
		if failure != nil {
			return
		}
		var result any
		if err := json.Unmarshal(out, &result); err != nil {
			t.Fatal(err)
		}
		takes := w.schemaOf(result, 3)
		if !conforms(takes, result) {
			t.Fatalf("the test is wrong: %s is not %s", out, schemaText(takes))
		}
		if _, diags := loadTyped(t, gives, takes, e); diags != "" {
			t.Errorf("refused, and works in a run\ngives %s\nvalue %s\nmakes %s\ntakes %s\n%s", schemaText(gives), encoded, out, schemaText(takes), diags)
		}
	})
}

// FuzzPassingOnIsSound: what one task gives can be passed on to one that takes the
// same or more, whole or put together anew.
func FuzzPassingOnIsSound(f *testing.F) {
	for seed := range uint64(200) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &wiring{Rand: rand.New(rand.NewPCG(seed, 2))}
		gives := w.schema(4)
		takes := w.widened(gives)
		for _, e := range []string{
			"task.a.output", "{ x = task.a.output }.x", "[task.a.output][0]", "coalesce(task.a.output, null)",
			"run.id == \"\" ? task.a.output : null", "try(task.a.output, 1)", w.copied(gives, "task.a.output", 0),
		} {
			if _, diags := loadTyped(t, gives, takes, e); diags != "" {
				t.Errorf("refused: %s\ngives %s\ntakes %s\n%s", e, schemaText(gives), schemaText(takes), diags)
			}
		}
	})
}

// loadTyped loads a flow of two tasks with schemas.
func loadTyped(t *testing.T, gives, takes map[string]any, e string) (*Flow, string) {
	t.Helper()
	source := fmt.Sprintf(`flow "f" {
  task "a" {
    plugin   = "./m.wasm"
    function = "gives"
  }
  task "b" {
    plugin   = "./m.wasm"
    function = "takes"
    input    = %s
  }
}
`, e)
	c := oneModule{Digest: digestOf("m"), ABI: "flowhost", Functions: []run.FunctionSignature{
		{Name: "gives", Output: json.RawMessage(schemaText(gives))}, {Name: "takes", Input: json.RawMessage(schemaText(takes))},
	}}
	set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": source})}, Options{Catalog: c})
	if diags.HasErrors() { // a comparison that is never true is warned of
		return nil, source + text(set, diags)
	}
	return set.Flows[0], ""
}

func schemaText(schema map[string]any) string {
	out, _ := json.Marshal(schema)
	return string(out)
}

// wiring makes random schemas, values and expressions. Each schema lists its
// fields in "properties"; what it is of is its "type".
type wiring struct{ *rand.Rand }

func (w *wiring) pick(words ...string) string { return words[w.IntN(len(words))] }

func (w *wiring) schema(depth int) map[string]any {
	kind := w.pick("string", "number", "integer", "boolean", "array", "object", "object", "any")
	if depth == 0 {
		kind = w.pick("string", "number", "integer", "boolean")
	}
	s := map[string]any{"type": kind}
	switch kind {
	case "any":
		delete(s, "type")
	case "string":
		if w.IntN(4) == 0 {
			s["enum"] = []any{"a", "b"}
		}
	case "array":
		s["items"] = w.schema(depth - 1)
	case "object":
		w.fields(s, depth)
	}
	switch {
	case s["type"] != nil && s["enum"] == nil && w.IntN(6) == 0:
		s["type"] = []any{kind, "null"}
	case depth > 0 && w.IntN(6) == 0:
		return map[string]any{w.pick("anyOf", "oneOf"): []any{s, map[string]any{"type": "null"}}}
	case depth > 0 && w.IntN(8) == 0:
		return map[string]any{"anyOf": []any{s, w.schema(depth - 1)}}
	case depth > 0 && w.IntN(8) == 0:
		return map[string]any{"allOf": []any{s}}
	}
	return s
}

func (w *wiring) fields(s map[string]any, depth int) {
	properties, required := map[string]any{}, []any{}
	for _, name := range []string{"x", "y", "z"} {
		if w.IntN(3) == 0 {
			continue
		}
		properties[name] = w.schema(depth - 1)
		if w.IntN(2) == 0 {
			required = append(required, name)
		}
	}
	s["properties"], s["required"] = properties, required
	switch w.IntN(3) {
	case 0:
		s["additionalProperties"] = false
	case 1:
		s["additionalProperties"] = w.schema(0)
	}
}

// value makes a value that conforms to a schema, in full.
func (w *wiring) value(s map[string]any) any {
	for _, word := range []string{"anyOf", "oneOf", "allOf"} {
		if all, ok := s[word].([]any); ok {
			one := all[w.IntN(len(all))].(map[string]any)
			if one["type"] == "null" {
				one = all[0].(map[string]any)
			}
			return w.value(one)
		}
	}
	kind, _ := s["type"].(string)
	if kinds, ok := s["type"].([]any); ok {
		kind = kinds[0].(string)
	}
	switch kind {
	case "string":
		return w.pick("a", "b")
	case "number":
		return float64(w.IntN(3)) / 2
	case "integer":
		return float64(w.IntN(3))
	case "boolean":
		return w.IntN(2) == 0
	case "array":
		items := []any{}
		for range 1 + w.IntN(2) {
			items = append(items, w.value(s["items"].(map[string]any)))
		}
		return items
	case "object":
		return w.object(s)
	}
	return []any{"text", 1.5, true, []any{1.0, "a"}, map[string]any{"x": 1.0, "w": "a"}}[w.IntN(5)]
}

func (w *wiring) object(s map[string]any) any {
	out := map[string]any{}
	properties := s["properties"].(map[string]any)
	for _, name := range keys(properties) {
		out[name] = w.value(properties[name].(map[string]any))
	}
	switch rest := s["additionalProperties"].(type) {
	case nil:
		out["more"] = w.pick("a", "1")
	case map[string]any:
		out["more"] = w.value(rest)
	}
	return out
}

// expression makes an expression over a value, which may be wrong.
func (w *wiring) expression(s map[string]any, of string, depth int) string {
	if depth == 0 {
		return w.path(of)
	}
	sub := func() string { return w.expression(s, of, depth-1) }
	switch w.IntN(14) {
	case 0:
		return "{ x = " + sub() + ", y = " + sub() + " }"
	case 1:
		return "[" + sub() + ", " + sub() + "]"
	case 2:
		// Both branches must be right, not only the one that is taken.
		yes, no := sub(), w.pick("null", sub())
		return "[" + yes + ", " + no + ", " + w.pick("true", "run.id == \"\"", sub()) + " ? " + yes + " : " + no + "][2]"
	case 3:
		return "[for v in " + sub() + " : " + w.pick("v", "v.x", "{ x = v }", "v + 1") + "]"
	case 4:
		return "{ for k, v in " + sub() + " : k => " + w.pick("v", "v.y", "k") + " }"
	case 5:
		return "\"${" + sub() + "}-\""
	case 6:
		return "(" + sub() + " " + w.pick("+", "==", "&&", ">") + " " + w.pick("1", "true", sub()) + ")"
	case 7:
		return w.pick("length", "upper", "jsonencode", "tostring", "keys", "values", "flatten", "tolist", "tonumber", "abs", "coalesce", "one", "sum", "reverse", "distinct") + "(" + sub() + ")"
	case 8:
		return "try(" + sub() + ", " + sub() + ")"
	case 9:
		return "merge(" + sub() + ", { y = 1 })"
	case 10:
		return sub() + w.pick("[*]", "[*].x", "[0]", "[\"x\"]")
	case 11:
		return w.pick("coalesce(", "concat(", "lookup(") + sub() + ", " + sub() + ")"
	case 12:
		return "(" + w.pick("!", "-") + sub() + ")"
	}
	return w.path(of)
}

func (w *wiring) path(of string) string {
	return of + w.pick("", "", ".x", ".y", ".z", ".x.y", "[0]", ".x[0].y", "[*].x", ".more", "[length(\"a\")]")
}

// schemaOf makes a schema of something that is all there: without nulls, empty
// lists and empty objects, which fit nothing in particular.
func (w *wiring) schemaOf(v any, depth int) map[string]any {
	if w.IntN(8) == 0 || depth == 0 {
		return map[string]any{}
	}
	switch v := v.(type) {
	case string:
		if w.IntN(3) == 0 {
			return map[string]any{"enum": []any{"other", v}}
		}
		return map[string]any{"type": "string"}
	case float64:
		if v == float64(int64(v)) && w.IntN(2) == 0 {
			return map[string]any{"type": "integer"}
		}
		return map[string]any{"type": []any{"number", "boolean"}}
	case bool:
		return map[string]any{"type": "boolean"}
	case []any:
		if len(v) == 0 {
			return map[string]any{}
		}
		all := []any{}
		for _, item := range v {
			all = append(all, w.schemaOf(item, depth-1))
		}
		return map[string]any{"type": "array", "items": map[string]any{"anyOf": all}}
	case map[string]any:
		if len(v) == 0 {
			return map[string]any{}
		}
		properties, required := map[string]any{}, []any{}
		for _, name := range keys(v) {
			properties[name] = w.schemaOf(v[name], depth-1)
			required = append(required, name)
		}
		return map[string]any{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
	}
	return map[string]any{}
}

// widened is a schema that lets the same values pass, and perhaps more.
func (w *wiring) widened(s map[string]any) map[string]any {
	out := map[string]any{}
	for word, v := range s {
		switch {
		case word == "required" && w.IntN(2) == 0, word == "enum" && w.IntN(2) == 0, word == "additionalProperties" && w.IntN(2) == 0:
			continue
		case word == "properties":
			properties := map[string]any{}
			for name, p := range v.(map[string]any) {
				properties[name] = w.widened(p.(map[string]any))
			}
			v = properties
		case word == "items":
			v = w.widened(v.(map[string]any))
		}
		out[word] = v
	}
	if kind, ok := out["type"].(string); ok && out["enum"] == nil && w.IntN(3) == 0 {
		out["type"] = []any{kind, "null"}
	}
	return out
}

// copied puts a value together again from its parts, as far as they are named.
func (w *wiring) copied(s map[string]any, of string, depth int) string {
	switch s["type"] {
	case "array":
		v := fmt.Sprintf("v%d", depth)
		return "[for " + v + " in " + of + " : " + w.copied(s["items"].(map[string]any), v, depth+1) + "]"
	case "object":
		var fields []string
		properties := s["properties"].(map[string]any)
		for _, name := range keys(properties) {
			fields = append(fields, name+" = "+w.copied(properties[name].(map[string]any), of+"."+name, depth))
		}
		required, _ := s["required"].([]any)
		for _, name := range required {
			if properties[name.(string)] == nil {
				return of
			}
		}
		return "{ " + strings.Join(fields, ", ") + " }"
	}
	return of
}

// conforms is JSON Schema as far as schemaOf uses it.
func conforms(s map[string]any, v any) bool {
	if all, ok := s["anyOf"].([]any); ok {
		return slices.ContainsFunc(all, func(one any) bool { return conforms(one.(map[string]any), v) })
	}
	if words, ok := s["enum"].([]any); ok && !slices.Contains(words, v) {
		return false
	}
	switch v := v.(type) {
	case []any:
		items, _ := s["items"].(map[string]any)
		return items == nil || !slices.ContainsFunc(v, func(item any) bool { return !conforms(items, item) })
	case map[string]any:
		properties, _ := s["properties"].(map[string]any)
		for name, p := range properties {
			if field, there := v[name]; !there || !conforms(p.(map[string]any), field) {
				return false
			}
		}
	}
	return true
}

// oneModule is a catalog in which every path is one module.
type oneModule run.Signature

func (m oneModule) Signature(context.Context, string) (run.Signature, error) {
	return run.Signature(m), nil
}

func (m oneModule) SignatureOf(context.Context, string) (run.Signature, error) {
	return run.Signature(m), nil
}

// TestWhatWorksIsNotRefused are cases of the kind that the fuzz tests look for: each
// works in a run with the value, and loading must find nothing wrong.
func TestWhatWorksIsNotRefused(t *testing.T) {
	t.Parallel()
	const texts, numbers = `{"type":"array","items":{"type":"string"}}`, `{"type":"array","items":{"type":"number"}}`
	tests := map[string]struct{ gives, value, expression, takes, makes string }{
		"branches are converted":           {`{"type":"number"}`, `1`, `run.id != "" ? task.a.output : "a"`, `{"type":"string"}`, `"1"`},
		"objects of branches are, too":     {`{"type":"number"}`, `1`, `run.id == "" ? { b = "x" } : { a = task.a.output }`, `{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"1"}`},
		"an index of what may be a list":   {`{"anyOf":[` + texts + `,{"type":"object"}]}`, `{"k":1}`, `task.a.output[lower("K")]`, `{"type":"number"}`, `1`},
		"a splat of what may be a list":    {`{"anyOf":[` + texts + `,{"type":"number"}]}`, `1`, `task.a.output[*]`, numbers, `[1]`},
		"a text in arithmetic":             {`{"type":"string"}`, `"5"`, `-task.a.output + task.a.output * 2`, `{"type":"number"}`, `5`},
		"a text as condition":              {`{"type":"string"}`, `"true"`, `task.a.output && !task.a.output ? 1 : 2`, `{"type":"number"}`, `2`},
		"lists of either":                  {`{"anyOf":[` + texts + `,` + numbers + `]}`, `[1]`, `task.a.output`, numbers, `[1]`},
		"more fields":                      {`{"type":"object","properties":{"x":{}},"additionalProperties":true}`, `{"y":1}`, `task.a.output.y`, `{"type":"number"}`, `1`},
		"whole or not":                     {`{"type":"number"}`, `1.5`, `1.5`, `{"type":["integer","number"]}`, `1.5`},
		"nothing is wanted":                {`{"type":["string","null"]}`, `null`, `task.a.output`, `{"type":"null"}`, `null`},
		"an attribute of what may have it": {`{"anyOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"type":"array"}]}`, `{"a":1}`, `task.a.output["a"]`, `{}`, `1`},
		"a text as index of a list":        {`{"anyOf":[{"type":"object","properties":{"a":{}},"additionalProperties":false},{"type":"array"}]}`, `[5]`, `task.a.output["0"]`, `{}`, `5`},
		"an index of an object or a list":  {`{"anyOf":[{"type":"object"},` + numbers + `]}`, `{"0":"x"}`, `task.a.output[0]`, `{"type":"string"}`, `"x"`},
		"a number as index of an object":   {`{"type":"object","additionalProperties":{"type":"number"}}`, `{"0":1}`, `task.a.output[0]`, `{"type":"number"}`, `1`},
		"fields of several types":          {`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{"type":"number"}}`, `{"a":"x"}`, `[for v in task.a.output : v]`, texts, `["x"]`},
		"a map of texts":                   {`{"type":"object","additionalProperties":{"type":"string"}}`, `{"a":"x"}`, `{ for k, v in task.a.output : v => k }`, `{"type":"object","additionalProperties":{"type":"string"}}`, `{"x":"a"}`},
		"more than is taken":               {`{"type":"object","properties":{"a":{},"b":{}},"additionalProperties":false}`, `{"a":1,"b":2}`, `task.a.output`, `{"type":"object","properties":{"a":{}},"additionalProperties":false}`, `{"a":1,"b":2}`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f, diags := loadTyped(t, asSchema(t, test.gives), asSchema(t, test.takes), test.expression)
			if diags != "" {
				t.Fatal(diags)
			}
			s := f.Scope(aRun(f, "", nil))
			s.Settle(done("a", test.value))
			if got := input(t, f.task(t, "b"), s); got != test.makes {
				t.Errorf("makes %s, not %s", got, test.makes)
			}
		})
	}
}

func asSchema(t *testing.T, text string) map[string]any {
	t.Helper()
	var schema map[string]any
	if err := json.Unmarshal([]byte(text), &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

package flows

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

const payloadFlow = `
flow "f" {
  param "note" {
    default = "of the param"
  }
  trigger "message" "m" {
    subject = "a"
    payload = object({ id = string, total = number, lines = optional(list(object({ sku = string })), []), note = optional(string) })
    filter  = trigger.payload.total > 0
  }
  trigger "message" "brief" {
    subject = "b"
    payload = list(number)
  }
  trigger "schedule" "daily" {
    every = "24h"
  }
  task "whole" {
    plugin = "./greet.wasm"
    input  = trigger.payload
  }
  task "part" {
    plugin = "./greet.wasm"
    input  = { all = [trigger.payload], first = try(trigger.payload[0], trigger.payload.total) }
  }
}`

// TestPayloads: a payload is recorded as it came, and expressions see it converted,
// however they are evaluated.
func TestPayloads(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, payloadFlow)
	if got := f.Triggers[1].Payload; got != "list(number)" || f.Triggers[2].Payload != "" {
		t.Errorf("%q %q", got, f.Triggers[2].Payload)
	}
	for name, c := range map[string]struct{ trigger, payload, whole, first, note string }{
		"as it is":       {"m", `{"id":"a","total":1,"lines":[{"sku":"x"}],"note":"n"}`, `{"id":"a","lines":[{"sku":"x"}],"note":"n","total":1}`, "1", "n"},
		"converted":      {"m", `{"id":7,"total":"1.50","lines":[{"sku":true,"n":1}],"more":[]}`, `{"id":"7","lines":[{"sku":"true"}],"note":null,"total":1.5}`, "1.5", "of the param"},
		"null inside":    {"m", `{"id":null,"total":1,"lines":null,"note":null}`, `{"id":null,"lines":[],"note":null,"total":1}`, "1", "of the param"},
		"of another":     {"brief", `["1",2]`, `[1,2]`, "1", "of the param"},
		"by name":        {"", `{"id":"a","total":0}`, `{"id":"a","lines":[],"note":null,"total":0}`, "0", "of the param"},
		"by name, other": {"", `[true,3]`, ``, "", ""},
		"by name, list":  {"", `[12345678901234567890]`, `[12345678901234567890]`, "12345678901234567890", "of the param"},
	} {
		a, err := f.Admit(request(c.trigger, c.payload))
		if c.whole == "" {
			if err == nil {
				t.Errorf("%s: accepted", name)
			}
			continue
		}
		if err != nil || !a.Accepted || string(a.Trigger.Payload) != c.payload || string(a.Params["note"]) != fmt.Sprintf("%q", c.note) {
			t.Errorf("%s: %+v %v", name, a, err)
			continue
		}
		r := &run.Run{Trigger: a.Trigger, Params: a.Params}
		if got := input(t, f.task(t, "whole"), f.Scope(r)); got != c.whole {
			t.Errorf("%s: the whole is %s", name, got)
		}
		if got, want := input(t, f.task(t, "part"), f.Scope(r)), `{"all":[`+c.whole+`],"first":`+c.first+`}`; got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

func TestPayloadsThatAreRefused(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, payloadFlow)
	const takes = `trigger "m" takes object({ id = string,`
	for name, c := range map[string]struct {
		trigger, payload string
		says             []string
	}{
		"not a number":   {"m", `{"id":"a","total":"much"}`, []string{"total: a number is required", takes}},
		"missing":        {"m", `{"total":1}`, []string{`attribute "id" is required`, takes}},
		"deep":           {"m", `{"id":"a","total":1,"lines":[{"sku":"x"},{}]}`, []string{"lines", `"sku" is required`, takes}},
		"of another":     {"m", `[1]`, []string{"object required", takes}},
		"an object":      {"brief", `{"id":"a","total":1}`, []string{"list of number required", `trigger "brief" takes list(number)`}},
		"empty":          {"m", ``, []string{"there is no payload", takes}},
		"null":           {"brief", `null`, []string{"there is no payload", "takes list(number)"}},
		"by name":        {"", `{"id":"a"}`, []string{takes, ". Or: ", `trigger "brief" takes list(number)`}},
		"not JSON":       {"m", `{`, []string{"not JSON"}},
		"text in a list": {"brief", `["a"]`, []string{"a number is required", "takes list(number)"}},
	} {
		_, err := f.Admit(request(c.trigger, c.payload))
		fault := (*run.RequestError)(nil)
		if !errors.As(err, &fault) || fault.Code != run.RequestPayload {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, text := range c.says {
			if !strings.Contains(fault.Message, text) {
				t.Errorf("%s: no %q in: %s", name, text, fault.Message)
			}
		}
	}
}

// TestNoPayload: what is no message, or is asked for by name, may have none.
func TestNoPayload(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, payloadFlow)
	for _, trigger := range []string{"", "daily"} {
		a, err := f.Admit(request(trigger, ""))
		if err != nil || !a.Accepted {
			t.Fatalf("%q: %+v %v", trigger, a, err)
		}
		if got := input(t, f.task(t, "whole"), f.Scope(&run.Run{Trigger: a.Trigger})); got != "null" {
			t.Errorf("%q: %s", trigger, got)
		}
	}
}

// TestOpenPayloads: one trigger that takes anything leaves requests by name open,
// and the tasks with them.
func TestOpenPayloads(t *testing.T) {
	t.Parallel()
	src := strings.Replace(payloadFlow, "payload = list(number)", "payload = any", 1)
	f := oneFlow(t, strings.Replace(src, "input  = trigger.payload", "input  = { x = trigger.payload.whatever }", 1))
	if a, err := f.Admit(request("", `{"whatever":1}`)); err != nil || !a.Accepted {
		t.Errorf("by name: %+v %v", a, err)
	}
	if a, err := f.Admit(request("brief", ``)); err != nil || !a.Accepted {
		t.Errorf("brief: %+v %v", a, err)
	}
	if _, err := f.Admit(request("m", `{"whatever":1}`)); err == nil {
		t.Error("m: accepted")
	}
}

// TestPayloadsOfSeveral: the tasks of a flow meet the payloads of all its triggers,
// and a param that is null in a payload for want of a value has none.
func TestPayloadsOfSeveral(t *testing.T) {
	t.Parallel()
	f := oneFlow(t, `
flow "f" {
  param "b" {
    type = string
  }
  trigger "message" "m" {
    subject = "a"
    payload = object({ a = string, b = optional(string) })
  }
  trigger "message" "n" {
    subject = "b"
    payload = object({ c = optional(number), b = string })
    filter  = trigger.payload.c == 1
  }
  task "t" {
    plugin = "./greet.wasm"
    input  = [try(trigger.payload.a, null), try(trigger.payload.c, null), trigger.name == "n" ? trigger.payload.c : 0]
  }
}`)
	a, err := f.Admit(request("n", `{"a":"x","b":"y","c":"1"}`))
	if err != nil || !a.Accepted || string(a.Params["b"]) != `"y"` {
		t.Fatalf("%+v %v", a, err)
	}
	if got := input(t, f.task(t, "t"), f.Scope(&run.Run{Trigger: a.Trigger})); got != `[null,1,1]` {
		t.Error(got)
	}
	_, err = f.Admit(request("m", `{"a":"x"}`))
	if fault := (*run.RequestError)(nil); !errors.As(err, &fault) || fault.Code != run.RequestParams || !strings.Contains(fault.Message, "param b is required") {
		t.Errorf("%v", err)
	}
}

func TestPayloadInJSON(t *testing.T) {
	t.Parallel()
	f := onlyFlow(t, load(t, map[string]string{"f.hcl.json": `{"flow": {"f": {
	  "trigger": {"message": {"m": {"subject": "a", "payload": "object({ id = string, n = optional(number, 3) })"}}},
	  "task": {"t": {"plugin": "./greet.wasm", "input": {"n": "${trigger.payload.n}"}}}
	}}}`}, Options{}))
	a, err := f.Admit(request("m", `{"id":"a"}`))
	if err != nil || !a.Accepted {
		t.Fatalf("%+v %v", a, err)
	}
	if got := input(t, f.task(t, "t"), f.Scope(&run.Run{Trigger: a.Trigger})); got != `{"n":3}` {
		t.Error(got)
	}
	restored, diags := Restore(t.Context(), f.Definition, Options{Catalog: modules})
	if diags.HasErrors() {
		t.Fatal(diags)
	}
	old := onlyFlow(t, restored)
	if got := input(t, old.task(t, "t"), old.Scope(&run.Run{Trigger: a.Trigger})); got != `{"n":3}` {
		t.Errorf("restored: %s", got)
	}
	if _, err := f.Admit(request("m", `{"n":1}`)); err == nil {
		t.Error("accepted")
	}
}

// FuzzPayloadsAreSound: an expression over a payload of a random type, or of one of
// two, that works on a payload which was accepted is never refused at load. What
// convert gives has no type, so that the same expression passes there.
func FuzzPayloadsAreSound(f *testing.F) {
	for seed := range uint64(300) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &wiring{Rand: rand.New(rand.NewPCG(seed, 3))}
		types := []string{w.constraint(3)}
		for w.IntN(3) == 0 {
			types = append(types, w.constraint(3))
		}
		trigger := w.pick("", "m0")
		const untyped = "convert(trigger.payload, any)"
		e := w.expression(nil, untyped, w.IntN(4))
		loose, diags := loadPayloads(t, types, map[string]any{}, e)
		if diags != "" {
			return
		}
		payload, _ := json.Marshal(w.payload(types[0]))
		a, err := loose.Admit(request(trigger, string(payload)))
		if err != nil {
			return
		}
		out, failure := loose.task(t, "t").Input(loose.Scope(&run.Run{Trigger: a.Trigger}))
		if failure != nil {
			return
		}
		var result any
		if err := json.Unmarshal(out, &result); err != nil {
			t.Fatal(err)
		}
		takes := w.schemaOf(result, 3)
		typed := strings.ReplaceAll(e, untyped, "trigger.payload")
		if _, diags := loadPayloads(t, types, takes, typed); diags != "" {
			t.Fatalf("refused, and works in a run\npayload %s\nmakes %s\ntakes %s\n%s", payload, out, schemaText(takes), diags)
		}
		f, _ := loadPayloads(t, types, map[string]any{}, typed)
		if got := input(t, f.task(t, "t"), f.Scope(&run.Run{Trigger: a.Trigger})); got != string(out) {
			t.Errorf("%s gives %s, and %s gives %s", e, out, typed, got)
		}
	})
}

// loadPayloads loads a flow with a message trigger for each of the types.
func loadPayloads(t *testing.T, types []string, takes map[string]any, e string) (*Flow, string) {
	t.Helper()
	source := "flow \"f\" {\n"
	for i, typ := range types {
		source += fmt.Sprintf("  trigger \"message\" \"m%d\" {\n    subject = \"s\"\n    payload = %s\n  }\n", i, typ)
	}
	source += fmt.Sprintf("  task \"t\" {\n    plugin   = \"./m.wasm\"\n    function = \"takes\"\n    input    = %s\n  }\n}\n", e)
	c := oneModule{Digest: digestOf("m"), ABI: "flowhost", Functions: []run.FunctionSignature{
		{Name: "takes", Input: json.RawMessage(schemaText(takes))},
	}}
	set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": source})}, Options{Catalog: c})
	if len(diags) > 0 {
		return nil, source + text(set, diags)
	}
	return set.Flows[0], ""
}

// constraint is a random type.
func (w *wiring) constraint(depth int) string {
	if depth == 0 {
		return w.pick("string", "number", "bool", "any")
	}
	switch sub := func() string { return w.constraint(depth - 1) }; w.IntN(8) {
	case 0:
		return "list(" + sub() + ")"
	case 1:
		return "map(" + sub() + ")"
	case 2:
		return "set(" + sub() + ")"
	case 3:
		return "tuple([" + sub() + ", " + sub() + "])"
	case 4:
		return w.constraint(0)
	default:
		return "object({ x = " + sub() + ", y = optional(" + sub() + "), z = optional(string, \"z\") })"
	}
}

// payload is a random value for a type, of which only the beginning is looked at.
// Most values fit.
func (w *wiring) payload(typ string) any {
	end := strings.IndexFunc(typ+")", func(c rune) bool { return c < 'a' || c > 'z' })
	rest := strings.TrimPrefix(typ[end:], "(")
	switch typ[:end] {
	case "string", "any":
		return []any{"1", "a", 1.5, true}[w.IntN(4)]
	case "number":
		return []any{"1", 1.0, 1.5}[w.IntN(3)]
	case "bool":
		return []any{"true", false}[w.IntN(2)]
	case "list", "set":
		return []any{w.payload(rest), w.payload(rest)}[:1+w.IntN(2)]
	case "map":
		return map[string]any{"x": w.payload(rest), "y": w.payload(rest)}
	case "tuple":
		parts := typesOf(strings.TrimPrefix(rest, "["))
		return []any{w.payload(parts[0]), w.payload(parts[1])}
	}
	parts := typesOf(strings.TrimPrefix(rest, "{ "))
	value := func(part string) any {
		_, typ, _ := strings.Cut(part, " = ")
		return w.payload(strings.TrimPrefix(typ, "optional("))
	}
	out := map[string]any{"x": value(parts[0]), "y": value(parts[1]), "more": 1.0}
	if w.IntN(2) == 0 {
		out["z"] = "a"
	}
	return out
}

// typesOf cuts a list of types at the commas that are not inside of one.
func typesOf(list string) []string {
	var parts []string
	depth, from := 0, 0
	for i, c := range list {
		switch {
		case strings.ContainsRune("([{", c):
			depth++
		case strings.ContainsRune(")]}", c):
			depth--
		}
		if c == ',' && depth == 0 || depth < 0 {
			parts = append(parts, strings.TrimSpace(list[from:i]))
			from = i + 1
		}
		if depth < 0 {
			break
		}
	}
	return parts
}

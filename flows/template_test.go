package flows

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// layoutShapes are expressions that are taken apart, at least in part.
var layoutShapes = []string{
	`{ n = task.a.output.n, i = 4 }`,
	`{ z = task.a.output, a = trigger.payload, m = null }`,
	`{ "e\u0301" = task.a.output["n"], e = [trigger.payload[0], task.a.output.items[1].x] }`,
	`[task.a.output, [], {}, "x", -1.50, true, [{ p = trigger.payload.n }]]`,
	`{ (upper("key")) = trigger.payload.n, "b-c" = (trigger.payload["n"]), deep = { deep = { n = "${trigger.payload.n}" } } }`,
	`{ any = param.any, in = param.any.n, text = param.text, flag = param.flag, size = param.size, list = param.list, hidden = param.hidden }`,
	`{ id = run.id, flow = run.flow, at = run.scheduled_at, labels = run.labels, kind = trigger.kind, name = trigger.name, h = trigger.headers }`,
	`{ s = task.a.state, d = task.a.duration, n = task.a.attempts, e = task.a.error }`,
	`{ late = local.late, again = local.late.n, fixed = local.fixed, v = var.v, f = flow.name }`,
	`{ text = "n: ${jsonencode(trigger.payload)}", all = trigger.payload, o = task.a.output }`,
	`{ all = trigger.payload, more = [for x in try(trigger.payload.items, []) : x], c = true ? 1 : 2 }`,
	`{ x = trigger.payload.items.0, y = task.a.output["items"]["0"] }`,
	`{ d = task.a.output.a.b.c["d"][0][1].e }`,
}

const layoutFlow = `
variable "v" {
  default = "\u00e9\"\n"
}
locals {
  fixed = [var.v, 1.10]
}
plugin "p" {
  source = "./greet.wasm"
  config = { z = 1.0, n = "below", "a\u0301" = [] }
}
flow "f" {
  labels = { team = "x" }
  param "any" {
    default = null
  }
  param "text" {
    type    = string
    default = null
  }
  param "flag" {
    type    = bool
    default = null
  }
  param "size" {
    type    = number
    default = null
  }
  param "list" {
    type    = list(string)
    default = null
  }
  param "hidden" {
    sensitive = true
    default   = null
  }
  locals {
    late = { n = task.a.output.n, more = local.more }
    more = [trigger.payload]
  }
  task "a" {
    plugin = plugin.p
  }
%s}
`

// loadLayouts loads a flow with a task for each expression, which is its input
// and, where it is an object, its config.
func loadLayouts(t testing.TB, shapes []string) *Flow {
	t.Helper()
	var tasks strings.Builder
	for i, shape := range shapes {
		config := "{ n = trigger.payload, \"\\u00e1\" = 1 }"
		if shape[0] == '{' {
			config = shape
		}
		fmt.Fprintf(&tasks, "  task \"t%d\" {\n    plugin = plugin.p\n    input = %s\n    config = %s\n  }\n", i, shape, config)
	}
	return oneFlow(t, fmt.Sprintf(layoutFlow, tasks.String()))
}

// sameBytes holds that a layout which can be filled gives what evaluating the
// expression gives, and tells whether it could.
func sameBytes(t *testing.T, in *inputs, scope func() *Scope) (filled, right bool) {
	t.Helper()
	want, failure := in.compute(scope())
	if in.template == nil {
		return false, failure == nil
	}
	got, filled := in.template.render(scope())
	switch {
	case filled && failure != nil:
		t.Fatalf("%s: filled with %s, and evaluating it fails: %v", in.expr.Range(), got, failure)
	case filled && string(got) != string(want):
		t.Fatalf("%s:\nfilled    %s\nevaluated %s", in.expr.Range(), got, want)
	}
	return filled, failure == nil
}

func layoutScope(f *Flow, payload, output, param string) func() *Scope {
	return func() *Scope {
		params := map[string]json.RawMessage{}
		for _, p := range f.Params {
			params[p.Name] = json.RawMessage(param)
		}
		s := f.Scope(aRun(f, payload, params))
		s.Settle(done("a", output))
		return s
	}
}

// TestLayouts fills each shape with JSON that fits all of it.
func TestLayouts(t *testing.T) {
	t.Parallel()
	f := loadLayouts(t, layoutShapes)
	const value = ` {"n" : 1.0, "items":[{"x":1e3, "b":"e\u0301", "a":{}}, {"x":[1,"\/"]}], "\u0061": {"b":{"c":{"d":[[0,{"e":"\ud83d\ude00"}]]}}}, "n":-0.0} `
	for i, shape := range layoutShapes {
		payload := value
		if strings.Contains(shape, "payload[0]") {
			payload = "[" + value + "]"
		}
		task := f.task(t, fmt.Sprintf("t%d", i))
		for what, in := range map[string]*inputs{"input": task.input, "config": task.config} {
			if in.template == nil {
				t.Errorf("%s: the %s is not taken apart", shape, what)
				continue
			}
			// A text by number is beyond layouts, a param of every type cannot be.
			filled, right := sameBytes(t, in, layoutScope(f, payload, value, `null`))
			if able := !strings.Contains(shape, `["0"]`) && !strings.Contains(shape, "param."); filled != able && right {
				t.Errorf("%s: %s filled %v", shape, what, filled)
			}
		}
	}
}

// TestParamsInLayouts holds that params of a simple type are passed on as they
// are recorded, and converted when they are not of their type.
func TestParamsInLayouts(t *testing.T) {
	t.Parallel()
	f := loadLayouts(t, []string{`{ p = param.any }`, `{ p = param.text }`, `{ p = param.flag }`, `{ p = param.size }`, `{ p = param.list }`, `{ p = param.hidden }`})
	for _, param := range []string{`null`, `""`, `"1"`, `"true"`, `true`, ` false`, `1.50`, `-0`, `[]`, `["b",1]`, `{"b":1,"a":2}`, `1e999999`, `{`, ``} {
		for i := range 6 {
			in := f.task(t, fmt.Sprintf("t%d", i)).input
			if filled, right := sameBytes(t, in, layoutScope(f, "", "", param)); filled != right {
				t.Errorf("%s: filled %v, evaluated %v", param, filled, right)
			}
		}
	}
}

// TestRandomLayouts compares random expressions on random JSON.
func TestRandomLayouts(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	filled, tried := 0, 0
	for range 20 {
		shapes := make([]string, 30)
		for i := range shapes {
			shapes[i] = randomShape(r, 3)
		}
		f := loadLayouts(t, shapes)
		for range 15 {
			scope := layoutScope(f, randomJSON(r, 4), randomJSON(r, 4), randomJSON(r, 1))
			for _, task := range f.Tasks[1:] {
				for _, in := range []*inputs{task.input, task.config} {
					ok, right := sameBytes(t, in, scope)
					if right && in.template != nil {
						tried++
					}
					if ok {
						filled++
					}
				}
			}
		}
	}
	if tried < 1000 || filled < tried*9/10 {
		t.Errorf("only %d of %d were filled", filled, tried)
	}
}

var randomNames = []string{"n", "a", "items", "b", "e\u0301", "\u00e9", "Z", "a.b", ""}

func pick[T any](r *rand.Rand, from []T) T { return from[r.IntN(len(from))] }

// randomShape is an expression of references, constructors and a few others.
func randomShape(r *rand.Rand, depth int) string {
	kind := r.IntN(10)
	if depth == 0 {
		kind %= 6
	}
	switch kind {
	case 0, 1, 2, 3:
		ref := pick(r, []string{"task.a.output", "trigger.payload", "param.any", "local.late", "local.more"})
		for ref[0] != 'l' && r.IntN(3) > 0 { // what locals have not is found at load
			ref += pick(r, []string{".n", ".a", ".items", "[0]", "[1]", `["n"]`, fmt.Sprintf("[%q]", pick(r, randomNames)), `["0"]`})
		}
		return pick(r, []string{ref, "(" + ref + ")", "\"${" + ref + "}\"", "try(" + ref + ", null)", "can(" + ref + ")"})
	case 4:
		return pick(r, []string{"run.id", "trigger.time", "param.size", "param.text", "task.a.state", "task.a.duration", "trigger.headers", "flow.name", "local.fixed"})
	case 5:
		return pick(r, []string{`"x\n\u00e9"`, "1.50", "-3", "1e30", "null", "true", "var.v", `"a ${run.id}"`, "[]", "{}", "1 + 2"})
	case 6, 7:
		var items []string
		for range r.IntN(4) {
			items = append(items, randomShape(r, depth-1))
		}
		return "[" + strings.Join(items, ", ") + "]"
	}
	var fields []string
	for range r.IntN(5) {
		fields = append(fields, fmt.Sprintf("%q = %s", pick(r, randomNames), randomShape(r, depth-1)))
	}
	return "{ " + strings.Join(fields, ", ") + " }"
}

// randomJSON is JSON in any form that the grammar allows, and now and then not.
func randomJSON(r *rand.Rand, depth int) string {
	space := pick(r, []string{"", "", "", " ", "\n\t"})
	kind := r.IntN(10)
	if depth == 0 {
		kind %= 6
	}
	var parts []string
	switch kind {
	case 0:
		return space + pick(r, []string{"null", "true", "false"}) + space
	case 1, 2, 3:
		return space + pick(r, []string{"0", "-0", "1", "12345678901234567890", "1.0", "1.50", "-0.0", "0.1", "1e3", "1E-2", "123456.789012345678", "9007199254740993", "1e400", "-12.25"})
	case 4, 5:
		return space + pick(r, []string{`""`, `"x"`, `"e\u0301"`, "\"e\u0301\"", `"\u00e9"`, `"\n\/\\\""`, `"<&>\u2028"`, `"\ud800"`, "\"\xff\"", `"\ud83d\ude00"`}) + space
	case 6, 7:
		for range r.IntN(4) {
			parts = append(parts, randomJSON(r, depth-1))
		}
		return "[" + strings.Join(parts, ",") + space + "]"
	}
	for range r.IntN(6) {
		name, _ := json.Marshal(pick(r, randomNames))
		if r.IntN(20) == 0 {
			name = []byte(`"\u006e"`)
		}
		value := randomJSON(r, depth-1)
		if r.IntN(200) == 0 {
			value = pick(r, []string{"1e99999", "nul", "01", `"\x"`, "]"})
		}
		parts = append(parts, string(name)+space+":"+value)
	}
	return "{" + space + strings.Join(parts, space+",") + "}"
}

// TestLargeJSONIsConvertedAtLast holds that large JSON is scanned for some
// references only, after which it is worth converting.
func TestLargeJSONIsConvertedAtLast(t *testing.T) {
	t.Parallel()
	f := loadLayouts(t, []string{`{ n = task.a.output.n }`})
	output := `{"fill":"` + strings.Repeat("x", largeJSON) + `","n":7}`
	s := layoutScope(f, "", output, "null")()
	for i := range 2 * maxScans {
		if got := input(t, f.task(t, "t0"), s); got != `{"n":7}` {
			t.Fatal(got)
		}
		if converted := len(s.kept) > 0; converted != (i >= maxScans) {
			t.Fatalf("after %d references, converted is %v", i+1, converted)
		}
	}
	s.Settle(done("a", `{"n":8}`))
	if got := input(t, f.task(t, "t0"), s); got != `{"n":8}` {
		t.Error(got)
	}
}

// TestFillingAllocatesLittle bounds what an evaluation costs on the way that most
// of them take. Allocations are counted in all goroutines: it runs by itself.
func TestFillingAllocatesLittle(t *testing.T) {
	f := loadLayouts(t, []string{`{ n = task.a.output.n, i = 4 }`, `task.a.output`, `trigger.payload`})
	s := layoutScope(f, `{"b":1}`, `{"n":12345,"text":"hello"}`, "null")()
	for i, most := range []float64{1, 0, 0} {
		task := f.task(t, fmt.Sprintf("t%d", i))
		if got := testing.AllocsPerRun(100, func() { task.Input(s) }); got > most {
			t.Errorf("t%d: %v allocations", i, got)
		}
	}
	if got := testing.AllocsPerRun(100, func() { f.Tasks[0].When(s); s.Settle(s.task(0)) }); got > 0 {
		t.Errorf("a task without a condition costs %v allocations", got)
	}
}

// TestLayoutsOfJSONSyntax holds that the JSON syntax gives the same layouts.
func TestLayoutsOfJSONSyntax(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"f.hcl.json": `{"flow": {"f": {"task": {
		"a": {"plugin": "./greet.wasm"},
		"t": {"plugin": "./greet.wasm", "input": {"n": "${task.a.output.n}", "${upper(\"k\")}": ["x", 1.50, null, "${trigger.payload}", "a ${run.id}"]}},
		"u": {"plugin": "./greet.wasm", "input": "${task.a.output}"}
	}}}}`}, Options{})
	f := onlyFlow(t, set)
	scope := layoutScope(f, `{"b":1,"a":2}`, `{"z":1.0,"n":"x"}`, "")
	if filled, _ := sameBytes(t, f.task(t, "t").input, scope); !filled {
		t.Error("not filled")
	}
	if got, want := input(t, f.task(t, "t"), scope()), `{"K":["x",1.5,null,{"a":2,"b":1},"a 01JABCDEFGHJKMNPQRSTVWXYZ0"],"n":"x"}`; got != want {
		t.Error(got)
	}
	if got := input(t, f.task(t, "u"), scope()); got != `{"z":1.0,"n":"x"}` {
		t.Errorf("a whole reference does not pass bytes on: %s", got)
	}
}

// FuzzLayout compares filling with evaluating on any JSON.
func FuzzLayout(f *testing.F) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 30 {
		f.Add(randomJSON(r, 4), randomJSON(r, 4), randomJSON(r, 1))
	}
	flow := loadLayouts(f, layoutShapes)
	f.Fuzz(func(t *testing.T, payload, output, param string) {
		scope := layoutScope(flow, payload, output, param)
		for _, task := range flow.Tasks[1:] {
			sameBytes(t, task.input, scope)
			sameBytes(t, task.config, scope)
		}
		if _, failure := flow.Output(scope()); failure != nil {
			t.Fatal(failure)
		}
	})
}

// TestLayoutsOfFailedTasks passes on null, as expressions see it.
func TestLayoutsOfFailedTasks(t *testing.T) {
	t.Parallel()
	f := loadLayouts(t, []string{`{ o = task.a.output, s = task.a.state }`, `{ n = task.a.output.n, s = 1 }`})
	failed := done("a", "")
	failed.State, failed.Failure = run.Failed, &run.Failure{Outcome: run.OutcomeFailed}
	s := f.Scope(aRun(f, "", nil))
	s.Settle(failed)
	if got := input(t, f.task(t, "t0"), s); got != `{"o":null,"s":"failed"}` {
		t.Error(got)
	}
	if _, failure := f.task(t, "t1").Input(s); failure == nil || !strings.Contains(failure.Message, "null") {
		t.Errorf("%+v", failure)
	}
}

package flows

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// FuzzFanOutsAreSound is [FuzzTypesAreSound] for a task that is run for each item
// of what another one gives, alone or in a group: what its arguments make of the
// items, and what others make of the outputs.
func FuzzFanOutsAreSound(f *testing.F) {
	for seed := range uint64(400) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, seed uint64) {
		w := &wiring{Rand: rand.New(rand.NewPCG(seed, 3))}
		o := w.fanOut()
		loose, diags := o.load(t, nil, nil)
		if diags != "" {
			return // expressions that are wrong whatever they are given
		}
		inputs, result, ok := o.play(t, w, loose)
		if !ok {
			return
		}
		var given []any
		for _, input := range inputs {
			given = append(given, w.schemaOf(input, 3))
		}
		if _, diags := o.load(t, map[string]any{"anyOf": given}, w.schemaOf(result, 3)); diags != "" {
			t.Errorf("refused, and works in a run\na gives a list of %s\nb gives %s\nb is given %v\nc is given %v\n%s", schemaText(o.item), schemaText(o.b), inputs, result, diags)
		}
	})
}

// fannedOut is a flow of three tasks: a gives a list of items, b is run for each of
// what is made of it, and c gets what b gives.
type fannedOut struct {
	item, b              map[string]any // what a has in its list, and what b gives
	over, inputB, inputC string
	local                bool // for_each goes through a local
	onError, mode        string
}

func (w *wiring) fanOut() *fannedOut {
	o := &fannedOut{item: w.schema(w.IntN(3)), b: w.schema(2), local: w.IntN(3) == 0, onError: w.pick("fail", "continue"), mode: w.pick("", "parallel", "serial", "first_success", "race")}
	kind := w.pick("list", "object", "set")
	o.over = map[string]string{
		"list": w.pick("task.a.output", "[for v in task.a.output : v]", "[task.a.output[0], task.a.output[0]]", "concat(task.a.output, task.a.output)",
			"flatten([task.a.output])", "tolist(task.a.output)", "coalesce(null, task.a.output)", "task.a.output[*]", "run.id == \"\" ? null : task.a.output"),
		"object": w.pick("{ for i, v in task.a.output : \"k${i}\" => v }", "{ k0 = task.a.output[0], \"b\" = task.a.output[0] }", "zipmap([\"k0\"], [task.a.output[0]])",
			"merge({ k0 = task.a.output[0] }, { b = 1 })", "tomap({ k0 = task.a.output[0] })", "{ (\"k0\") = 1, (run.id) = 2 }"),
		"set": w.pick("toset(task.a.output)", "toset([\"k0\", \"b\"])", "setunion(task.a.output, task.a.output)", "coalesce(toset(task.a.output), task.a.output)", "toset([1, true])",
			"var.set", "coalesce(var.set, [1])", "toset([task.a.output])", "run.id == \"\" ? null : var.set"),
	}[kind]
	o.inputB = w.pick("each.value", w.copied(o.item, "each.value", 0), "{ k = each.key, i = each.index, v = each.value }", "\"${each.key}-${each.index}\"", "each.key", "each.key + 1",
		w.expression(o.item, "each.value", 1))
	o.inputC = w.outputs(kind)
	return o
}

// outputs is an expression of what b gives, or the group in which it is.
func (w *wiring) outputs(kind string) string {
	of := w.pick("task.b.output", "group.g.output.b", "group.g.output")
	one := of + w.pick("[0]", ".k0", "[\"k0\"]", "[*]", "[0].x", "[*].y")
	return w.pick(of, one, "[for v in "+of+" : v]", "{ for k, v in "+of+" : k => v }", "{ for k, v in "+of+" : \"x${k}\" => { v = v } }", "[for k, v in "+of+" : k + 1]",
		"length("+of+")", "keys("+of+")", "values("+of+")", "flatten("+of+")", "try("+one+", 1)", "task.b.errors", "task.b.errors[*].key", "[for e in task.b.errors : e.key + 1]",
		"{ errors = task.b.errors[*].message, state = task.b.state }", "coalesce("+one+", { x = 1 })")
}

// load loads the flow with what b and c take; with nothing known of any types when
// that is nil.
func (o *fannedOut) load(t *testing.T, b, c map[string]any) (*Flow, string) {
	t.Helper()
	locals, begin, end := "", "", ""
	over := o.over
	if o.local {
		locals, over = fmt.Sprintf("locals {\n all = %s\n}\n", o.over), "local.all"
	}
	if o.mode != "" {
		begin, end = fmt.Sprintf("group \"g\" {\n mode = %q\n", o.mode), "}\n"
	}
	source := fmt.Sprintf(`variable "set" {
  type    = set(string)
  default = ["k0", "b"]
}

flow "f" {
%s
task "a" {
  plugin   = "./m.wasm"
  function = "a"
}
%s
task "b" {
  plugin   = "./m.wasm"
  function = "b"
  on_error = %q
  for_each = %s
  input    = %s
}
%s
task "c" {
  plugin   = "./m.wasm"
  function = "c"
  input    = %s
}
}
`, locals, begin, o.onError, over, o.inputB, end, o.inputC)
	module := oneModule{Digest: digestOf("m"), ABI: "flowhost", Functions: []run.FunctionSignature{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	if b != nil {
		module.Functions[0].Output = json.RawMessage(schemaText(map[string]any{"type": "array", "items": o.item}))
		module.Functions[1].Output, module.Functions[1].Input = json.RawMessage(schemaText(o.b)), json.RawMessage(schemaText(b))
		module.Functions[2].Input = json.RawMessage(schemaText(c))
	}
	set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": source})}, Options{Catalog: module})
	if len(diags) > 0 {
		return nil, source + text(set, diags)
	}
	return set.Flows[0], ""
}

// play runs the flow. It gives what b was given for each item, and what c was.
func (o *fannedOut) play(t *testing.T, w *wiring, f *Flow) (inputs []any, result any, ok bool) {
	t.Helper()
	r := aRun(f, "", nil)
	s := f.Scope(r)
	s.Settle(done("a", valueText([]any{w.value(o.item), w.value(o.item)})))
	b, failed := f.task(t, "b"), false
	if _, ok := play(s, r, b, "", func() {
		input, failure := b.Input(s)
		if failure != nil {
			failed = true
			return
		}
		var v any
		if err := json.Unmarshal(input, &v); err != nil {
			t.Fatal(err)
		}
		inputs = append(inputs, v)
	}); !ok || failed || len(inputs) == 0 {
		return nil, nil, false
	}
	for _, item := range r.Tasks {
		item.Output = json.RawMessage(valueText(w.value(o.b)))
		if o.onError == "continue" && w.IntN(4) == 0 {
			item.State, item.Output, item.Failure = run.Failed, nil, &run.Failure{Outcome: run.OutcomeFailed, Message: "no"}
		}
	}
	s.Settle(done("group.g", ""))
	out, failure := f.task(t, "c").Input(s)
	if failure != nil || json.Unmarshal(out, &result) != nil {
		return nil, nil, false
	}
	return inputs, result, true
}

func valueText(v any) string {
	out, _ := json.Marshal(v)
	return string(out)
}

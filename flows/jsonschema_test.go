package flows

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/flows/internal/funcs"
	"github.com/flowhost/flowhost/flows/internal/jsonschema"
	"github.com/flowhost/flowhost/run"
)

// TestTypesOfFunctions: what a function is said to give is what it gives.
func TestTypesOfFunctions(t *testing.T) {
	t.Parallel()
	want := map[string]string{
		"length": "number | null", "upper": "string | null", "split": "list(string | null) | null", "jsonencode": "string | null",
		"tonumber": "number | null", "merge": "any", "try": "any", "flatten": "any", "sensitive": "any", "lookup": "any", "range": "list(number | null) | null",
		"startswith": "bool | null", "jsondecode": "any", "regex": "any", "one": "any",
	}
	functions := funcs.Table()
	arity := map[string]int{"split": 2, "merge": 2, "lookup": 3, "range": 1, "startswith": 2, "regex": 2}
	for name, typ := range want {
		if got := returned(functions[name], max(1, arity[name])).Text(); got != typ {
			t.Errorf("%s gives %s, not %s", name, got, typ)
		}
	}
	if got := returned(functions["upper"], 7); !got.Open() {
		t.Errorf("upper with seven arguments gives %s", got.Text())
	}
}

// TestSensitiveValuesAreNotRepeated: a diagnostic about a value says of which kind
// it is.
func TestSensitiveValuesAreNotRepeated(t *testing.T) {
	t.Parallel()
	const src = `variable "mode" {
  type      = string
  sensitive = true
}

flow "f" {
  task "a" {
    plugin   = "./typed.wasm"
    function = "fetch"
    input    = { url = "u", count = var.mode, mode = var.mode }
  }
}
`
	set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": src})}, Options{
		Catalog: modules, Vars: map[string]VarValue{"mode": {Text: "hunter2", From: "--var mode"}},
	})
	if out := text(set, diags); len(diags) != 1 || strings.Contains(out, "hunter2") || !strings.Contains(out, "var.mode is a string") {
		t.Error(out)
	}
}

// TestRecordedDefinitionsAreNotChecked: a run in progress goes on with what it was
// accepted with, also when the types of its modules are known only now.
func TestRecordedDefinitionsAreNotChecked(t *testing.T) {
	t.Parallel()
	src, err := os.ReadFile(filepath.Join("testdata", "diagnostics", "types-input.hcl"))
	if err != nil {
		t.Fatal(err)
	}
	definition := run.Definition{Files: map[string][]byte{"f.hcl": src}, Plugins: map[string]string{"./typed.wasm": digestOf("typed.wasm")}}
	set, diags := Restore(t.Context(), &definition, Options{Catalog: modules})
	if len(diags) > 0 {
		t.Error(text(set, diags))
	}
}

// TestNothingWrongWhereNothingIsKnown loads what would be wrong if it was typed.
func TestNothingWrongWhereNothingIsKnown(t *testing.T) {
	t.Parallel()
	load(t, map[string]string{"f.hcl": `flow "f" {
  param "any" {
  }

  task "a" {
    plugin   = "./typed.wasm"
    function = "fetch"
    input    = { url = param.any }
  }

  task "free" {
    plugin = "./run.wasm"
    when   = try(task.a.output.nothing, true)
    input = {
      note    = task.a.output.note
      extra   = task.a.output.extra.of.any["kind"][0]
      tried   = can(task.a.output.nothing.at.all) ? 1 : 2
      index   = task.a.output.items[length(task.a.output.name)].price + 1
      grouped = { for i in task.a.output.items : i.sku => i.price... }
      joined  = join(", ", task.a.output.items[*].sku)
      text    = "%{for i in task.a.output.items}${i.sku}: ${i.price}%{endfor}"
      payload = trigger.payload.of[0].any
    }
  }

  task "b" {
    plugin   = "./typed.wasm"
    function = "score"
    input = {
      skus  = [for i in task.a.output.items : i.sku if i.price > 1]
      total = task.a.output.total == 0 ? null : task.free.output.number
    }
  }

  task "c" {
    plugin   = "./typed.wasm"
    function = "score"
    input    = merge(task.a.output, { skus = [] })
  }

  task "d" {
    plugin   = "./typed.wasm"
    function = "fetch"
    config   = task.free.output
    input    = { url = coalesce(task.b.output.labels.url, task.a.output.note, "x"), mode = lower("FAST") }
  }

  task "e" {
    plugin   = "./typed.wasm"
    function = "tree"
    input    = { value = 1, left = { value = 2, right = null }, right = { value = 3 } }
  }
}
`}, Options{})
}

// A type with many fields of its own kind is spelt out as far as there is room.
func TestTypeTextOfRecursiveTypes(t *testing.T) {
	t.Parallel()
	var fields []string
	for name := 'a'; name <= 'z'; name++ {
		fields = append(fields, fmt.Sprintf(`"%c":{"$ref":"#"}`, name))
	}
	words := strings.Repeat(`"abcdefgh",`, 10_000) + `"i"`
	for _, schema := range []string{
		`{"type":"object","properties":{` + strings.Join(fields, ",") + `}}`,
		`{"type":"array","items":{"type":["array","object"],"items":{"$ref":"#"},"additionalProperties":{"$ref":"#"}}}`,
		`{"enum":[` + words + `]}`,
	} {
		if got := jsonschema.TypeText(json.RawMessage(schema)); len(got) > 32<<10 || !strings.Contains(got, "…") {
			t.Errorf("%.60s: %d bytes, %.100s", schema, len(got), got)
		}
	}
}

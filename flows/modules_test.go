package flows

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

const small = `
flow "NAME" {
  task "t" {
    plugin = "./greet.wasm"
  }
}
`

func smallFlow(name string) string { return strings.Replace(small, "NAME", name, 1) }

func names(set *Set) []string {
	var out []string
	for _, f := range set.Flows {
		out = append(out, f.Name)
	}
	return out
}

// complaints gives the place and the rule of each diagnostic.
func complaints(diags hcl.Diagnostics) []string {
	var out []string
	for _, d := range diags {
		out = append(out, diag.Place(*d.Subject)+" "+string(RuleOf(d)))
	}
	return out
}

func TestFoldersAreModules(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{
		"b.hcl":                  smallFlow("b"),
		"a.hcl.json":             `{"flow": {"a": {"task": {"t": {"plugin": "./greet.wasm"}}}}}`,
		"billing/invoice.hcl":    smallFlow("invoice"),
		"billing/eu/vat.hcl":     smallFlow("vat"),
		"prod.vars.hcl":          `x = 1`,
		"a.test.hcl":             `anything {`,
		"flowhost.hcl":           `listen = "x"`,
		".hidden/x.hcl":          `broken {`,
		".x.hcl":                 `broken {`,
		"notes/readme.txt":       `no flows`,
		"flowhost.vars.hcl.json": `{}`,
	}, Options{})
	if diff := cmp.Diff([]string{"a", "b", "billing/eu/vat", "billing/invoice"}, names(set)); diff != "" {
		t.Error(diff)
	}
	if f := set.Flow("billing/eu/vat"); f.Definition.Prefix != "billing/eu/" || len(f.Definition.Files) != 1 {
		t.Errorf("%+v", f.Definition)
	}
	if set.Flow("a").Definition != set.Flow("b").Definition || set.Flow("a").DefinitionDigest != set.Flow("b").DefinitionDigest {
		t.Error("flows of one folder have one definition")
	}
	if set.Flow("none") != nil {
		t.Error("a flow that is not there")
	}
}

func TestAFileAloneIsAModule(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a.hcl": smallFlow("a"), "b.hcl": `broken {`, "c.txt": ""})
	set, diags := Load(t.Context(), []string{filepath.Join(dir, "a.hcl"), filepath.Join(dir, ".", "a.hcl")}, Options{Catalog: modules})
	if len(diags) != 1 || diags.HasErrors() || diags[0].Summary != "File left out" || len(set.Flows) != 1 {
		t.Error(text(set, diags))
	}
	for _, bad := range []string{"c.txt", "none.hcl", "none"} {
		if set, diags := Load(t.Context(), []string{filepath.Join(dir, bad)}, Options{}); !diags.HasErrors() || RuleOf(diags[0]) != RulePath || set == nil {
			t.Errorf("%s: %v", bad, diags)
		}
	}
	if _, diags := Load(t.Context(), []string{t.TempDir()}, Options{}); !diags.HasErrors() {
		t.Error("an empty folder is accepted")
	}
}

// Under two paths a file would give two flows with different names, and each
// schedule would fire twice.
func TestAFileIsReadUnderOnePathOnly(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"a.hcl": smallFlow("a"), "sub/b.hcl": smallFlow("b")})
	sub := filepath.Join(dir, "sub")
	for _, paths := range [][]string{{dir, sub}, {dir, filepath.Join(sub, "b.hcl")}, {filepath.Join(dir, "a.hcl"), dir}} {
		_, diags := Load(t.Context(), paths, Options{Catalog: modules})
		if len(diags) != 1 || diags[0].Summary != "File given twice" || RuleOf(diags[0]) != RulePath {
			t.Errorf("%v: %v", paths, diags)
		}
	}
	if set, diags := Load(t.Context(), []string{dir, dir + "/", sub + "/.."}, Options{Catalog: modules}); diags.HasErrors() || len(set.Flows) != 2 {
		t.Errorf("one folder in three spellings: %v", diags)
	}
}

func TestErrorsOfAllFilesInOneGo(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.hcl":       "flow \"a\" {\n  task \"t\" {\n    plugin = plugin.missing\n    input = param.missing\n  }\n}\n",
		"b.hcl":       "locals {\n  x = \n}\n",
		"c.hcl":       "flow \"a\" {\n}\n\nlocals {\n  y = 1\n}\n",
		"d.hcl":       "locals {\n  y = var.z\n}\n",
		"sub/e.hcl":   "flow \"e\" {\n  bogus = 1\n}\n",
		"sub x/f.hcl": smallFlow("f"),
	})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	want := []string{"a.hcl:4 unknown-name", "b.hcl:2 syntax", "c.hcl:1 duplicate", "d.hcl:2 duplicate", "f.hcl:1 name", "e.hcl:2 unknown-argument"}
	if diff := cmp.Diff(want, complaints(diags)); diff != "" {
		t.Error(diff, text(set, diags))
	}
	if !strings.Contains(text(set, diags), `declared already, at a.hcl:1`) {
		t.Error(text(set, diags))
	}
}

func TestTheSameFlowInTwoFolders(t *testing.T) {
	t.Parallel()
	one, two := folder(t, map[string]string{"a.hcl": smallFlow("x")}), folder(t, map[string]string{"b.hcl": smallFlow("x")})
	_, diags := Load(t.Context(), []string{one, two}, Options{Catalog: modules})
	if len(diags) != 1 || RuleOf(diags[0]) != RuleDuplicate || !strings.Contains(diags[0].Detail, "a.hcl:2") {
		t.Error(diags)
	}
}

func TestJSONTwin(t *testing.T) {
	t.Parallel()
	native := load(t, map[string]string{"f.hcl": `
		variable "v" {
		  type    = list(number)
		  default = [1, 2]
		}
		plugin "p" {
		  source = "./pricing.wasm"
		  limits {
		    memory = "1MiB"
		  }
		}
		locals {
		  k = "x"
		}
		flow "f" {
		  labels = { a = "b" }
		  param "n" {
		    type    = number
		    default = 3
		  }
		  trigger "schedule" "s" {
		    cron     = "15 2 * * *"
		    timezone = "Europe/Berlin"
		    params   = { n = 4 }
		  }
		  locals {
		    l = task.a.output.x
		  }
		  task "a" {
		    plugin  = plugin.p
		    input   = { n = param.n, v = var.v, k = "k-${local.k}" }
		    retries = 2
		  }
		  task "b" {
		    plugin   = "./greet.wasm"
		    input    = local.l
		    after    = [task.a]
		    when     = param.n > 2
		    function = "greet"
		    retry {
		      attempts = 5
		    }
		  }
		  output "o" {
		    value = task.b.output
		  }
		  on_failure {
		    task "h" {
		      plugin = plugin.p
		      input  = error.message
		    }
		  }
		}`}, Options{})
	twin := load(t, map[string]string{"f.hcl.json": `{
		"variable": {"v": {"type": "list(number)", "default": [1, 2]}},
		"plugin": {"p": {"source": "./pricing.wasm", "limits": {"memory": "1MiB"}}},
		"locals": {"k": "x"},
		"flow": {"f": {
			"labels": {"a": "b"},
			"param": {"n": {"type": "number", "default": 3}},
			"trigger": {"schedule": {"s": {"cron": "15 2 * * *", "timezone": "Europe/Berlin", "params": {"n": 4}}}},
			"locals": {"l": "${task.a.output.x}"},
			"task": {
				"a": {"plugin": "plugin.p", "input": {"n": "${param.n}", "v": "${var.v}", "k": "k-${local.k}"}, "retries": 2},
				"b": {"plugin": "./greet.wasm", "input": "${local.l}", "after": ["task.a"], "when": "${param.n > 2}", "function": "greet", "retry": {"attempts": 5}}
			},
			"output": {"o": {"value": "${task.b.output}"}},
			"on_failure": {"task": {"h": {"plugin": "${plugin.p}", "input": "${error.message}"}}}
		}}
	}`}, Options{})
	if diff := cmp.Diff(behaviour(t, native), behaviour(t, twin)); diff != "" {
		t.Error(diff)
	}
}

// behaviour describes what a set with one flow does.
func behaviour(t *testing.T, set *Set) map[string]any {
	t.Helper()
	f := onlyFlow(t, set)
	out := map[string]any{"labels": f.Labels, "names": taskNames(f), "order": f.Graph.Order()}
	var edges []Edge
	for _, e := range f.Edges() {
		e.Range = hcl.Range{}
		edges = append(edges, e)
	}
	out["edges"] = edges
	trigger := f.Triggers[0]
	next, _ := trigger.Schedule.Next(aRun(f, "", nil).StartedAt)
	out["trigger"] = []any{trigger.Name, trigger.Kind, trigger.Spec, trigger.Zone, trigger.Enabled, next.UTC()}
	a, err := f.Admit(request("s", ""))
	if err != nil {
		t.Fatal(err)
	}
	out["params"] = a.Params
	s := f.Scope(aRun(f, "", a.Params))
	s.Settle(done("a", `{"x":"<1>"}`))
	s.Settle(done("b", `[1.0]`))
	for _, task := range f.AllTasks() {
		wanted, _ := task.When(s)
		out["task "+task.Name] = []any{input(t, task, s), wanted, task.Plugin, task.Function, task.Retry, task.Limits, task.Timeout}
	}
	result, failure := f.Output(s)
	if failure != nil {
		t.Fatal(failure)
	}
	out["output"] = strings.Replace(string(result), "1.0", "1", 1) // only the native form passes bytes on
	return out
}

func TestRelativePathsAndLinksStayInside(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"m/f.hcl":      "locals {\n  x = file(\"data/a.txt\")\n  y = file(\"link.txt\")\n}\n" + smallFlow("f"),
		"m/data/a.txt": "a",
		"secret.txt":   "s",
	})
	if err := os.Symlink(filepath.Join(dir, "secret.txt"), filepath.Join(dir, "m", "link.txt")); err != nil {
		t.Fatal(err)
	}
	_, diags := Load(t.Context(), []string{filepath.Join(dir, "m")}, Options{Catalog: modules})
	if diff := cmp.Diff([]string{"f.hcl:3 expression"}, complaints(diags)); diff != "" {
		t.Error(diff, diags)
	}
}

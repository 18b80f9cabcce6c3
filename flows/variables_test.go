package flows

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const variablesFlow = `
variable "region" {
  type    = string
  default = "default"
}
variable "n" {
  type    = number
  default = 0
}
variable "loose" {
  default = null
}
variable "token" {
  type      = object({ key = string })
  default   = { key = "none" }
  sensitive = true
}
flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input  = { region = var.region, n = var.n, loose = var.loose, token = var.token.key }
  }
}
`

func TestPrecedenceOfValues(t *testing.T) {
	t.Parallel()
	outside := folder(t, map[string]string{"x.hcl": "region = \"x\"\nn = 10\n", "y.hcl.json": `{"n": 11}`})
	files := []string{filepath.Join(outside, "x.hcl"), filepath.Join(outside, "y.hcl.json")}
	own := map[string]string{"flowhost.vars.hcl": "region = \"own\"\nloose = 5\n", "b.auto.vars.hcl": "region = \"auto\"\n", "prod.vars.hcl": "region = \"prod\"\n"}
	for name, c := range map[string]struct {
		files   map[string]string
		options Options
		want    string
	}{
		"defaults":  {nil, Options{}, `{"loose":null,"n":0,"region":"default","token":"none"}`},
		"own files": {own, Options{}, `{"loose":5,"n":0,"region":"auto","token":"none"}`},
		"var files": {own, Options{VarFiles: files}, `{"loose":5,"n":11,"region":"x","token":"none"}`},
		"vars": {own, Options{VarFiles: files, Vars: map[string]VarValue{
			"region": {Text: `"3 + 4"`}, "n": {Text: "-12.50"}, "loose": {Text: "[1]"}, "token": {Text: `{ key = "k" }`}, "stray": {Ambient: true},
		}}, `{"loose":"[1]","n":-12.5,"region":"\"3 + 4\"","token":"k"}`},
	} {
		all := map[string]string{"f.hcl": variablesFlow}
		for name, content := range c.files {
			all[name] = content
		}
		f := onlyFlow(t, load(t, all, c.options))
		if got := input(t, f.Tasks[0], f.Scope(aRun(f, "", nil))); got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
		if _, recorded := f.Definition.Vars["token"]; recorded {
			t.Errorf("%s: a sensitive value is recorded", name)
		}
	}
}

func TestErrorsOfValues(t *testing.T) {
	t.Parallel()
	outside := folder(t, map[string]string{"x.hcl": "regoin = \"x\"\n"})
	dir := folder(t, map[string]string{
		"f.hcl":             variablesFlow,
		"a.auto.vars.hcl":   "n = var.region\nm = 1\nregion = [1]\n",
		"flowhost.vars.hcl": "loose = {\n",
	})
	set, diags := Load(t.Context(), []string{dir}, Options{
		Catalog:  modules,
		VarFiles: []string{filepath.Join(outside, "x.hcl"), filepath.Join(outside, "gone.hcl")},
		Vars: map[string]VarValue{
			"token": {Text: `hunter2 {`, From: "--var token"}, "other": {Text: "x", From: "--var other"}, "n": {Text: "many", From: "FH_VAR_n"},
		},
	})
	want := []string{"--var other:1 variable", "f.hcl:13 variable", "x.hcl:1 variable", "gone.hcl:1 path", "FH_VAR_n:1 variable"}
	got := complaints(diags)
	for _, w := range append(want, "a.auto.vars.hcl:2 variable", "a.auto.vars.hcl:3 variable", "flowhost.vars.hcl:2 syntax") {
		if !strings.Contains(strings.Join(got, "\n"), w) {
			t.Errorf("%s is missing in %q", w, got)
		}
	}
	out := text(set, diags)
	if strings.Contains(out, "hunter2") {
		t.Errorf("a secret is shown: %s", out)
	}
	for _, part := range []string{`Did you mean region?`, "many", `The value of var.region from `} {
		if !strings.Contains(out, part) {
			t.Errorf("%q is missing in %s", part, out)
		}
	}
}

func TestSensitiveValuesAreNotShown(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.hcl": `
		variable "token" {
		  sensitive = true
		}
		locals {
		  derived = "${var.token}-x"
		  bad     = upper(var.token) + 1
		  regex   = regex("[a", local.derived)
		}
		flow "a" {
		  timeout = "${var.token}"
		  task "t" {
		    plugin = "./greet.wasm"
		    run_on = var.token
		    retries = local.derived
		  }
		  task "u" {
		    plugin = "./${var.token}.wasm"
		  }
		  trigger "schedule" "s" {
		    cron = var.token
		    timezone = var.token
		  }
		  trigger "message" "m" {
		    subject = " ${var.token}"
		  }
		}`})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules, Vars: map[string]VarValue{"token": {Text: "hunter2", From: "--var token"}}})
	if len(diags) < 7 {
		t.Errorf("%d diagnostics", len(diags))
	}
	out := text(set, diags) + string(DiagnosticsJSON(diags, set.Files()))
	if i := strings.Index(strings.ToLower(out), "hunter2"); i >= 0 {
		t.Errorf("a secret is shown: …%s…", out[max(0, i-200):i+20])
	}
}

func TestSensitiveValuesOfFilesAreNotShown(t *testing.T) {
	t.Parallel()
	for _, value := range []string{`"hunter2"`, `upper("hunter2")`, `["hunter2"]`, `var.hunter2`} {
		dir := folder(t, map[string]string{
			"a.auto.vars.hcl": "token = " + value + "\n",
			"f.hcl":           "variable \"token\" {\n  type = number\n  sensitive = true\n}\n" + smallFlow("a"),
		})
		set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
		if diff := cmp.Diff([]string{"f.hcl:1 variable"}, complaints(diags)); diff != "" || strings.Contains(text(set, diags), "hunter2") {
			t.Error(diff, text(set, diags))
		}
	}
}

func TestConditionsOfVariables(t *testing.T) {
	t.Parallel()
	src := `
		variable "n" {
		  type = number
		  validation {
		    condition     = var.n > 3
		    error_message = "n must be more than 3"
		  }
		  validation {
		    condition     = [true][var.n]
		    error_message = "x"
		  }
		}` + smallFlow("a")
	for value, want := range map[string]string{"2": "n must be more than 3", "5": "cannot be evaluated"} {
		set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": src})}, Options{Catalog: modules, Vars: map[string]VarValue{"n": {Text: value, From: "--var n"}}})
		if diff := cmp.Diff([]string{"--var n:1 variable"}, complaints(diags)); diff != "" || !strings.Contains(text(set, diags), want) {
			t.Error(diff, text(set, diags))
		}
	}
}

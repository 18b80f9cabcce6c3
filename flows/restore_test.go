package flows

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
)

func TestRestore(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"eu/f.hcl": `
			variable "region" {
			}
			variable "sizes" {
			  type = set(number)
			}
			variable "token" {
			  sensitive = true
			}
			plugin "p" {
			  source = "./lib/../pricing.wasm"
			}
			locals {
			  sql     = file("./q/a.sql")
			  text    = templatefile("t.tpl", { who = var.region })
			  missing = fileexists("none.txt")
			}
			flow "f" {
			  task "t" {
			    plugin = plugin.p
			    input  = { sql = local.sql, text = local.text, missing = local.missing, token = var.token, sizes = var.sizes, raw = filebase64("raw.bin") }
			  }
			}`,
		"eu/g.hcl.json":      `{"flow": {"g": {"task": {"t": {"plugin": "./greet.wasm"}}}}}`,
		"eu/q/a.sql":         "select 1",
		"eu/t.tpl":           "hi %{ if who != \"\" }${upper(who)}%{ endif }",
		"eu/raw.bin":         "\xff\x00",
		"eu/unread.txt":      "x",
		"eu/x.auto.vars.hcl": "sizes = [3, 1, 3]\n",
	}
	options := Options{Catalog: modules, Vars: map[string]VarValue{
		"region": {Text: "eu", From: "--var region"}, "token": {Text: "hunter2", From: "--var token"},
	}}
	set := load(t, files, options)
	f := set.Flow("eu/f")
	def := f.Definition
	want := &run.Definition{
		Prefix: "eu/",
		Files: map[string][]byte{
			"f.hcl": []byte(files["eu/f.hcl"]), "g.hcl.json": []byte(files["eu/g.hcl.json"]),
			"q/a.sql": []byte("select 1"), "t.tpl": []byte(files["eu/t.tpl"]), "raw.bin": []byte("\xff\x00"),
		},
		Vars:    map[string]json.RawMessage{"region": json.RawMessage(`"eu"`), "sizes": json.RawMessage(`[1,3]`)},
		Plugins: map[string]string{"./lib/../pricing.wasm": digestOf("pricing.wasm"), "./greet.wasm": digestOf("greet.wasm")},
	}
	if diff := cmp.Diff(want, def); diff != "" {
		t.Error(diff)
	}
	if f.DefinitionDigest != def.Digest() {
		t.Error("the digest is not the definition's")
	}

	stored, err := json.Marshal(def)
	if err != nil {
		t.Fatal(err)
	}
	var recorded run.Definition
	if err := json.Unmarshal(stored, &recorded); err != nil {
		t.Fatal(err)
	}
	again, diags := Restore(t.Context(), &recorded, Options{Catalog: byDigest{modules}, Vars: options.Vars})
	if len(diags) > 0 {
		t.Fatal(text(again, diags))
	}
	if diff := cmp.Diff(names(set), names(again)); diff != "" {
		t.Error(diff)
	}
	g := again.Flow("eu/f")
	if g.DefinitionDigest != f.DefinitionDigest {
		t.Errorf("the restored definition differs: %s", cmp.Diff(def, g.Definition))
	}
	const value = `{"missing":false,"raw":"/wA=","sizes":[1,3],"sql":"select 1","text":"hi EU","token":"hunter2"}`
	for _, f := range []*Flow{f, g} {
		if got := input(t, f.Tasks[0], f.Scope(aRun(f, "", nil))); got != value {
			t.Errorf("got %s", got)
		}
		if f.Tasks[0].Plugin.Digest != digestOf("pricing.wasm") || f.Tasks[0].Function != "main" || f.Tasks[0].At() != "f.hcl:19" {
			t.Errorf("%+v %s", f.Tasks[0], f.Tasks[0].At())
		}
	}

	file := filepath.Join(folder(t, map[string]string{"s.hcl": "token = \"hunter2\"\nregion = \"ignored\"\n"}), "s.hcl")
	fromFile, diags := Restore(t.Context(), &recorded, Options{Catalog: byDigest{modules}, VarFiles: []string{file}})
	if len(diags) > 0 || fromFile.Flow("eu/f").DefinitionDigest != f.DefinitionDigest {
		t.Errorf("secrets from a file: %s", text(fromFile, diags))
	}
	bare, diags := Restore(t.Context(), &recorded, Options{Vars: options.Vars})
	if len(diags) > 0 || bare.Flow("eu/f").DefinitionDigest != f.DefinitionDigest {
		t.Errorf("without a catalog: %s", text(bare, diags))
	}
	lost, diags := Restore(t.Context(), &recorded, Options{Catalog: byDigest{catalog{}}})
	if out := text(lost, diags); !strings.Contains(out, "var.token has no default") || !strings.Contains(out, "is not stored here any more") {
		t.Error(out)
	}
}

// byDigest is a catalog that must not be asked for paths.
type byDigest struct{ catalog }

func (byDigest) Signature(context.Context, string) (run.Signature, error) {
	return run.Signature{}, errors.New("a restored flow asks for a path")
}

func TestModulesAreLookedUpOnce(t *testing.T) {
	t.Parallel()
	count := &counting{catalog: modules, asked: map[string]int{}}
	load(t, map[string]string{
		"a.hcl":   smallFlow("a") + smallFlow("b") + "plugin \"p\" {\n  source = \"./greet.wasm\"\n}\n",
		"b/c.hcl": strings.ReplaceAll(smallFlow("c"), "./greet", "../greet"),
	}, Options{Catalog: count})
	if len(count.asked) != 1 {
		t.Errorf("%v", count.asked)
	}
	for path, n := range count.asked {
		if n != 1 {
			t.Errorf("%s: %d times", path, n)
		}
	}
}

type counting struct {
	catalog
	asked map[string]int
}

func (c *counting) Signature(ctx context.Context, path string) (run.Signature, error) {
	c.asked[path]++
	return c.catalog.Signature(ctx, path)
}

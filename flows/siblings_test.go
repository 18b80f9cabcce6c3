package flows

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
)

// sharing is a directory whose file race.hcl needs much of the others, which are full of
// mistakes that are none of its business.
func sharing(t *testing.T, more map[string]string) string {
	files := map[string]string{
		"race.hcl": `
flow "race" {
  locals {
    own = "x"
  }
  task "a" {
    plugin = plugin.kit
    limit  = limit.api
    input  = { name = "${var.region} ${local.title} ${local.own}" }
  }
  task "b" {
    flow = flow.inner
  }
}`,
		"shared.hcl": `
plugin "kit" {
  source = "./greet.wasm"
  config = { room = local.room }
}
plugin "gone" {
  source = "./gone.wasm"
}
locals {
  room  = var.room
  title = "héllo"
  wrong = nosuch()
}
locals { also = var.unknown }
variable "region" {
  type = string
}
variable "room" {
  default = "data"
}
variable "unneeded" {
  type = number
}
limit "api" {
  concurrency = 2
}
limit "bad" {
}
defaults {
  timeout = "7s"
}`,
		"others.hcl": `
flow "inner" {
  trigger "schedule" "s" {
    cron = "0 1 * * *"
  }
  task "t" {
    plugin = "./greet.wasm"
  }
}
flow "broken" {
  task "t" {
    plugin = plugin.missing
  }
}
bogus "x" {}`,
		"flowhost.vars.hcl": "region   = \"eu\"\nunneeded = 3\n",
	}
	for name, content := range more {
		files[name] = content
	}
	return folder(t, files)
}

func TestAFileAloneUsesWhatItsDirectoryShares(t *testing.T) {
	t.Parallel()
	dir := sharing(t, nil)
	set, diags := Load(t.Context(), []string{filepath.Join(dir, "race.hcl")}, Options{Catalog: modules, Vars: map[string]VarValue{"unneeded": {Text: "4", From: "--var unneeded"}}})
	if len(diags) > 0 {
		t.Fatal(text(set, diags))
	}
	if len(set.Flows) != 1 || set.Flows[0].Name != "race" || len(set.Limits) != 1 || set.Limits[0].Name != "api" {
		t.Errorf("flows %v, limits %v", set.Flows, set.Limits)
	}
	holds := func(set *Set) {
		t.Helper()
		f := set.Flow("race")
		a := f.Task("a")
		if got := input(t, a, f.Scope(aRun(f, "", nil))); got != `{"name":"eu héllo x"}` {
			t.Error(got)
		}
		if config, _ := a.Config(f.Scope(aRun(f, "", nil))); string(config) != `{"room":"data"}` || a.Timeout != 7*time.Second || f.Task("b").Child.Name != "inner" {
			t.Errorf("config %s, timeout %s, child %v", config, a.Timeout, f.Task("b").Child)
		}
	}
	holds(set)

	// Its runs are resumed with the same.
	restored, diags := Restore(t.Context(), set.Flows[0].Definition, Options{Catalog: modules})
	if len(diags) > 0 {
		t.Fatal(text(restored, diags))
	}
	holds(restored)
	var names []string
	for _, p := range set.Sources() {
		names = append(names, filepath.Base(p))
	}
	if diff := cmp.Diff([]string{"greet.wasm", "others.hcl", "race.hcl", "shared.hcl"}, names); diff != "" {
		t.Error(diff)
	}
}

func TestFilesOfOneDirectoryAreOneModule(t *testing.T) {
	t.Parallel()
	dir := sharing(t, map[string]string{"second.hcl": "flow \"second\" {\n  task \"t\" {\n    plugin = plugin.kit\n    limit = limit.api\n  }\n}\n"})
	set, diags := Load(t.Context(), []string{filepath.Join(dir, "race.hcl"), filepath.Join(dir, "second.hcl")}, Options{Catalog: modules})
	if len(diags) > 0 || len(set.Flows) != 2 || len(set.Limits) != 1 {
		t.Fatal(text(set, diags))
	}
}

func TestMistakesInWhatAFileNeedsOfOthers(t *testing.T) {
	t.Parallel()
	small := func(plugin string) string {
		return "flow \"small\" {\n  task \"t\" {\n    plugin = " + plugin + "\n  }\n}\n"
	}
	for name, c := range map[string]struct {
		files map[string]string
		file  string
		want  []string // place and rule, in order
	}{
		"a module that is not there":         {map[string]string{"s.hcl": small("plugin.gone")}, "s.hcl", []string{"shared.hcl:7 plugin"}},
		"a name that nobody declares":        {map[string]string{"s.hcl": small("plugin.kitt")}, "s.hcl", []string{"s.hcl:3 unknown-name"}},
		"one that may be in a broken file":   {map[string]string{"s.hcl": small("plugin.kitt"), "z.hcl": "plugin {{"}, "s.hcl", []string{"z.hcl:1 syntax"}},
		"a broken file that nobody needs":    {map[string]string{"s.hcl": small("plugin.kit"), "z.hcl": "plugin {{"}, "s.hcl", []string{"z.hcl:1 syntax (warning)"}},
		"one that two others declare":        {map[string]string{"s.hcl": small("plugin.kit"), "z.hcl": "plugin \"kit\" {\n  source = \"./pricing.wasm\"\n}\n"}, "s.hcl", []string{"z.hcl:1 duplicate"}},
		"its own wins":                       {map[string]string{"s.hcl": small("plugin.kit") + "plugin \"kit\" {\n  source = \"./greet.wasm\"\n}\n"}, "s.hcl", nil},
		"a file that is broken itself":       {map[string]string{"s.hcl": "flow {{"}, "s.hcl", []string{"s.hcl:1 syntax"}},
		"in JSON, of a file in JSON":         {map[string]string{"s.hcl.json": `{"flow":{"small":{"task":{"t":{"plugin":"plugin.js","input":"${local.js}"}}}}}`, "z.hcl.json": `{"plugin":{"js":{"source":"./greet.wasm"}},"locals":[{"js":"${var.region}"}]}`}, "s.hcl.json", nil},
		"a local in one line with a mistake": {map[string]string{"s.hcl": small("\"./greet.wasm\"\n    input = local.also")}, "s.hcl", []string{"shared.hcl:14 unknown-name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := sharing(t, c.files)
			set, diags := Load(t.Context(), []string{filepath.Join(dir, c.file)}, Options{Catalog: modules})
			var got []string
			for i, d := range diags {
				line, _, _ := strings.Cut(rendered(t, set, diags[i:i+1]), "\n")
				if d.Severity == hcl.DiagWarning {
					line += " (warning)"
				}
				got = append(got, line)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff, text(set, diags))
			}
		})
	}
}

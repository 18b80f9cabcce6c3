package flows

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const blocksHCL = `
variable "region" { default = "eu" }
variable "other" {}
locals {
  rate  = var.region == "eu" ? 1.19 : local.base
  base  = 1
  spare = 2
}
plugin "greet" { source = "./greet.wasm" }
plugin "tool" { source = "./tool.wasm" }
defaults { timeout = "5m" }

flow "a" {
  timeout = "1h"
  param "name" { default = "x" }
  locals { twice = 2 * local.rate }
  trigger "schedule" "nightly" { cron = "@daily" }
  task "one" {
    plugin = plugin.greet
    input  = local.twice # of it
  }
  on_failure {
    task "mend" { plugin = plugin.greet }
  }
  group "tell" {
    mode = "serial"
    task "mail" { plugin = plugin.greet }
    group "calls" {
      group "phones" {
        task "home" {
          plugin   = plugin.greet
          for_each = ["a", "b"]
        }
        task "work" { plugin = plugin.greet }
      }
    }
  }
}
flow "b" {
  task "one" {
    plugin = plugin.tool
    input  = var["other"]
  }
}
`

func blocksOf(t *testing.T, source, flow string) map[string]string {
	t.Helper()
	set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": source})}, Options{
		Catalog: modules, Vars: map[string]VarValue{"other": {Text: "x"}},
	})
	if diags.HasErrors() {
		t.Fatal(text(set, diags))
	}
	return set.Blocks()[flow]
}

func TestBlocks(t *testing.T) {
	t.Parallel()
	for flow, want := range map[string][]string{
		"a": {
			"defaults", "group tell", "group tell group calls", "group tell group calls group phones", "group tell group calls group phones task home",
			"group tell group calls group phones task work", "group tell mode", "group tell task mail", "local base", "local rate", "local twice", "on_failure", "on_failure task mend", "param name", "plugin greet",
			"task one", "timeout", "trigger schedule nightly", "variable region",
		},
		"b": {"defaults", "plugin tool", "task one", "value of other", "variable other"},
	} {
		if diff := cmp.Diff(want, slices.Sorted(maps.Keys(blocksOf(t, blocksHCL, flow)))); diff != "" {
			t.Errorf("blocks of %s (-want +got):\n%s", flow, diff)
		}
	}
}

// Only those parts differ that say something else.
func TestBlocksThatDiffer(t *testing.T) {
	t.Parallel()
	before := blocksOf(t, blocksHCL, "a")
	for name, tt := range map[string]struct {
		old, new string
		want     []string
	}{
		"a comment":           {"# of it", "// twice\n", nil},
		"the layout":          {`{ cron = "@daily" }`, "{\n\n  cron  =   \"@daily\"\n}", nil},
		"another flow":        {`var["other"]`, `"y"`, nil},
		"a local of nobody":   {"spare = 2", "spare = 3", nil},
		"a cron expression":   {"@daily", "@hourly", []string{"trigger schedule nightly"}},
		"white space in text": {`"eu" ?`, `" eu" ?`, []string{"local rate"}},
		"the flow's timeout":  {`"1h"`, `"2h"`, []string{"timeout"}},
		"a variable":          {`default = "eu"`, `default = "us"`, []string{"variable region"}},
		"through a local":     {"base  = 1", "base = 7", []string{"local base"}},
		"its own local":       {"2 * local", "3 * local", []string{"local twice"}},
		"what is for all":     {`"5m"`, `"6m"`, []string{"defaults"}},
		"a group's mode":      {`"serial"`, `"race"`, []string{"group tell mode"}},
		"a member":            {`["a", "b"]`, `["a"]`, []string{"group tell group calls group phones task home"}},
		"a group's name": {`"calls" {`, `"letters" {`, []string{
			"group tell", "group tell group calls", "group tell group calls group phones", "group tell group calls group phones task home", "group tell group calls group phones task work",
			"group tell group letters", "group tell group letters group phones", "group tell group letters group phones task home", "group tell group letters group phones task work",
		}},
		"a task of on_failure": {`"mend" {`, `"repair" {`, []string{"on_failure task mend", "on_failure task repair"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			after := blocksOf(t, strings.Replace(blocksHCL, tt.old, tt.new, 1), "a")
			var differ []string
			for name := range after {
				if before[name] != after[name] {
					differ = append(differ, name)
				}
			}
			for name := range before {
				if after[name] == "" {
					differ = append(differ, name)
				}
			}
			slices.Sort(differ)
			if diff := cmp.Diff(tt.want, differ); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestBlocksOfJSON(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{
		"a.hcl.json": `{"flow": {"a": {"task": {"one": {"plugin": "./tool.wasm"}}}}}`,
		"b.hcl":      "flow \"b\" {\n  task \"one\" { plugin = \"./tool.wasm\" }\n}\n",
	})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	if diags.HasErrors() {
		t.Fatal(text(set, diags))
	}
	if got := slices.Sorted(maps.Keys(set.Blocks()["a"])); !slices.Equal(got, []string{"file a.hcl.json"}) {
		t.Errorf("blocks of a flow in JSON: %q", got)
	}
	if got := slices.Sorted(maps.Keys(set.Blocks()["b"])); !slices.Equal(got, []string{"file a.hcl.json", "task one"}) {
		t.Errorf("blocks beside it: %q", got)
	}
	var names []string
	for _, p := range set.Sources() {
		names = append(names, strings.TrimPrefix(p, dir)[1:])
	}
	if want := []string{"a.hcl.json", "b.hcl", "tool.wasm"}; !slices.Equal(names, want) {
		t.Errorf("sources = %q, want %q", names, want)
	}
}

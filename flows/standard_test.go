package flows

import (
	"context"
	"io/fs"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

// partsModule is a catalog with a module of two standard plugins.
var partsModule = catalog{"data.wasm": {"csv.parse", "csv.format", "hash.main"}}

var standardPlugins = Standard{Names: []string{"csv", "hash"}, Signature: func(ctx context.Context, name string) (run.Signature, error) {
	if name != "csv" && name != "hash" {
		return run.Signature{}, fs.ErrNotExist
	}
	return partsModule.Signature(ctx, "data.wasm")
}}

const standardFlow = `flow "f" {
  task "rows" {
    plugin   = "std/csv"
    function = "parse"
  }
  task "sum" {
    plugin = plugin.sums
    input  = task.rows.output
  }
}

plugin "sums" {
  source = "std/hash"
}
`

// A standard plugin is a part of a module: its functions are called by their full names, also by
// a flow that was recorded.
func TestStandardPlugins(t *testing.T) {
	t.Parallel()
	set := load(t, map[string]string{"f.hcl": standardFlow}, Options{Catalog: partsModule, Standard: standardPlugins})
	check := func(set *Set) {
		t.Helper()
		f := onlyFlow(t, set)
		if rows, sum := f.Task("rows"), f.Task("sum"); rows.Function != "csv.parse" || sum.Function != "hash.main" ||
			rows.Plugin.Digest != digestOf("data.wasm") || sum.Plugin.Source != "std/hash" {
			t.Errorf("%+v %+v", rows, sum)
		}
	}
	check(set)
	again, diags := Restore(t.Context(), onlyFlow(t, set).Definition, Options{Catalog: byDigest{partsModule}})
	if len(diags) > 0 {
		t.Fatal(text(again, diags))
	}
	check(again)
	for wrong, says := range map[string]string{
		strings.Replace(standardFlow, "std/csv", "std/cvs", 1):             "There is no standard plugin \"std/cvs\". Did you mean std/csv?",
		strings.Replace(standardFlow, "\"parse\"", "\"read\"", 1):          "std/csv has no function \"read\"",
		strings.Replace(standardFlow, "    function = \"parse\"\n", "", 1): "There is parse and format.",
	} {
		set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": wrong})}, Options{Catalog: partsModule, Standard: standardPlugins})
		if out := text(set, diags); !strings.Contains(out, says) {
			t.Errorf("%s\nwant %s", out, says)
		}
	}
}

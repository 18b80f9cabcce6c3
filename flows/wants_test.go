package flows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
)

// TestWantsCanBeGranted holds that the advice is about all that a grant block of
// this version grants, and that it can be followed.
func TestWantsCanBeGranted(t *testing.T) {
	t.Parallel()
	if arguments, _ := grantSchema.Names(); !slices.Equal(slices.Sorted(slices.Values(arguments)), keys(grantable)) {
		t.Errorf("a grant block takes %v, and there is advice on %v", arguments, keys(grantable))
	}
	for name, line := range grantable {
		load(t, map[string]string{"data/x": "", "f.hcl": fmt.Sprintf(
			"plugin \"p\" {\n  source = \"./wanting.wasm\"\n  grant { %s }\n}\nflow \"f\" {\n  task \"t\" {\n    plugin = plugin.p\n  }\n}\n", line)}, Options{})
		if !strings.HasPrefix(line, name+" = ") {
			t.Errorf("%s: %s", name, line)
		}
	}
}

// TestWantsOfARecordedFlow holds that runs that go on are not warned of: nobody can
// change what they began with.
func TestWantsOfARecordedFlow(t *testing.T) {
	t.Parallel()
	src := folder(t, map[string]string{"f.hcl": "flow \"f\" {\n  task \"t\" {\n    plugin = \"./wanting.wasm\"\n  }\n}\n"})
	set, diags := Load(t.Context(), []string{src}, Options{Catalog: modules})
	if len(diags) != 2 || diags.HasErrors() {
		t.Fatal(text(set, diags))
	}
	if again, diags := Restore(t.Context(), onlyFlow(t, set).Definition, Options{Catalog: modules}); len(diags) > 0 {
		t.Error(text(again, diags))
	}
}

// TestManyWarnings holds that any number of warnings leaves flows valid.
func TestManyWarnings(t *testing.T) {
	t.Parallel()
	var src strings.Builder
	src.WriteString("flow \"f\" {\n")
	for i := range diag.MaxShown {
		fmt.Fprintf(&src, "  task \"t%d\" {\n    plugin = \"./wanting.wasm\"\n  }\n", i)
	}
	flow := src.String() + "}\n"
	set, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": flow})}, Options{Catalog: modules})
	if last := diags[len(diags)-1]; len(diags) != diag.MaxShown+1 || diags.HasErrors() || RuleOf(last) != RuleMore || last.Severity != hcl.DiagWarning {
		t.Errorf("%d diagnostics, errors: %t", len(diags), diags.HasErrors())
	}
	if len(set.Flows) != 1 {
		t.Error("no flow")
	}
	flow = src.String() + "  nothing = 1\n}\n"
	if _, diags := Load(t.Context(), []string{folder(t, map[string]string{"f.hcl": flow})}, Options{Catalog: modules}); !diags.HasErrors() {
		t.Error("an error behind many warnings is lost")
	}
}

package flows

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"

	"github.com/flowhost/flowhost/flows/internal/diag"
	"github.com/flowhost/flowhost/flows/internal/reachspec"
	"github.com/flowhost/flowhost/run/access"
)

// TestWantsCanBeGranted holds that the advice is about all that a grant block
// grants, and that it can be followed.
func TestWantsCanBeGranted(t *testing.T) {
	t.Parallel()
	arguments, blocks := reachspec.Grant.Names()
	if words := slices.Sorted(slices.Values(slices.Concat(arguments, blocks))); !slices.Equal(words, keys(reachspec.Examples)) {
		t.Errorf("a grant block has %v, and there is advice on %v", words, keys(reachspec.Examples))
	}
	operator := &Operator{Allow: []access.Allow{{Pattern: "f", Secrets: []string{"*"}, Connections: []string{"*"}, Clock: "real", Random: "real", Artifacts: true,
		HTTP: &access.HTTPGrant{Allow: []string{"GET https://example.com/data/**"}}, Files: map[string]access.Mode{".": "rw"}, KV: map[string]access.Mode{"*": "rw"},
		Publish: []string{"orders.>"}, Request: []string{"pricing.>"}, Env: []string{"*"}, Sources: &access.Sources{Env: []string{"TOKEN"}}, From: "x"}}}
	for name, line := range reachspec.Examples {
		load(t, map[string]string{"data/x": "", "f.hcl": fmt.Sprintf(
			"secret \"NAME\" {\n  env = \"TOKEN\"\n}\nconnection \"NAME\" {\n  type = \"postgres\"\n  dsn = secret.NAME\n}\nplugin \"p\" {\n  source = \"./wanting.wasm\"\n  grant {\n    %s\n  }\n}\nflow \"f\" {\n  task \"t\" {\n    plugin = plugin.p\n  }\n}\n", line)}, Options{Operator: operator})
		if !strings.HasPrefix(line, name+" ") {
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
	if len(diags) != 3 || diags.HasErrors() {
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

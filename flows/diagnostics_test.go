package flows

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write the expected diagnostics anew")

// TestDiagnostics compares the diagnostics of each file below testdata with the
// text beside it. The rules come first: they are what tools rely on.
func TestDiagnostics(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/diagnostics/*.hcl*")
	if err != nil || len(files) < 35 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			got := rendered(t, file)
			golden := strings.TrimSuffix(strings.TrimSuffix(file, ".json"), ".hcl") + ".txt"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func rendered(t *testing.T, file string) string {
	set, diags := Load(t.Context(), []string{file}, Options{Catalog: modules})
	if !diags.HasErrors() {
		t.Fatal("no errors")
	}
	var out strings.Builder
	for _, d := range diags {
		if RuleOf(d) == "" || d.Subject == nil || d.Summary == "" || d.Detail == "" {
			t.Errorf("incomplete: %#v", d)
		}
		fmt.Fprintf(&out, "%s:%d %s\n", filepath.Base(d.Subject.Filename), d.Subject.Start.Line, RuleOf(d))
	}
	return out.String() + "\n" + filepath.ToSlash(text(set, diags))
}

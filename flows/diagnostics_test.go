package flows

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2"
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
			copied := alone(t, file)
			set, diags := Load(t.Context(), []string{copied}, Options{Catalog: modules})
			if len(diags) == 0 {
				t.Fatal("no diagnostics")
			}
			name := strings.TrimSuffix(strings.TrimSuffix(file, ".json"), ".hcl")
			golden(t, name+".txt", strings.ReplaceAll(rendered(t, set, diags), copied, file))
			golden(t, name+".json", strings.ReplaceAll(asJSON(t, set, diags), copied, file))
			agreeOn(t, set, diags)
		})
	}
}

// alone copies a file into a directory in which there is no other.
func alone(t *testing.T, file string) string {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(folder(t, map[string]string{filepath.Base(file): string(content)}), filepath.Base(file))
}

// TestDiagnosticsOfTests does the same for files of tests, all of the same flows.
func TestDiagnosticsOfTests(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/tests/*.test.hcl*")
	if err != nil || len(files) < 6 {
		t.Fatalf("%d cases, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			suite, diags := LoadTests(t.Context(), []string{file}, Options{Catalog: modules})
			if !diags.HasErrors() {
				t.Fatal("no errors")
			}
			name := strings.TrimSuffix(strings.TrimSuffix(file, ".json"), ".test.hcl")
			golden(t, name+".txt", rendered(t, suite.Set, diags))
			golden(t, name+".json", asJSON(t, suite.Set, diags))
			agreeOn(t, suite.Set, diags)
		})
	}
}

// golden compares a text with what a file holds.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Error(diff)
	}
}

// asJSON is what validate --json prints, in lines.
func asJSON(t *testing.T, set *Set, diags hcl.Diagnostics) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Indent(&out, DiagnosticsJSON(diags, set.Files()), "", "  "); err != nil {
		t.Fatal(err)
	}
	return out.String() + "\n"
}

// agreeOn holds that the three forms say the same: in colour and without, and
// JSON, whose snippet marks the place.
func agreeOn(t *testing.T, set *Set, diags hcl.Diagnostics) {
	t.Helper()
	var colored bytes.Buffer
	if err := hcl.NewDiagnosticTextWriter(&colored, set.Files(), 0, true).WriteDiagnostics(diags); err != nil {
		t.Fatal(err)
	}
	plain := text(set, diags)
	if strings.Contains(plain, "\x1b") || !strings.Contains(colored.String(), "\x1b[") {
		t.Error("colour where there should be none, or none where it should be")
	}
	if diff := cmp.Diff(plain, regexp.MustCompile("\x1b\\[[0-9;]*m").ReplaceAllString(colored.String(), "")); diff != "" {
		t.Errorf("in colour: %s", diff)
	}
	var v shownJSON
	err := json.Unmarshal(DiagnosticsJSON(diags, set.Files()), &v)
	if err != nil || v.ErrorCount+v.WarningCount != len(diags) || v.Valid == diags.HasErrors() || len(v.Diagnostics) != len(diags) {
		t.Fatalf("%d errors and %d warnings of %d: %v", v.ErrorCount, v.WarningCount, len(diags), err)
	}
	for i, d := range v.Diagnostics {
		file := set.Files()[diags[i].Subject.Filename].Bytes
		marked := string(diags[i].Subject.SliceBytes(file))
		shown := d.Snippet.Code[d.Snippet.HighlightStartOffset:d.Snippet.HighlightEndOffset]
		if first, _, _ := strings.Cut(plain, d.Summary); first == plain || !strings.Contains(plain, d.Detail) || d.Rule != RuleOf(diags[i]) {
			t.Errorf("not in the text: %+v", d)
		}
		if line, _, _ := strings.Cut(marked, "\n"); !strings.HasPrefix(shown, strings.TrimSuffix(line, "\r")) {
			t.Errorf("%s: the snippet marks %q, and the place is %q", d.Summary, shown, marked)
		}
	}
}

// TestDiagnosticsAreMany holds that the files above are about most of what can be
// wrong: every rule, and many summaries.
func TestDiagnosticsAreMany(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/diagnostics/*.json")
	if err != nil {
		t.Fatal(err)
	}
	rules, summaries := map[Rule]bool{}, map[string]bool{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var v shownJSON
		if strings.HasSuffix(file, ".hcl.json") {
			continue
		}
		if err := json.Unmarshal(content, &v); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, d := range v.Diagnostics {
			rules[d.Rule], summaries[string(d.Rule)+": "+d.Summary] = true, true
		}
	}
	if len(summaries) < 90 {
		t.Errorf("%d kinds of diagnostics", len(summaries))
	}
	source, err := os.ReadFile("rules.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, rule := range regexp.MustCompile(`Rule = "([a-z-]+)"`).FindAllSubmatch(source, -1) {
		if r := Rule(rule[1]); !rules[r] && r != RulePath && r != RuleAssertion && r != RuleMore { // they have tests of their own
			t.Errorf("no file is about the rule %s", r)
		}
	}
}

func rendered(t *testing.T, set *Set, diags hcl.Diagnostics) string {
	t.Helper()
	var out strings.Builder
	for _, d := range diags {
		if RuleOf(d) == "" || d.Subject == nil || d.Summary == "" || d.Detail == "" {
			t.Errorf("incomplete: %#v", d)
		}
		fmt.Fprintf(&out, "%s:%d %s\n", filepath.Base(d.Subject.Filename), d.Subject.Start.Line, RuleOf(d))
	}
	return out.String() + "\n" + filepath.ToSlash(text(set, diags))
}

package flows

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestFormat(t *testing.T) {
	t.Parallel()
	src := "flow \"a\" {\n task \"t\" {\nplugin=\"./x.wasm\"\n  description   = \"d\" # why\n}\n}\n"
	want := "flow \"a\" {\n  task \"t\" {\n    plugin      = \"./x.wasm\"\n    description = \"d\" # why\n  }\n}\n"
	got, diags := Format([]byte(src), "a.hcl")
	if diff := cmp.Diff(want, string(got)); diff != "" || diags != nil {
		t.Error(diff, diags)
	}
	for _, broken := range []string{"a.hcl", "a.hcl.json"} {
		if got, diags := Format([]byte("flow {"), broken); !diags.HasErrors() || string(got) != "flow {" || RuleOf(diags[0]) != RuleSyntax {
			t.Errorf("%s: %s %v", broken, got, diags)
		}
	}
	if got, diags := Format([]byte(`{ "a":1}`), "a.hcl.json"); diags != nil || string(got) != `{ "a":1}` {
		t.Errorf("%s %v", got, diags)
	}
}

func TestFormatIsIdempotent(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*/*.hcl")
	if err != nil || len(files) < 35 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		src, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		once, _ := Format(src, file)
		if twice, _ := Format(once, file); !bytes.Equal(once, twice) {
			t.Errorf("%s changes again", file)
		}
		if strings.HasPrefix(file, "testdata/examples") && !bytes.Equal(src, once) {
			t.Errorf("%s is not formatted", file)
		}
	}
}

func TestDiagnosticsJSON(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.hcl": `variable "region" {
  default = "eu"
}
variable "token" {
  default   = "hunter2"
  sensitive = true
}
flow "a" {
  task "t" {
    plugin = "./greet.wasm"
    input = {
      x = parseint(var.region, length(var.token))
    }
  }
}
`})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	var got map[string]any
	if err := json.Unmarshal(DiagnosticsJSON(diags, set.Files()), &got); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "f.hcl")
	want := map[string]any{
		"format_version": "1.0", "valid": false, "error_count": 1.0, "warning_count": 0.0,
		"diagnostics": []any{map[string]any{
			"severity": "error", "rule": "expression", "summary": "Invalid function argument",
			"detail": "The reason is not shown because the expression uses a sensitive value.",
			"range": map[string]any{
				"filename": file,
				"start":    map[string]any{"line": 12.0, "column": 20.0, "byte": 188.0},
				"end":      map[string]any{"line": 12.0, "column": 30.0, "byte": 198.0},
			},
			"snippet": map[string]any{
				"context": `flow "a"`, "code": "      x = parseint(var.region, length(var.token))", "start_line": 12.0,
				"highlight_start_offset": 19.0, "highlight_end_offset": 29.0,
				"values": []any{map[string]any{"traversal": "var.region", "statement": `is "eu"`}},
			},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if got := string(DiagnosticsJSON(nil, nil)); got != `{"format_version":"1.0","valid":true,"error_count":0,"warning_count":0,"diagnostics":[]}` {
		t.Error(got)
	}
}

func TestDiagnosticsJSONShowsValues(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"f.hcl": `
		locals {
		  n    = null
		  list = [1, 2]
		  map  = { a = { b = true } }
		  long = "0123456789012345678901234567890123456789012345678901234567890123456789"
		}
		flow "a" {
		  task "t" {
		    plugin = "./greet.wasm"
		    input  = upper(local.list[0], local.n, local.list, local.map["a"], local.long, local.map.a.b, run.id)
		  }
		}`})
	set, diags := Load(t.Context(), []string{dir}, Options{Catalog: modules})
	var v shownJSON
	if err := json.Unmarshal(DiagnosticsJSON(diags, set.Files()), &v); err != nil || len(v.Diagnostics) != 1 {
		t.Fatal(err, text(set, diags))
	}
	want := []shownValue{
		{"local.list", "is tuple of length 2"}, {"local.list[0]", "is 1"}, {"local.long", "is a long string"},
		{"local.map.a.b", "is true"}, {`local.map["a"]`, "is object of length 1"}, {"local.n", "is null"},
	}
	if diff := cmp.Diff(want, v.Diagnostics[0].Snippet.Values); diff != "" {
		t.Error(diff, text(set, diags))
	}
}

// TestDiagnosticsJSONOfEverything checks that the snippets of all golden cases
// point into the file.
func TestDiagnosticsJSONOfEverything(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("testdata/diagnostics/*.hcl*")
	for _, file := range files {
		set, diags := Load(t.Context(), []string{alone(t, file)}, Options{Catalog: modules})
		var v shownJSON
		if err := json.Unmarshal(DiagnosticsJSON(diags, set.Files()), &v); err != nil || v.Valid == diags.HasErrors() || v.ErrorCount+v.WarningCount != len(diags) {
			t.Fatalf("%s: %v", file, err)
		}
		for _, d := range v.Diagnostics {
			s := d.Snippet
			if s == nil || s.Code == "" && d.Range.Start.Line > 1 || s.HighlightStartOffset > s.HighlightEndOffset || s.HighlightEndOffset > len(s.Code) {
				t.Errorf("%s: %+v %+v", file, d, s)
			}
		}
	}
}

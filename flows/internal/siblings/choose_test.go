package siblings

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/flows/internal/syntax"
)

func TestChosenPartsStayInTheirPlaces(t *testing.T) {
	t.Parallel()
	own := []File{{"a.hcl", []byte("flow \"a\" {\n  task \"t\" {\n    plugin = plugin.kit\n    input = [var.x, local.y, local.own]\n    flow = \"sub\"\n  }\n  locals {\n    own = 1\n  }\n}\n")}}
	other := "locals {\n  y = <<EOT\n${var.z}\nEOT\n}\nlocals { n = 1 }\r\nvariable \"x\" {}\n/* plugin */ plugin \"kit\" { source = \"é\" }\nplugin \"no\" {}\nvariable \"z\" {}\nflow \"sub\" {}\nflow \"b\" {}\ndefaults {}\n"
	want := strings.NewReplacer("n = 1", "     ", "/* plugin */", "            ", `plugin "no" {}`, "              ", `flow "b" {}`, "           ").Replace(other)
	got := Choose(own, []File{{"b.hcl", []byte(other)}, {"c.hcl", []byte("flow \"c\" {}\n")}, {"d.hcl", []byte("plugin {{")}})
	if got.Missing || len(got.Files) != 1 || len(got.Unread) != 1 || !got.Variables["x"] || !got.Variables["z"] {
		t.Fatalf("%+v", got)
	}
	if string(got.Files[0].Bytes) != want {
		t.Errorf("got:\n%s\nwant:\n%s", got.Files[0].Bytes, want)
	}
	if own[0].Bytes = []byte("flow \"a\" {\n  plugin = plugin.gone\n}\n"); !Choose(own, nil).Missing {
		t.Error("a plugin that is nowhere is not missing")
	}
}

// FuzzChoose holds that what is chosen of files that can be parsed can be parsed.
func FuzzChoose(f *testing.F) {
	files, err := filepath.Glob("../../testdata/diagnostics/*.hcl*")
	if err != nil || len(files) < 35 {
		f.Fatalf("%d files, %v", len(files), err)
	}
	for i, name := range files {
		own, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		other, err := os.ReadFile(files[(i+1)%len(files)])
		if err != nil {
			f.Fatal(err)
		}
		f.Add(own, other, strings.HasSuffix(name, ".json"))
	}
	f.Fuzz(func(t *testing.T, own, other []byte, inJSON bool) {
		ending := ".hcl"
		if inJSON {
			ending += ".json"
		}
		chosen := Choose([]File{{"own" + ending, own}}, []File{{"other.hcl", other}, {"other.hcl.json", other}})
		for _, file := range chosen.Files {
			if len(file.Bytes) != len(other) {
				t.Errorf("%d bytes of %d", len(file.Bytes), len(other))
			}
			if _, diags := syntax.ParseFile(file.Bytes, file.Name); diags.HasErrors() {
				t.Errorf("%s: %v\n%s", file.Name, diags, file.Bytes)
			}
		}
	})
}

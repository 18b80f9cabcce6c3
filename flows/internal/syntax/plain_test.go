package syntax

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2"
	"github.com/hashicorp/hcl/v2/hclsyntax"
)

// lexedDepth is the depth of a file by its tokens.
func lexedDepth(src []byte) int {
	tokens, _ := hclsyntax.LexConfig(src, "x.hcl", hcl.InitialPos)
	var n nesting
	depth := 0
	for _, t := range tokens {
		n.add(t.Type)
		depth = max(depth, n.depth())
	}
	return depth
}

// No plain file is deeper by its tokens than by its bytes.
func checkPlain(t *testing.T, src []byte) (plain bool) {
	t.Helper()
	got, plain := plainDepth(src)
	if want := lexedDepth(src); plain && got < want {
		t.Errorf("the depth is %d, and by tokens %d:\n%s", got, want, src)
	}
	return plain
}

func TestPlainDepth(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]bool{
		"":                      true,
		"a = 1 + 2 * (3 - 4)\n": true,
		"flow \"f\" {\n  task \"t\" {\n    input = { a = task.b.output[\"x\"].c, b = \"${var.x}-${local.y[0]}\" } # yes\n  }\n}\n": true,
		"a = [\n  1, // one\n  -2,\n]\n": true,
		"a = \"\\\"{[(\"\n":              true,
		"a = \"ü {{{{ \"\n":              true,
		"a = ü\n":                        false,
		"a = <<E\n{{{{\nE\n":             false,
		"/* { */ a = 1\n":                false,
		"a = \"${ \"x\" }\"\n":           false,
		"a = \"${ f({}) }\"\n":           false,
		"a = \"%{ if x }a%{ endif }\"\n": false,
		"a = \"b\nc\"\n":                 false,
		"a = \"b\\\nc\"\n":               false,
		"a = \"$${b}\"\n":                false,
		"a = (1]\n":                      false,
		"a = {\n":                        false,
		"}\n":                            false,
		"a = \"open\n":                   false,
		"a = '1'\n":                      false,
	} {
		if got := checkPlain(t, []byte(src)); got != want {
			t.Errorf("%q: plain is %v", src, got)
		}
	}
}

func TestExamplesArePlain(t *testing.T) {
	t.Parallel()
	plain, all := 0, 0
	err := filepath.WalkDir("../../../examples", func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".hcl") {
			return err
		}
		src, err := os.ReadFile(path)
		if all++; err == nil && checkPlain(t, src) {
			plain++
		}
		return err
	})
	if err != nil || plain < all/2 {
		t.Errorf("%d of %d files are plain, %v", plain, all, err)
	}
}

func FuzzPlainDepth(f *testing.F) {
	for _, s := range []string{
		"a = 1 + 2\n", "flow \"f\" {\n  x = [a.b[1].c, \"${d.e}\"] # {\n}\n", "a = (\n1 +\n2 // (\n)\n", "a = {\n b = !-c ? d : e == f\n}\n",
		"a = \"${x[\n", "a = \"${ x.*.y }\"\n", "a = x[*].y\n", "a = \"\\${(\"\n", "a = {\n b = 1 # c\n d = 2\n}\n", "a = 1 <= 2 >= 3 && 4 || 5\n", "a = b...\n", "a = 1 => 2\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) { checkPlain(t, src) })
}

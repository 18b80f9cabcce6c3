package archtest_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flowhost/flowhost/internal/archtest"
)

// TestModule holds the module itself against every rule.
func TestModule(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	if _, err := os.Stat(filepath.Join(root, "go.mod")); err != nil {
		t.Fatal(err)
	}
	packages, err := archtest.Read(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) < 10 {
		t.Fatalf("only %d packages were found: the checks would prove nothing", len(packages))
	}
	pages, err := archtest.ReadPages(os.DirFS(root))
	if err != nil {
		t.Fatal(err)
	}
	if len(pages) < 10 {
		t.Fatalf("only %d pages were found: the checks would prove nothing", len(pages))
	}
	checks := map[string][]archtest.Violation{
		"imports":  archtest.CheckImports(packages, archtest.Layers, archtest.Owners),
		"docs":     archtest.CheckDocs(packages),
		"contexts": archtest.CheckContexts(packages),
		"inits":    archtest.CheckInits(packages),
		"threads":  archtest.CheckThreads(packages, archtest.OneThread),
		"writes":   archtest.CheckWrites(packages, archtest.Layers, archtest.Writes),
		"sizes":    archtest.CheckSizes(packages, archtest.Larger),
		"embedded": archtest.CheckEmbedding(packages, archtest.Nested),
		"prose":    archtest.CheckProse(packages, pages, archtest.Phrases, archtest.Allowances),
	}
	for name, found := range checks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, v := range found {
				t.Error(v)
			}
		})
	}
}

package serve

import (
	"os"
	"strings"
	"testing"
)

func TestDocsShowTheStart(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"README.md", "docs/nats.md"} {
		text, err := os.ReadFile("../../../../" + page)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(subjectLines()) {
			if !strings.Contains(string(text), strings.TrimSpace(line)) {
				t.Errorf("%s does not show the line %q of a start", page, line)
			}
		}
	}
}

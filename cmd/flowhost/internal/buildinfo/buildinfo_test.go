package buildinfo

import (
	"testing"
)

func TestSemanticVersion(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"v1.2.3": "1.2.3", "v0.1.0-3-gabc1234-dirty": "0.1.0-3-gabc1234-dirty",
		"f7fd941-dirty": "0.0.0", "(devel)": "0.0.0", "": "0.0.0", "v01.2.3": "0.0.0",
	} {
		if got := (Info{Version: version}).Semantic(); got != want {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}

package run_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/flowhost/flowhost/run"
)

func digestOf(digit string) string { return "sha256:" + strings.Repeat(digit, 64) }

func TestStoredOutput(t *testing.T) {
	t.Parallel()
	stored := run.StoredOutput(digestOf("a"), 5<<20)
	if want := `{"$artifact":"` + digestOf("a") + `","content_type":"application/json","size":5242880}`; string(stored) != want {
		t.Errorf("%s, not %s", stored, want)
	}
	if size, ok := run.StoredSize(stored); !ok || size != 5<<20 {
		t.Errorf("%d, %t", size, ok)
	}
	for _, other := range []string{
		"", "null", `{}`, `{"$artifact":"`,
		`{"$artifact":"` + digestOf("a") + `","size":1}`,
		`{"$artifact":"` + digestOf("a") + `","content_type":"application/json","size":x}`,
		`{"$artifact":"` + digestOf("a") + `","content_type":"application/json","size":-1}`,
		`{"$artifact":"` + digestOf("A") + `","content_type":"application/json","size":1}`,
		`[` + string(stored) + `]`,
	} {
		if size, ok := run.StoredSize([]byte(other)); ok {
			t.Errorf("%s stands for %d bytes", other, size)
		}
	}
}

func TestDigests(t *testing.T) {
	t.Parallel()
	a, b := digestOf("a"), digestOf("b")
	for src, want := range map[string]struct{ all, artifacts []string }{
		`null`:                               {},
		`{"$artifact":"` + a + `"}`:          {[]string{a}, []string{a}},
		"{ \"$artifact\" :\n\"" + a + "\" }": {[]string{a}, []string{a}},
		`[{"x":[{"$artifact":"` + a + `"}]},{"$artifact":"` + b + `","size":1}]`: {[]string{a, b}, []string{a, b}},
		`"{\"$artifact\":\"` + a + `\"}"`:                                        {[]string{a}, []string{a}},
		`{"module":"` + a + `","x":"` + b + `"}`:                                 {[]string{a, b}, nil},
		`"` + a[:70] + `"`:                                                       {},
		`{"$artifact":"sha256:sha256:` + a + `"}`:                                {[]string{a}, nil},
		`{"$artifact":"` + strings.ToUpper(a) + `"}`:                             {},
		a: {[]string{a}, nil},
	} {
		if got := slices.Collect(run.Digests([]byte(src))); !slices.Equal(got, want.all) {
			t.Errorf("%s: digests %q", src, got)
		}
		if got := slices.Collect(run.ArtifactDigests([]byte(src))); !slices.Equal(got, want.artifacts) {
			t.Errorf("%s: artifacts %q", src, got)
		}
	}
	for range run.Digests([]byte(a + b)) {
		break // does not panic
	}
}

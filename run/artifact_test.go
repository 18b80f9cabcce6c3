package run_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strconv"
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

func TestExpand(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("5", 64)
	stored := string(run.StoredOutput(digest, 3))
	load := func(got string) (json.RawMessage, error) {
		if got != digest {
			return nil, errors.New("unexpected " + got)
		}
		return json.RawMessage(`[1]`), nil
	}
	tests := map[string]string{
		``:     ``,
		`7`:    `7`,
		stored: `[1]`,
		`{"a":` + stored + `,"b":[` + stored + `,2]}`: `{"a":[1],"b":[[1],2]}`,
		`{"$artifact":"` + digest + `","size":3}`:     `{"$artifact":"` + digest + `","size":3}`,
		`{"$artifact":"` + digest + `"`:               `{"$artifact":"` + digest + `"`,
		strconv.Quote(stored):                         strconv.Quote(stored),
	}
	for src, want := range tests {
		if got, err := run.Expand(json.RawMessage(src), load); err != nil || string(got) != want {
			t.Errorf("%s becomes %s, %v; want %s", src, got, err, want)
		}
	}
	failed := errors.New("gone")
	if _, err := run.Expand(json.RawMessage(stored), func(string) (json.RawMessage, error) { return nil, failed }); !errors.Is(err, failed) {
		t.Errorf("%v", err)
	}
}

package run

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTaskPath(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]TaskRef{
		"copy":                {{Task: "copy"}},
		"copy[a/b]":           {{Task: "copy", Key: "a/b"}},
		"copy[a]b]":           {{Task: "copy", Key: "a]b"}},
		"etl/copy":            {{Task: "etl"}, {Task: "copy"}},
		"etl[eu]/copy[3]":     {{Task: "etl", Key: "eu"}, {Task: "copy", Key: "3"}},
		"etl[a/b]/load[]]/up": {{Task: "etl", Key: "a/b"}, {Task: "load", Key: "]"}, {Task: "up"}},
	} {
		got, err := ParseTaskPath(text)
		if diff := cmp.Diff(want, got); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"", "/", "a/", "/a", "a//b", "a[b", "a[]", "a[b]c/d", "a/[b]"} {
		if got, err := ParseTaskPath(text); err == nil {
			t.Errorf("%q is read as %v", text, got)
		}
	}
}

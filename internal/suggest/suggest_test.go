package suggest

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"plugin", "function", "for_each", "timeout", "retry"}
	for given, want := range map[string]string{
		"plugin": "plugin", "plguin": "plugin", "PLUGIN": "plugin", "functoin": "function", "foreach": "for_each",
		"rerty": "retry", "retr": "retry", "try": "", "x": "", "": "", "something": "",
		strings.Repeat("plugin", 100): "",
	} {
		if got := Nearest(given, names); got != want {
			t.Errorf("%q: %q, want %q", given, got, want)
		}
	}
	if got := Nearest("ax", []string{"ay", "az"}); got != "ay" {
		t.Errorf("of two equally near names, %q", got)
	}
	if got := Nearest("", nil); got != "" {
		t.Errorf("of no names, %q", got)
	}
}

func TestDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0}, {"a", "", 1}, {"", "ab", 2}, {"ab", "ba", 1}, {"abc", "abd", 1}, {"kitten", "sitting", 3},
		{"ca", "abc", 3}, // a transposed pair is not edited again
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("%q, %q: %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

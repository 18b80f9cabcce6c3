package diag

import (
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"timeout", "retries", "retry", "when", "input", "x"}
	for given, want := range map[string]string{
		"timeuot": "timeout", "Timeout": "timeout", "retrys": "retry", "wehn": "when", "inptu": "input", "y": "x",
		"colour": "", "": "x", "completely_different": "", strings.Repeat("timeout", 20): "",
	} {
		if got := Nearest(given, names); got != want {
			t.Errorf("%q: got %q, want %q", given, got, want)
		}
	}
}

func TestEditDistance(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "abc", 0}, {"abc", "acb", 1}, {"abc", "adc", 1}, {"abcd", "bcd", 1}, {"ca", "abc", 3}, {"kitten", "sitting", 3}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("%q %q: %d", c.a, c.b, got)
		}
	}
}

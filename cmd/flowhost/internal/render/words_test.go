package render

import (
	"strings"
	"testing"
	"time"
)

func TestSize(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int64]string{7: "7 bytes", 1536: "1.5 KiB", 3 << 20: "3.0 MiB"} {
		if got := Size(bytes); got != want {
			t.Errorf("%d: %q, want %q", bytes, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"short", 5, "short"},
		{strings.Repeat("é", 20), 20, strings.Repeat("é", 20)},
		{strings.Repeat("x", 2048), 20, "xxxxxxxxx… (2.0 KiB)"},
		{strings.Repeat("é", 30), 20, "éééééééé… (60 bytes)"},
		{strings.Repeat("x", 100), 3, "… (100 bytes)"},
	} {
		if got := cut(test.text, test.width); got != test.want {
			t.Errorf("%.20q in %d: %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestShort(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		1234567 * time.Microsecond: "1.23s",
		1234567 * time.Nanosecond:  "1.23ms",
		1234 * time.Nanosecond:     "1µs",
	} {
		if got := Short(d); got != want {
			t.Errorf("%d ns: %q, want %q", d, got, want)
		}
	}
}

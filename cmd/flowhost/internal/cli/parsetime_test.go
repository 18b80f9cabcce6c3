package cli

import (
	"testing"
	"time"
)

func TestParseTime(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("here", 2*3600)
	now := time.Date(2026, 3, 10, 12, 0, 0, 0, zone)
	for text, want := range map[string]string{
		"":                          "0001-01-01T00:00:00Z",
		"2026-01-02":                "2026-01-02T00:00:00+02:00",
		"2026-01-02 15:04":          "2026-01-02T15:04:00+02:00",
		"2026-01-02T15:04:05":       "2026-01-02T15:04:05+02:00",
		"2026-01-02T15:04:05Z":      "2026-01-02T15:04:05Z",
		"2026-01-02T15:04:05-07:00": "2026-01-02T15:04:05-07:00",
		"90m":                       "2026-03-10T10:30:00+02:00",
		"0s":                        "2026-03-10T12:00:00+02:00",
		"7d":                        "2026-03-03T12:00:00+02:00",
	} {
		got, err := ParseTime(text, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: %s, %v; want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "-1d", "d", "2026-13-01", "15:04"} {
		if got, err := ParseTime(text, now); err == nil {
			t.Errorf("%q is taken for %s", text, got)
		}
	}
}

package cli

import (
	"strings"
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

func TestParseTimes(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 9, 12, 0, 0, 0, time.FixedZone("", 2*60*60))
	for text, want := range map[string]string{
		"":                       "0001-01-01T00:00:00Z 0001-01-01T00:00:00Z",
		"2026-01-02..2026-01-03": "2026-01-02T00:00:00+02:00 2026-01-03T00:00:00+02:00",
		"2026-01-02..":           "2026-01-02T00:00:00+02:00 0001-01-01T00:00:00Z",
		"..2026-01-02":           "0001-01-01T00:00:00Z 2026-01-02T00:00:00+02:00",
		"7d..1h":                 "2026-01-02T12:00:00+02:00 2026-01-09T11:00:00+02:00",
		"2026-01-02":             "2026-01-02T00:00:00+02:00 2026-01-03T00:00:00+02:00",
		"2026-01-02T03:04:05Z":   "2026-01-02T03:04:05Z 2026-01-02T03:04:05.000000001Z",
		"2026-01-03..2026-01-02": "2026-01-03T00:00:00+02:00 is not before 2026-01-02T00:00:00+02:00",
		"soon..":                 `"soon" is not a time`,
		"..soon":                 `"soon" is not a time`,
	} {
		from, to, err := ParseTimes(text, now)
		got := from.Format(time.RFC3339Nano) + " " + to.Format(time.RFC3339Nano)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, want) {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/run"
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
		got, err := parseTime(text, now)
		if err != nil || got.Format(time.RFC3339) != want {
			t.Errorf("%q: %s, %v; want %s", text, got.Format(time.RFC3339), err, want)
		}
	}
	for _, text := range []string{"yesterday", "-1h", "-1d", "d", "2026-13-01", "15:04"} {
		if got, err := parseTime(text, now); err == nil {
			t.Errorf("%q is taken for %s", text, got)
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
		{strings.Repeat("x", 2048), 20, "xxxxxxxxx… (2.0 KiB)"},
		{strings.Repeat("é", 30), 20, "éééééééé… (60 bytes)"},
		{strings.Repeat("x", 100), 3, "… (100 bytes)"},
	} {
		if got := cut(test.text, test.width); got != test.want {
			t.Errorf("%.20q in %d: %q, want %q", test.text, test.width, got, test.want)
		}
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	(&terminal{Writer: &out}).table([][]string{{"RUN", "STATE", "ERROR"}, {"é", "failed", ""}, {"long", "ok", "why"}}, 1)
	want := "RUN   STATE   ERROR\né     failed\nlong  ok      why\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
	out.Reset()
	(&terminal{Writer: &out, color: true}).table([][]string{{"a", "failed"}, {"b", "succeeded"}}, 1)
	if want := "a  \x1b[31mfailed\x1b[0m\nb  \x1b[32msucceeded\x1b[0m\n"; !strings.Contains(out.String(), "\x1b[31mfailed\x1b[0m") || strings.ReplaceAll(out.String(), "   \n", "\n") != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

// A run that has not started says why.
func TestShowPending(t *testing.T) {
	t.Parallel()
	for state, want := range map[run.State]bool{run.Pending: true, run.Running: false} {
		var stdout bytes.Buffer
		a := newApp(nil, &stdout, &bytes.Buffer{})
		a.describeRun(t.Context(), nil, &run.Record{Run: "R", Flow: "f", State: state})
		if got := strings.Contains(stdout.String(), "\nwaits     for its turn: "); got != want {
			t.Errorf("a run that is %s:\n%s", state, stdout.String())
		}
	}
}

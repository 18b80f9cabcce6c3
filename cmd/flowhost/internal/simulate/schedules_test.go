package simulate

import (
	"testing"
	"time"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/timetable"
)

func TestParseEnd(t *testing.T) {
	t.Parallel()
	berlin, err := timetable.ZoneNamed(nil, "Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	from := time.Date(2026, 3, 28, 12, 0, 0, 0, berlin) // the clocks change the night after
	for text, want := range map[string]string{
		"1d":                   "2026-03-29T12:00:00+02:00", // a day of the calendar
		"24h":                  "2026-03-29T13:00:00+02:00",
		"90m":                  "2026-03-28T13:30:00+01:00",
		"-1h":                  "2026-03-28T11:00:00+01:00", // refused by who asks
		"2026-04-01":           "2026-04-01T00:00:00+02:00",
		"2026-04-01T00:00:00Z": "2026-04-01T00:00:00Z",
		"":                     "",
		"d":                    "",
		"soon":                 "",
	} {
		got, err := parseEnd(text, from)
		if err == nil && got.Format(time.RFC3339) != want || err != nil && want != "" {
			t.Errorf("%q: %s, %v, want %q", text, got.Format(time.RFC3339), err, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", time.Millisecond: "1ms", 90 * time.Second: "1m30s", 2 * time.Hour: "2h", 90 * time.Minute: "1h30m", 10 * time.Minute: "10m",
		1234567 * time.Microsecond: "1.2s",
	} {
		if got := span(d); got != want {
			t.Errorf("%d ns: %s, want %s", d, got, want)
		}
	}
}

func TestShare(t *testing.T) {
	t.Parallel()
	for f, want := range map[float64]string{0: "0.00", 0.123: "0.12", 0.999: "1.0", 5.14: "5.1", 33.3: "33", 100: "100"} {
		if got := share(f); got != want {
			t.Errorf("%g: %s, want %s", f, got, want)
		}
	}
}

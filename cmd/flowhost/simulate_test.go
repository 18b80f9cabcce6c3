package main

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseEnd(t *testing.T) {
	t.Parallel()
	berlin, err := zoneNamed(nil, "Europe/Berlin")
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

func TestFormOf(t *testing.T) {
	t.Parallel()
	for expr, want := range map[string]form{
		"* * * * *": formCron, "0 9": formCron, "@daily": formCron, "5": formCron, "": formCron, "0 0 1-5 * *": formCron, "H H": formCron,
		"daily": formCalendar, "Mon": formCalendar, "*:0/15": formCalendar, "*-*-* 02:30": formCalendar, "Mon..Fri *-*-~01": formCalendar, "2026-03-01": formCalendar,
		"15m": formInterval, "1h30m": formInterval, "every 5": formInterval, "every\t15m": formInterval, "every 1h offset 5m": formInterval, "1.5h": formInterval, "3x": formInterval,
		"2026-03-01T00:00:00Z": formInstant, "2026-03-01T": formInstant,
	} {
		if got := formOf(expr); got != want {
			t.Errorf("%q: form %d, want %d", expr, got, want)
		}
	}
}

// Whatever is asked for, the answer is a schedule or a message with a code.
func FuzzExpression(f *testing.F) {
	for _, seed := range []string{
		"30 2 * * *", "61 * * * *", "@every 5m", "every\t15m", "every 1h offset 5m", "every 1h offset", "15m", "2026-12-24T18:00:00Z", "2026-12-24T", "Mon..Fri *-*-~01 09:00",
		"\x00 \xff", "TZ=\u00fc 0 0 * * *", "H H * * *", "", " ",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, expr string) {
		n := &nextTimes{}
		timetable, err := n.ofExpression(nil, strings.TrimSpace(expr))
		var exit *exitError
		switch {
		case err == nil:
			timetable.next(time.Unix(0, 0), 3)
		case !errors.As(err, &exit) || exit.code != exitInvalid || exit.Error() == "":
			t.Errorf("%q: %v", expr, err)
		}
	})
}

func TestSuggestZone(t *testing.T) {
	t.Parallel()
	const none = "; there are Europe/Berlin, America/New_York, Asia/Tokyo, UTC and hundreds of others"
	for name, want := range map[string]string{
		"new york": `; did you mean "America/New_York"?`, "Europe/berlin": `; did you mean "Europe/Berlin"?`, "EUROPE/SAO_PAULO": `; did you mean "America/Sao_Paulo"?`,
		"PST": none, "": none, "/": none, "../x": none,
	} {
		if got := suggestZone(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
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

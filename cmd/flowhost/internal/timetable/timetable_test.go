package timetable

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/cmd/flowhost/internal/cli"
)

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
		timetable, err := OfExpression(nil, strings.TrimSpace(expr), Options{})
		var exit *cli.ExitError
		switch {
		case err == nil:
			timetable.Next(time.Unix(0, 0), 3)
		case !errors.As(err, &exit) || exit.Code != cli.ExitInvalid || exit.Error() == "":
			t.Errorf("%q: %v", expr, err)
		}
	})
}

func TestSuggestZone(t *testing.T) {
	t.Parallel()
	const none = "; examples: Europe/Berlin, America/New_York, Asia/Tokyo, UTC"
	for name, want := range map[string]string{
		"new york": `; did you mean "America/New_York"?`, "Europe/berlin": `; did you mean "Europe/Berlin"?`, "EUROPE/SAO_PAULO": `; did you mean "America/Sao_Paulo"?`,
		"PST": none, "": none, "/": none, "../x": none,
	} {
		if got := suggestZone(name); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

package scheduler

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestSpecialDays(t *testing.T) {
	t.Parallel()
	tests := []struct{ expr, from, want string }{
		{"0 0 L * *", "2028-01-15", "Mon 2028-01-31, Tue 2028-02-29, Fri 2028-03-31, Sun 2028-04-30"},
		{"0 0 l-2 * *", "2026-02-01", "Thu 2026-02-26, Sun 2026-03-29, Tue 2026-04-28, Fri 2026-05-29"},
		{"0 0 L-30 * *", "2026-02-01", "Sun 2026-03-01, Fri 2026-05-01, Wed 2026-07-01, Sat 2026-08-01"},
		{"0 0 15W * *", "2026-02-01", "Mon 2026-02-16, Mon 2026-03-16, Wed 2026-04-15, Fri 2026-05-15"},
		{"0 0 1w * *", "2026-01-15", "Mon 2026-02-02, Mon 2026-03-02, Wed 2026-04-01, Fri 2026-05-01"}, // never the month before
		{"0 0 1W 8 *", "2026-02-01", "Mon 2026-08-03, Mon 2027-08-02, Tue 2028-08-01, Wed 2029-08-01"}, // a Saturday: over the weekend
		{"0 0 31W * *", "2026-01-15", "Fri 2026-01-30, Tue 2026-03-31, Fri 2026-05-29, Fri 2026-07-31"},
		{"0 0 LW * *", "2026-01-15", "Fri 2026-01-30, Fri 2026-02-27, Tue 2026-03-31, Thu 2026-04-30"},
		{"0 0 1,15,L * *", "2026-02-02", "Sun 2026-02-15, Sat 2026-02-28, Sun 2026-03-01, Sun 2026-03-15"},
		{"0 0 * * 5#2", "2026-02-01", "Fri 2026-02-13, Fri 2026-03-13, Fri 2026-04-10, Fri 2026-05-08"},
		{"0 0 * * fri#5", "2026-02-01", "Fri 2026-05-29, Fri 2026-07-31, Fri 2026-10-30, Fri 2027-01-29"},
		{"0 0 * * 5#L", "2026-02-01", "Fri 2026-02-27, Fri 2026-03-27, Fri 2026-04-24, Fri 2026-05-29"},
		{"0 0 * * 5L", "2026-02-01", "Fri 2026-02-27, Fri 2026-03-27, Fri 2026-04-24, Fri 2026-05-29"},
		{"0 0 * * friL", "2026-02-01", "Fri 2026-02-27, Fri 2026-03-27, Fri 2026-04-24, Fri 2026-05-29"},
		{"0 0 * * 7#1,0#L", "2026-02-02", "Sun 2026-02-22, Sun 2026-03-01, Sun 2026-03-29, Sun 2026-04-05"},
		{"0 0 * * 1,5#1", "2026-02-01", "Mon 2026-02-02, Fri 2026-02-06, Mon 2026-02-09, Mon 2026-02-16"},
		{"0 0 L * 5#L", "2026-02-01", "Fri 2026-02-27, Sat 2026-02-28, Fri 2026-03-27, Tue 2026-03-31"}, // one is enough
		{"0 0 0 29 2 ? 2023-2030", "2026-02-01", "Tue 2028-02-29, nothing"},
		{"0 0 0 1 1 * 2030/100,2033-2034", "2026-02-01", "Tue 2030-01-01, Sat 2033-01-01, Sun 2034-01-01, Sun 2130-01-01"},
		{"0 0 0 1 1 * */100", "2026-02-01", "Wed 2070-01-01, Mon 2170-01-01, nothing"},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			t.Parallel()
			if got := four(t, tt.expr, tt.from, "Mon 2006-01-02"); got != tt.want {
				t.Errorf("fires %s\nwant  %s", got, tt.want)
			}
		})
	}
}

func TestDayBoth(t *testing.T) {
	t.Parallel()
	c := cronWith(t, "0 0 13 * 5", CronOptions{DayMatch: DayBoth})
	if got := some(t, c, 3, "2026-02-01", "Mon 2006-01-02"); got != "Fri 2026-02-13, Fri 2026-03-13, Fri 2026-11-13" {
		t.Errorf("fires %s", got)
	}
	_, err := ParseCron("0 0 31 * 1#2", CronOptions{DayMatch: DayBoth})
	checkFault(t, err, "cron expression", "0 0 31 * 1#2", 9, "day of week", "never falls on such a day of the week")
	for _, m := range []DayMatch{DayEither, DayBoth} {
		if got, ok := ParseDayMatch(m.String()); !ok || got != m {
			t.Errorf("%v is read as %v, %v", m, got, ok)
		}
	}
	if _, ok := ParseDayMatch("both"); ok {
		t.Error("both is read")
	}
}

func TestHash(t *testing.T) {
	t.Parallel()
	// The words are what this hash gave once; all schedules with H would move if
	// it ever gave others.
	tests := []struct{ expr, name, text string }{
		{"H H * * *", "billing/nightly", "53 16 * * *"},
		{"H H * * *", "billing/weekly", "13 20 * * *"},
		{"H/15 * * * *", "billing/nightly", "8-53/15 * * * *"},
		{"h(0-9) H(1-5) * * *", "billing/nightly", "3 4 * * *"},
		{"H(10-50)/20 0 H H H", "billing/nightly", "23,43 0 3 5 5"},
		{"H 0 0 H/10 * H(fri-sun)", "billing/nightly", "36 0 0 1-21/10 * 5"},
		{"0 H,12 * * *", "billing/nightly", "0 12,16 * * *"},
	}
	for _, tt := range tests {
		if got := cronWith(t, tt.expr, CronOptions{Name: tt.name}).String(); got != tt.text {
			t.Errorf("%q of %s is %q, want %q", tt.expr, tt.name, got, tt.text)
		}
	}
}

// TestHashSpreads looks for a herd: names that differ in one digit must not meet.
func TestHashSpreads(t *testing.T) {
	t.Parallel()
	const names = 6000
	var minutes [60]int
	for n := range names {
		c := cronWith(t, "H * * * *", CronOptions{Name: fmt.Sprintf("flow/trigger-%d", n)})
		at, _ := c.Next(time.Unix(0, 0))
		minutes[at.Minute()]++
	}
	for minute, n := range minutes {
		if n < names/60/2 || n > names/60*2 {
			t.Errorf("%d of %d names hash to minute %d", n, names, minute)
		}
	}
}

// TestHashStaysInRange tries the ends: days that all months have, and ranges that
// are shorter than the step.
func TestHashStaysInRange(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for n := range 2000 {
		c := cronWith(t, "H(3-4)/10 0 H * *", CronOptions{Name: fmt.Sprint(n)})
		minute, rest, _ := strings.Cut(c.String(), " ")
		seen["minute "+minute] = true
		day := strings.Fields(rest)[1]
		seen["day "+day] = true
	}
	if len(seen) != 2+28 || !seen["minute 3"] || !seen["minute 4"] || !seen["day 1"] || !seen["day 28"] {
		t.Errorf("saw %v", seen)
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	tests := []struct{ expr, text string }{
		{"*/1 ? * JAN,mar SUN", "* * * 1,3 0"},
		{"5,3,4,9 0-23 * * mon-fri", "3-5,9 0-23 * * 1-5"},
		{"*/20,7 10,5 * * 7", "*/20,7 5,10 * * 0"},
		{"0-59/15 */2 * * *", "0-45/15 */2 * * *"},
		{"0 0 0 LW,15w,L,L-3,1 * 5L,1#2,3", "0 0 1,L,L-3,LW,15W * 3,1#2,5#L"},
		{"0 0 0 1 1 * *", "0 0 1 1 *"},
		{"0 0 0 1 1 * 2030,2031,2032", "0 0 0 1 1 * 2030-2032"},
		{"15 0 0 1 1 *", "15 0 0 1 1 *"},
		{"@yearly", "0 0 1 1 *"},
		{"@hourly", "0 * * * *"},
	}
	for _, tt := range tests {
		c := cron(t, tt.expr, "UTC")
		if c.String() != tt.text {
			t.Errorf("%q is %q, want %q", tt.expr, c, tt.text)
		}
		if again := cron(t, c.String(), "UTC"); again.String() != c.String() {
			t.Errorf("%q, read again, is %q", c, again)
		}
	}
}

package scheduler

import (
	"strings"
	"testing"
	"time"
)

// fires is the times of a schedule within [from, to), formatted.
func fires(s Schedule, from, to time.Time, layout string) string {
	var out []string
	for t, ok := s.Next(from.Add(-1)); ok && t.Before(to); t, ok = s.Next(t) {
		out = append(out, t.Format(layout))
	}
	return strings.Join(out, ", ")
}

// TestDaylightSaving is the table of the daylight saving rule. A row is the fires
// of a local day up to an hour of it.
func TestDaylightSaving(t *testing.T) {
	t.Parallel()
	const (
		newYork = "America/New_York"
		spring  = "00:00 -05, 01:00 -05, 03:00 -04, 04:00 -04"
		autumn  = "00:30 -04, 01:30 -04, 01:30 -05, 02:30 -05"
		halves  = "00:00 -04, 00:30 -04, 01:00 -04, 01:30 -04, 01:00 -05, 01:30 -05, 02:00 -05, 02:30 -05"
	)
	tests := []struct {
		zone, day string
		hours     int // elapsed since the day's start; 0 is the whole day
		expr      string
		want      string
	}{
		{newYork, "2026-03-08", 0, "30 2 * * *", "03:00 -04"},
		{newYork, "2026-03-08", 4, "0 * * * *", spring},
		{newYork, "2026-03-08", 4, "0 */1 * * *", spring},
		{newYork, "2026-03-08", 4, "0 ? * * *", spring},
		{newYork, "2026-03-08", 4, "0 0-23 * * *", spring},
		{newYork, "2026-03-08", 0, "5,35 2 * * *", "03:00 -04"},
		{newYork, "2026-03-08", 0, "*/10 30 2 * * *", "03:00 -04"},
		{newYork, "2026-03-08", 0, "30 2,3 * * *", "03:00 -04, 03:30 -04"},
		{newYork, "2026-03-08", 0, "0 2,3 * * *", "03:00 -04"},
		{newYork, "2026-03-08", 0, "59 59 1 * * *", "01:59 -05"},
		{newYork, "2026-03-08", 0, "*/20 2 * * *", ""},
		{newYork, "2026-11-01", 0, "30 1 * * *", "01:30 -04"},
		{newYork, "2026-11-01", 0, "0,30 1,2 * * *", "01:00 -04, 01:30 -04, 02:00 -05, 02:30 -05"},
		{newYork, "2026-11-01", 4, "30 * * * *", autumn},
		{newYork, "2026-11-01", 4, "*/30 * * * *", halves},
		{"Australia/Lord_Howe", "2026-10-04", 0, "15 2 * * *", "02:30 +11"},
		{"Australia/Lord_Howe", "2026-04-05", 0, "45 1 * * *", "01:45 +11"},
		{"America/Sao_Paulo", "2018-11-04", 0, "0 0 * * *", "01:00 -02"},
		{"America/Havana", "2026-03-08", 0, "30 0 * * *", "01:00 -04"},
		{"Pacific/Apia", "2011-12-29", 0, "0 12 * * *", "12:00 -10"},
		{"Pacific/Apia", "2011-12-30", 0, "0 12 * * *", ""},
		{"Pacific/Apia", "2011-12-31", 0, "0 12 * * *", "12:00 +14"},
		{"Antarctica/Troll", "2026-03-29", 0, "15,45 1,2 * * *", "03:00 +02"},
		{"Antarctica/Troll", "2026-10-25", 0, "30 1-3 * * *", "01:30 +02, 02:30 +02, 03:30 +00"},
	}
	for _, tt := range tests {
		t.Run(tt.zone+" "+tt.day+" "+tt.expr, func(t *testing.T) {
			t.Parallel()
			c := cron(t, tt.expr, tt.zone)
			from, to := localDay(t, tt.day, c.times.zone)
			if tt.hours > 0 {
				to = from.Add(time.Duration(tt.hours) * time.Hour)
			}
			if got := fires(c, from, to, "15:04 -07"); got != tt.want {
				t.Errorf("fires %s\nwant  %s", got, tt.want)
			}
		})
	}
}

// localDay is the instants between which a zone has a date; none for a date
// that did not exist.
func localDay(t *testing.T, day string, zone *time.Location) (from, to time.Time) {
	t.Helper()
	utc, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	at := utc.Add(-26 * time.Hour)
	for at.In(zone).Format(time.DateOnly) < day {
		at = at.Add(time.Minute)
	}
	from = at
	for at.In(zone).Format(time.DateOnly) == day {
		at = at.Add(time.Minute)
	}
	return from, at
}

func TestCronCalendar(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, expr, from, want string }{
		{"both days restricted: one is enough", "0 0 13 * 5", "2026-02-07", "Fri 2026-02-13, Fri 2026-02-20, Fri 2026-02-27, Fri 2026-03-06"},
		{"both days, not on one", "0 0 15 * 5", "2026-02-12", "Fri 2026-02-13, Sun 2026-02-15, Fri 2026-02-20, Fri 2026-02-27"},
		{"day of month with a star: both", "0 0 */2 * mon", "2026-02-01", "Mon 2026-02-09, Mon 2026-02-23, Mon 2026-03-09, Mon 2026-03-23"},
		{"day of week with a star: both", "0 0 1-7 * */6", "2026-02-02", "Sat 2026-02-07, Sun 2026-03-01, Sat 2026-03-07, Sat 2026-04-04"},
		{"Sunday is 0", "0 0 * * 0", "2026-02-02", "Sun 2026-02-08, Sun 2026-02-15, Sun 2026-02-22, Sun 2026-03-01"},
		{"Sunday is 7", "0 0 * * 7", "2026-02-02", "Sun 2026-02-08, Sun 2026-02-15, Sun 2026-02-22, Sun 2026-03-01"},
		{"Sunday ends a range", "0 0 * * sat-sun", "2026-02-02", "Sat 2026-02-07, Sun 2026-02-08, Sat 2026-02-14, Sun 2026-02-15"},
		{"Sunday 7 starts a range", "0 0 * * 7-1", "2026-02-03", "Sun 2026-02-08, Mon 2026-02-09, Sun 2026-02-15, Mon 2026-02-16"},
		{"31st skips short months", "0 0 31 * *", "2026-02-01", "Tue 2026-03-31, Sun 2026-05-31, Fri 2026-07-31, Mon 2026-08-31"},
		{"leap day over 2100", "0 0 29 2 *", "2093-01-01", "Wed 2096-02-29, Fri 2104-02-29, Wed 2108-02-29, Mon 2112-02-29"},
		{"leap day on a weekend, 28 years apart", "0 0 29 feb */6", "2072-03-01", "Sat 2076-02-29, Sun 2088-02-29, Sat 2116-02-29, Sun 2128-02-29"},
		{"names", "0 0 1 JAN,Jul *", "2026-02-01", "Wed 2026-07-01, Fri 2027-01-01, Thu 2027-07-01, Sat 2028-01-01"},
		{"before 1970", "0 0 1 1 *", "1899-06-01", "Mon 1900-01-01, Tue 1901-01-01, Wed 1902-01-01, Thu 1903-01-01"},
		{"@monthly", "@monthly", "2026-11-15", "Tue 2026-12-01, Fri 2027-01-01, Mon 2027-02-01, Mon 2027-03-01"},
		{"@weekly", "@weekly", "2026-02-02", "Sun 2026-02-08, Sun 2026-02-15, Sun 2026-02-22, Sun 2026-03-01"},
		{"@annually", "@Annually", "2026-02-02", "Fri 2027-01-01, Sat 2028-01-01, Mon 2029-01-01, Tue 2030-01-01"},
		{"@midnight", "@midnight", "2026-02-27", "Fri 2026-02-27, Sat 2026-02-28, Sun 2026-03-01, Mon 2026-03-02"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := four(t, tt.expr, tt.from, "Mon 2006-01-02"); got != tt.want {
				t.Errorf("fires %s\nwant  %s", got, tt.want)
			}
		})
	}
}

func TestCronClock(t *testing.T) {
	t.Parallel()
	tests := []struct{ expr, want string }{
		{"* * * * *", "00:00:00, 00:01:00, 00:02:00, 00:03:00"},
		{"*/20 8 * * *", "08:00:00, 08:20:00, 08:40:00, 08:00:00"},
		{"50/5 8 * * *", "08:50:00, 08:55:00, 08:50:00, 08:55:00"},
		{"10-30/10,7 23 * * *", "23:07:00, 23:10:00, 23:20:00, 23:30:00"},
		{"59 23 * * *", "23:59:00, 23:59:00, 23:59:00, 23:59:00"},
		{"*/30 59 23 * * *", "23:59:00, 23:59:30, 23:59:00, 23:59:30"},
		{"  15\t0 0,12 * * *  ", "00:00:15, 12:00:15, 00:00:15, 12:00:15"},
		{"@hourly", "00:00:00, 01:00:00, 02:00:00, 03:00:00"},
		{"? 6 ? * ?", "06:00:00, 06:01:00, 06:02:00, 06:03:00"},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			t.Parallel()
			if got := four(t, tt.expr, "2026-02-01", time.TimeOnly); got != tt.want {
				t.Errorf("fires %s\nwant  %s", got, tt.want)
			}
		})
	}
}

// four is the first four times of a schedule in UTC, from a day on.
func four(t *testing.T, expr, from, layout string) string {
	t.Helper()
	return some(t, cron(t, expr, "UTC"), 4, from, layout)
}

// some is the first n times of a schedule from a day in UTC on.
func some(t *testing.T, s Schedule, n int, from, layout string) string {
	t.Helper()
	at, err := time.Parse(time.DateOnly, from)
	if err != nil {
		t.Fatal(err)
	}
	at = at.Add(-1)
	var out []string
	for range n {
		next, ok := s.Next(at)
		if !ok {
			out = append(out, "nothing")
			break
		}
		out = append(out, next.Format(layout))
		at = next
	}
	return strings.Join(out, ", ")
}

func TestCronNextIsStrictlyAfter(t *testing.T) {
	t.Parallel()
	c := cron(t, "30 4 * * *", "Europe/Paris")
	due, _ := c.Next(time.Date(2026, 5, 1, 0, 0, 0, 0, time.UTC))
	tests := map[time.Duration]time.Duration{-1: 0, 0: 24 * time.Hour, 1: 24 * time.Hour, -time.Hour: 0}
	for after, want := range tests {
		if got, _ := c.Next(due.Add(after)); !got.Equal(due.Add(want)) {
			t.Errorf("next of due%+d is %v, want %v after due", after, got, want)
		}
	}
	if due.Location() != c.times.zone || due.Format(time.TimeOnly) != "04:30:00" {
		t.Errorf("%v is not in the schedule's zone", due)
	}
}

func TestCronEndsWithNanoseconds(t *testing.T) {
	t.Parallel()
	c := cron(t, "0 0 1 1 *", "UTC")
	if next, ok := c.Next(time.Date(2262, 1, 2, 0, 0, 0, 0, time.UTC)); ok {
		t.Errorf("%v has no UTC nanoseconds", next)
	}
	if next, ok := c.Next(time.Date(9000, 1, 2, 0, 0, 0, 0, time.UTC)); ok {
		t.Errorf("%v after the year 9000", next)
	}
	if next, ok := c.Next(time.Time{}); !ok || next.Year() != 1678 {
		t.Errorf("the first time is %v, %v", next, ok)
	}
}

func TestCronString(t *testing.T) {
	t.Parallel()
	c, err := ParseCron(" 0  4 * * MON ", CronOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if got := c.String(); got != "0 4 * * 1" {
		t.Errorf("%q is not canonical", got)
	}
	if next, _ := c.Next(time.Now()); next.Location() != time.UTC {
		t.Errorf("without a zone: %v", next.Location())
	}
}

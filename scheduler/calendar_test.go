package scheduler

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func calendar(t testing.TB, expr, zone string, dst DST) *Calendar {
	t.Helper()
	c, err := ParseCalendar(expr, location(t, zone), dst)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCalendar(t *testing.T) {
	t.Parallel()
	tests := []struct{ expr, text, from, want string }{
		{"Mon..Fri *-*-~01 09:00", "Mon..Fri *-*-~01 09:00:00", "2026-02-01", "Tue 2026-03-31 09:00, Thu 2026-04-30 09:00, Tue 2026-06-30 09:00"},
		{"Mon,Wed", "Mon,Wed *-*-* 00:00:00", "2026-02-01", "Mon 2026-02-02 00:00, Wed 2026-02-04 00:00, Mon 2026-02-09 00:00"},
		{"Sat,Mon..Wed,Sunday 8:5", "Mon..Wed,Sat,Sun *-*-* 08:05:00", "2026-02-05", "Sat 2026-02-07 08:05, Sun 2026-02-08 08:05, Mon 2026-02-09 08:05"},
		{"mon..sun", "*-*-* 00:00:00", "2026-02-05", "Thu 2026-02-05 00:00, Fri 2026-02-06 00:00, Sat 2026-02-07 00:00"},
		{"*-*-*", "*-*-* 00:00:00", "2026-02-28", "Sat 2026-02-28 00:00, Sun 2026-03-01 00:00, Mon 2026-03-02 00:00"},
		{"2027-01..03-*", "2027-01..03-* 00:00:00", "2026-02-28", "Fri 2027-01-01 00:00, Sat 2027-01-02 00:00, Sun 2027-01-03 00:00"},
		{"*:0/15", "*-*-* *:00/15:00", "2026-02-01", "Sun 2026-02-01 00:00, Sun 2026-02-01 00:15, Sun 2026-02-01 00:30"},
		{"9..17/4:30", "*-*-* 09..17/4:30:00", "2026-02-01", "Sun 2026-02-01 09:30, Sun 2026-02-01 13:30, Sun 2026-02-01 17:30"},
		{"9,10,11,15:00", "*-*-* 09..11,15:00:00", "2026-02-01", "Sun 2026-02-01 09:00, Sun 2026-02-01 10:00, Sun 2026-02-01 11:00"},
		{"02-29", "*-02-29 00:00:00", "2097-01-01", "Fri 2104-02-29 00:00, Wed 2108-02-29 00:00, Mon 2112-02-29 00:00"},
		{"Mon *-05~07/1", "Mon *-05-~01..07 00:00:00", "2026-01-01", "Mon 2026-05-25 00:00, Mon 2027-05-31 00:00, Mon 2028-05-29 00:00"}, // systemd.time(7)
		{"*-02~03", "*-02-~03 00:00:00", "2026-01-01", "Thu 2026-02-26 00:00, Fri 2027-02-26 00:00, Sun 2028-02-27 00:00"},               // systemd.time(7)
		{"*-*-~05/2", "*-*-~01..05/2 00:00:00", "2026-02-01", "Tue 2026-02-24 00:00, Thu 2026-02-26 00:00, Sat 2026-02-28 00:00"},
		{"*-*-~01,31", "*-*-~01,31 00:00:00", "2026-02-01", "Sat 2026-02-28 00:00, Sun 2026-03-01 00:00, Tue 2026-03-31 00:00"},
		{"2030/4-01-01", "2030..2262/4-01-01 00:00:00", "2026-02-01", "Tue 2030-01-01 00:00, Sun 2034-01-01 00:00, Fri 2038-01-01 00:00"},
		{"Fri *-*-13 12:00", "Fri *-*-13 12:00:00", "2026-02-01", "Fri 2026-02-13 12:00, Fri 2026-03-13 12:00, Fri 2026-11-13 12:00"}, // both, never either
		{"minutely", "*-*-* *:*:00", "2026-02-01", "Sun 2026-02-01 00:00, Sun 2026-02-01 00:01, Sun 2026-02-01 00:02"},
		{"hourly", "*-*-* *:00:00", "2026-02-01", "Sun 2026-02-01 00:00, Sun 2026-02-01 01:00, Sun 2026-02-01 02:00"},
		{"Daily", "*-*-* 00:00:00", "2026-02-01", "Sun 2026-02-01 00:00, Mon 2026-02-02 00:00, Tue 2026-02-03 00:00"},
		{"weekly", "Mon *-*-* 00:00:00", "2026-02-01", "Mon 2026-02-02 00:00, Mon 2026-02-09 00:00, Mon 2026-02-16 00:00"},
		{"monthly", "*-*-01 00:00:00", "2026-02-02", "Sun 2026-03-01 00:00, Wed 2026-04-01 00:00, Fri 2026-05-01 00:00"},
		{"quarterly", "*-01..10/3-01 00:00:00", "2026-02-02", "Wed 2026-04-01 00:00, Wed 2026-07-01 00:00, Thu 2026-10-01 00:00"},
		{"semiannually", "*-01,07-01 00:00:00", "2026-02-02", "Wed 2026-07-01 00:00, Fri 2027-01-01 00:00, Thu 2027-07-01 00:00"},
		{"yearly", "*-01-01 00:00:00", "2026-02-02", "Fri 2027-01-01 00:00, Sat 2028-01-01 00:00, Mon 2029-01-01 00:00"},
		{"annually", "*-01-01 00:00:00", "2026-02-02", "Fri 2027-01-01 00:00, Sat 2028-01-01 00:00, Mon 2029-01-01 00:00"},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			t.Parallel()
			c := calendar(t, tt.expr, "UTC", DSTCron)
			if c.String() != tt.text {
				t.Errorf("in canonical form %q, want %q", c, tt.text)
			}
			if got := some(t, c, 3, tt.from, "Mon 2006-01-02 15:04"); got != tt.want {
				t.Errorf("fires %s\nwant  %s", got, tt.want)
			}
		})
	}
}

func TestCalendarSeconds(t *testing.T) {
	t.Parallel()
	c := calendar(t, "*-*-* 23:59:10..50/20", "UTC", DSTCron)
	if got := some(t, c, 4, "2026-02-01", time.TimeOnly); got != "23:59:10, 23:59:30, 23:59:50, 23:59:10" {
		t.Errorf("fires %s", got)
	}
}

func TestCalendarErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expr   string
		offset int
		field  string
		text   string
	}{
		{"", 0, "", "empty"},
		{"Mon 09:00 Europe/Berlin", 10, "", `timezone = "Europe/Berlin"`},
		{"25:00 UTC", 6, "", `timezone = "UTC"`},
		{"*-*-* *:0/99 Asia/Tokyo", 13, "", `timezone = "Asia/Tokyo"`},
		{"UTC", 0, "", "timezone attribute"},
		{"TZ=UTC daily", 0, "", "timezone attribute"},
		{"daily UTC", 6, "", "timezone attribute"},
		{"daily 09:00", 6, "", "nothing may follow daily"},
		{"Mon Tue 09:00", 4, "", "neither a date nor a time"},
		{"09:00 Mon..Fri", 6, "", "one too many"},
		{"Mon daily", 4, "", "neither a date nor a time"},
		{"dayly", 0, "day of week", "short form such as daily"},
		{"Mon-Fri 09:00", 0, "day of week", "ranges Mon..Fri"},
		{"Sun..Tue", 0, "day of week", "Sun..Sun,Mon..Tue"},
		{"Mon,", 4, "day of week", "not a day"},
		{"24:00", 0, "hour", "0 to 23"},
		{"12:60", 3, "minute", "0 to 59"},
		{"12:00:60", 6, "second", "0 to 59"},
		{"12:00:00.5", 6, "second", "not a value"},
		{"*:*/15", 2, "minute", "write 0/15"},
		{"*:0/0", 4, "minute", "not a step"},
		{"*:5..1", 2, "minute", "write it as two, 5..59,0..1"},
		{"*-13-01", 2, "month", "1 to 12"},
		{"*-*-32", 4, "day of month", "1 to 31"},
		{"*-*-L", 4, "day of month", "~01 is the last day"},
		{"*-*-~0", 5, "day of month", "out of range"},
		{"*-*-~*", 5, "day of month", "not combined with other values"},
		{"26-01-01", 0, "year", "1970 to 2262"},
		{"12", 0, "", "neither a date nor a time"},
		{"~01", 0, "", "neither a date nor a time"},
		{"*-*-* 12", 6, "", "not a time"},
		{"*-*-* 12:00 13:00", 12, "", "one too many"},
		{"*-02-30", 0, "day of month", "none of the months"},
		{"2027-02-29", 0, "year", "none of the years"},
		{"*-04-~31", 0, "day of month", "none of the months"},
		{"Mon 2026-01-01", 0, "day of week", "never falls on such a day of the week"},
		{"2262-12-01", 0, "", "never fires"},
		{strings.Repeat("1,", 600), 1024, "", "longer than"},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			t.Parallel()
			_, err := ParseCalendar(tt.expr, nil, DSTCron)
			checkFault(t, err, "calendar expression", tt.expr, tt.offset, tt.field, tt.text)
		})
	}
}

// checkFault wants a *ParseError with an offset, a field and a part of its message.
func checkFault(t *testing.T, err error, notation, expr string, offset int, field, text string) {
	t.Helper()
	var fault *ParseError
	if !errors.As(err, &fault) {
		t.Fatalf("got %v", err)
	}
	if fault.Notation != notation || fault.Expr != expr || fault.Offset != offset || fault.Field != field {
		t.Errorf("%s at byte %d, field %q; want byte %d, field %q", fault, fault.Offset, fault.Field, offset, field)
	}
	if !strings.Contains(err.Error(), text) {
		t.Errorf("%q does not say %q", err, text)
	}
}

func TestIn(t *testing.T) {
	t.Parallel()
	newYork, after := location(t, "America/New_York"), time.Date(2026, 3, 8, 0, 0, 0, 0, time.UTC)
	both, err := ParseCron("30 2 13 * 5", CronOptions{Zone: newYork, DayMatch: DayBoth})
	if err != nil {
		t.Fatal(err)
	}
	daily, err := ParseCalendar("02:30", newYork, DSTCron)
	if err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]Schedule{
		"2026-03-13T02:30:00Z":      both.In(nil), // a Friday
		"2026-03-13T02:30:00-04:00": both,
		"2026-03-08T02:30:00Z":      daily.In(time.UTC), // skipped in New York
		"2026-03-08T03:00:00-04:00": daily,
	} {
		if got, ok := s.Next(after); !ok || got.Format(time.RFC3339) != want {
			t.Errorf("%v: %v, %v, want %s", s, got, ok, want)
		}
	}
	if both.In(nil).String() != both.String() || daily.In(nil).String() != daily.String() {
		t.Error("the words are not the same in another zone")
	}
}

package scheduler

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseErrors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expr   string
		offset int
		field  string
		text   string // part of the message
	}{
		{"", 0, "", "empty"},
		{" \t ", 0, "", "empty"},
		{"* * * *", 7, "", "5 to 7 fields, not 4"},
		{"1 2 3 4 5 6 7 8", 15, "", "not 8"},
		{"61 * * * *", 0, "minute", "61 is out of range (minute is 0 to 59)"},
		{"* 24 * * *", 2, "hour", "0 to 23"},
		{"* * 0 * *", 4, "day of month", "1 to 31"},
		{"* * * 13 *", 6, "month", "1 to 12 or jan to dec"},
		{"* * * * 8", 8, "day of week", "0 to 7 or sun to sat"},
		{"60 * * * * *", 0, "second", "0 to 59"},
		{"99999999999999999999 * * * *", 0, "minute", "not a value"},
		{"-1 * * * *", 0, "minute", "not a value"},
		{"+1 * * * *", 0, "minute", "not a value"},
		{"1,,2 * * * *", 2, "minute", "not a value"},
		{"1, * * * *", 2, "minute", "not a value"},
		{"* 9-17-3 * * *", 4, "hour", "not a value"},
		{"* 17-9 * * *", 2, "hour", "write it as two, 17-23,0-9"},
		{"*/0 * * * *", 2, "minute", "steps are 1 to 59"},
		{"*/60 * * * *", 2, "minute", "steps are 1 to 59"},
		{"5/ * * * *", 2, "minute", "not a step"},
		{"1/2/3 * * * *", 2, "minute", "not a step"},
		{"*-5 * * * *", 0, "minute", "not a value"},
		{"** * * * *", 0, "minute", "not a value"},
		{"* * * january *", 6, "month", "names have three letters, write jan; or write 1"},
		{"* * * * monday", 8, "day of week", "or write 1"},
		{"* * * * mon-", 12, "day of week", "not a value"},
		{"jan * * * *", 0, "minute", "not a value"},
		{"\x00 * * * *", 0, "minute", "not a value"},
		{"٣ * * * *", 0, "minute", "not a value"},
		{strings.Repeat("1,", 600), 1024, "", "longer than 1024 bytes"},

		{"0 0 L-0 * *", 6, "day of month", "n is 1 to 30"},
		{"0 0 L-31 * *", 6, "day of month", "n is 1 to 30"},
		{"0 0 L-3W * *", 6, "day of month", "not a number of days"},
		{"0 0 LX * *", 4, "day of month", "there are L, L-3, 15W and LW"},
		{"0 0 W * *", 4, "day of month", "there are L, L-3, 15W and LW"},
		{"0 0 32W * *", 4, "day of month", "32 is out of range"},
		{"0 0 1-15W * *", 4, "day of month", "not a day"},
		{"0 L * * *", 2, "hour", "L and W are for the day of month"},
		{"0 15W * * *", 2, "hour", "L and W are for the day of month"},
		{"0 0 5#2 * *", 4, "day of month", "# and L after a day are for the day of week"},
		{"0 0 * * L", 8, "day of week", "the last Friday of the month is fri#L"},
		{"0 0 * * 5#6", 10, "day of week", "up to fri#5"},
		{"0 0 * * 5#0", 10, "day of week", "not a week"},
		{"0 0 * * 5#", 10, "day of week", "not a week"},
		{"0 0 * * 8#1", 8, "day of week", "8 is out of range"},
		{"0 0 * * mon-fri#1", 8, "day of week", "not a value"},
		{"0 0 * * 9L", 8, "day of week", "9 is out of range"},

		{"H * * * *", 0, "minute", "H needs a name to hash"},
		{"0 H(0-7) * * *", 2, "hour", "H needs a name to hash"},
		{"0 0 0 1 1 * H", 12, "year", "H is not allowed here"},
		{"0 0 1 1 * 1969", 10, "day of week", "out of range"},
		{"0 0 0 1 1 * 1969", 12, "year", "1969 is out of range (year is 1970 to 2262)"},
		{"0 0 0 1 1 * 2263", 12, "year", "out of range"},
		{"0 0 0 1 1 * 2030-2020", 12, "year", "runs backwards"},
		{"0 0 0 1 1 * */293", 14, "year", "steps are 1 to 292"},

		{"0 0 30 2 *", 4, "day of month", "none of the months"},
		{"0 0 31 2,4,6,9,11 *", 4, "day of month", "none of the months"},
		{"0 0 31 4 *", 4, "day of month", "none of the months"},
		{"0 0 30-31 feb */2", 4, "day of month", "none of the months"},
		{"0 0 L-30 4 *", 4, "day of month", "none of the months"},
		{"0 0 31W 6 *", 4, "day of month", "none of the months"},
		{"0 0 0 29 2 * 2023", 13, "year", "none of the years"},
		{"0 0 0 29 2 * 2100-2103", 13, "year", "none of the years"},
		{"0 0 0 1 5 * 2262", 12, "", "never fires"}, // UTC nanoseconds end in April
		{"0 0 8-14 * */8", 13, "day of week", "steps are 1 to 6"},

		{"TZ=0", 0, "", "timezone attribute"},
		{"TZ=Europe/Paris 0 0 * * *", 0, "", `timezone = "Europe/Paris"`},
		{" CRON_TZ= * * * * *", 1, "", "timezone attribute"},
		{"cron_tz=UTC 61 * * * *", 0, "", "timezone attribute"},
		{"TZ=UTC @hourly", 0, "", "timezone attribute"},
		{"TZ=UTC " + strings.Repeat("1,", 600), 0, "", "timezone attribute"},
		{"@", 0, "", "unknown short form"},
		{"@reboot", 0, "", `every = "`},
		{"@every 90s", 0, "", `set every = "90s"`},
		{"@every", 0, "", `every = "5m"`},
		{"@dayly", 0, "", "@daily"},
		{"@daily 5", 7, "", "nothing may follow"},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			t.Parallel()
			_, err := ParseCron(tt.expr, CronOptions{})
			checkFault(t, err, "cron expression", tt.expr, tt.offset, tt.field, tt.text)
		})
	}
}

func TestEitherDayMakesImpossibleDaysPossible(t *testing.T) {
	t.Parallel()
	if got := four(t, "0 0 30 2 1", "2026-02-01", "Mon 01-02"); got != "Mon 02-02, Mon 02-09, Mon 02-16, Mon 02-23" {
		t.Errorf("fires %s", got)
	}
}

// fuzzZones are zones that the fuzz targets choose among.
func fuzzZones(f *testing.F) []*time.Location {
	f.Helper()
	return []*time.Location{time.UTC, location(f, "America/New_York"), location(f, "Australia/Lord_Howe"), location(f, "Pacific/Apia")}
}

// FuzzParseCron parses anything without panic. What parses has canonical words
// that mean the same, and times that go forwards and back again.
func FuzzParseCron(f *testing.F) {
	for i, expr := range []string{
		"* * * * *", "*/5 0-23/2 1,15 jan-dec mon-fri", "0 0 29 2 *", "30 30 2 * * 7", "@hourly", "@yearly", "0 0 0 1 1 * 1970-2262/3",
		"0 0 30 2 *", "0 0 L * *", "0 0 L-3,15W,LW * fri#2,5L,0#L", "H H(3-5) H/7 H H", "H(1-2)/9 * * * *", "TZ=0", "CRON_TZ=", "61 * * * *",
		"", "@", "@every 5m", "?/7 ? ? ? ?", "0 0 1-5 * sat-sun", "0 30 2 8 3 ? 2026", "30 1 1 11 *", "0 0 31W 2 *", "H( * * * *", "H(-) * * * *", "0 0 L- * *",
		"0 0 * * #", "0 0 * * L", "0 0 W * *", "1/ * * * *", "- * * * *", ", * * * *", "/ / / / /", "* * * * 7/7", "* * * * 7-1", "\xff * * * *",
	} {
		f.Add(expr, int64(1_772_953_199+i*86_400*30), uint8(i)) // from a second before New York's change in 2026 on
	}
	zones := fuzzZones(f)
	f.Fuzz(func(t *testing.T, expr string, at int64, options uint8) {
		o := CronOptions{Zone: zones[options%4], DST: DST(options / 4 % 6), DayMatch: DayMatch(options / 24 % 2), Name: "flow/trigger"}
		c, err := ParseCron(expr, o)
		if err != nil {
			checkOffset(t, err, expr)
			return
		}
		again, err := ParseCron(c.String(), o)
		if err != nil || again.String() != c.String() {
			t.Fatalf("%q is %q, which is %v, %v", expr, c, again, err)
		}
		checkTimes(t, c, again, at)
	})
}

// FuzzParseCalendar is FuzzParseCron for the other notation.
func FuzzParseCalendar(f *testing.F) {
	for i, expr := range []string{
		"Mon..Fri *-*-~01 09:00", "Mon,Wed", "*-*-*", "2026-01..03-*", "*:0/15", "daily", "weekly", "minutely", "quarterly", "Mon *-05~07/1", "*-02~03",
		"2026-03-08 02:30", "Sun *-*-1..7 1:30:59", "*-*-~01..31/3 0:0:0/7", "Mon 09:00 Europe/Berlin", "TZ=UTC daily", "", "~", "-", ":", "..", "*-*", "*-*-",
		"Mon..", "..Fri", "*:*/5", "1970/1-*-*", "*-~-*", "*-*-~*", "02-29", "02-30", "Sun..Mon", "9..17/4:30", "\xff", "*-*-* *:*:* *",
	} {
		f.Add(expr, int64(1_772_953_199+i*86_400*30), uint8(i))
	}
	zones := fuzzZones(f)
	f.Fuzz(func(t *testing.T, expr string, at int64, options uint8) {
		zone, dst := zones[options%4], DST(options/4%6)
		c, err := ParseCalendar(expr, zone, dst)
		if err != nil {
			checkOffset(t, err, expr)
			return
		}
		again, err := ParseCalendar(c.String(), zone, dst)
		if err != nil || again.String() != c.String() {
			t.Fatalf("%q is %q, which is %v, %v", expr, c, again, err)
		}
		checkTimes(t, c, again, at)
	})
}

func checkOffset(t *testing.T, err error, expr string) {
	t.Helper()
	var fault *ParseError
	if !errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(expr) || fault.Reason == "" {
		t.Fatalf("%#v", err)
	}
}

// checkTimes continues from a time and back; again is the same schedule.
func checkTimes(t *testing.T, s, again Schedule, at int64) {
	t.Helper()
	after := time.Unix(at, 0)
	for range 3 {
		next, ok := s.Next(after)
		if same, sameOK := again.Next(after); sameOK != ok || !same.Equal(next) {
			t.Fatalf("%s: after %v comes %v, or %v", s, after, next, same)
		}
		if !ok {
			break
		}
		checkInverse(t, s, after)
		after = next
	}
	if _, ok := s.Next(time.Time{}); !ok {
		t.Fatalf("%s never fires", s)
	}
}

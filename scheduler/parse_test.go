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
		{"* * * *", 7, "", "5 or 6 fields, not 4"},
		{"0 0 1 1 * * 2030", 12, "", "the year, is not supported"},
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
		{"* * * january *", 6, "month", "names have three letters; or write 1"},
		{"* * * * monday", 8, "day of week", "or write 1"},
		{"* * * * mon-", 12, "day of week", "not a value"},
		{"jan * * * *", 0, "minute", "not a value"},
		{"0 0 L * *", 4, "day of month", "not supported"},
		{"0 0 L-3 * *", 4, "day of month", "not supported"},
		{"0 0 15w * *", 4, "day of month", "not supported"},
		{"0 0 * * 5#2", 8, "day of week", "not supported"},
		{"0 0 * * 5L", 8, "day of week", "not supported"},
		{"H H(0-7) * * *", 0, "minute", "not supported"},
		{"0 H(0-7) * * *", 2, "hour", "not supported"},
		{"0 0 30 2 *", 4, "day of month", "none of the months"},
		{"0 0 31 2,4,6,9,11 *", 4, "day of month", "none of the months"},
		{"0 0 30-31 feb */2", 4, "day of month", "none of the months"},
		{"TZ=0", 0, "", "zone"},
		{"TZ=Europe/Paris 0 0 * * *", 0, "", "zone"},
		{" CRON_TZ= * * * * *", 1, "", "zone"},
		{"@", 0, "", "unknown short form"},
		{"@reboot", 0, "", "unknown short form"},
		{"@every 5m", 7, "", "nothing may follow"},
		{"@every", 0, "", "interval"},
		{"@daily 5", 7, "", "nothing may follow"},
		{"\x00 * * * *", 0, "minute", "not a value"},
		{"٣ * * * *", 0, "minute", "not a value"},
		{strings.Repeat("1,", 600), 1024, "", "longer than 1024 bytes"},
	}
	for _, tt := range tests {
		t.Run(tt.expr, func(t *testing.T) {
			t.Parallel()
			_, err := ParseCron(tt.expr, time.UTC)
			var fault *ParseError
			if !errors.As(err, &fault) {
				t.Fatalf("got %v", err)
			}
			if fault.Expr != tt.expr || fault.Offset != tt.offset || fault.Field != tt.field {
				t.Errorf("%q at byte %d, field %q; want byte %d, field %q", fault.Expr, fault.Offset, fault.Field, tt.offset, tt.field)
			}
			if !strings.Contains(err.Error(), tt.text) {
				t.Errorf("%q does not say %q", err, tt.text)
			}
		})
	}
}

func TestEitherDayMakesImpossibleDaysPossible(t *testing.T) {
	t.Parallel()
	if got := four(t, "0 0 30 2 1", "2026-02-01", "Mon 01-02"); got != "Mon 02-02, Mon 02-09, Mon 02-16, Mon 02-23" {
		t.Errorf("fires %s", got)
	}
}

// FuzzParseCron parses anything without panic; what parses has a next time, and
// another after it.
func FuzzParseCron(f *testing.F) {
	for _, expr := range []string{
		"* * * * *", "*/5 0-23/2 1,15 jan-dec mon-fri", "0 0 29 2 *", "30 30 2 * * 7", "@hourly", "@yearly",
		"0 0 30 2 *", "0 0 L * *", "H * * * *", "TZ=0", "CRON_TZ=", "61 * * * *", "", "@", "?/7 ? ? ? ?", "0 0 1-5 * sat-sun",
		"1/ * * * *", "- * * * *", ", * * * *", "/ / / / /", "* * * * 7/7", "* * * * 7-1", "\xff * * * *",
	} {
		f.Add(expr, int64(1_772_953_199)) // a second before New York's change in 2026
	}
	zone, err := time.LoadLocation("America/New_York")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, expr string, at int64) {
		c, err := ParseCron(expr, zone)
		if err != nil {
			var fault *ParseError
			if !errors.As(err, &fault) || fault.Offset < 0 || fault.Offset > len(expr) {
				t.Fatalf("%#v", err)
			}
			return
		}
		after := time.Unix(at, 0)
		for range 3 {
			next, ok := c.Next(after)
			if !ok {
				if nanos(after) < time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano() {
					t.Fatalf("%q has no time after %v", expr, after)
				}
				return
			}
			if !next.After(after) {
				t.Fatalf("%q: %v is not after %v", expr, next, after)
			}
			after = next
		}
	})
}

package scheduler

import (
	"testing"
	"time"
)

// TestModes is what each mode makes of the same expression. A row is the fires of
// a local day up to an hour of it.
func TestModes(t *testing.T) {
	t.Parallel()
	const (
		newYork = "America/New_York"
		spring  = "2026-03-08"
		autumn  = "2026-11-01"
	)
	tests := []struct {
		zone, day  string
		hours      int // elapsed since the day's start; 0 is the whole day
		expr       string
		cron, skip string
		shift      string
		first      string
		last, both string
	}{
		{newYork, spring, 0, "30 2 * * *", "03:00 -04", "", "03:30 -04", "03:00 -04", "03:00 -04", "03:00 -04"},
		{newYork, spring, 0, "10,50 2,3 * * *",
			"03:00 -04, 03:10 -04, 03:50 -04", "03:10 -04, 03:50 -04", "03:10 -04, 03:50 -04",
			"03:00 -04, 03:10 -04, 03:50 -04", "03:00 -04, 03:10 -04, 03:50 -04", "03:00 -04, 03:10 -04, 03:50 -04"},
		{newYork, autumn, 0, "30 1 * * *", "01:30 -04", "01:30 -04", "01:30 -04", "01:30 -04", "01:30 -05", "01:30 -04, 01:30 -05"},
		{newYork, autumn, 0, "0 1,2 * * *",
			"01:00 -04, 02:00 -05", "01:00 -04, 02:00 -05", "01:00 -04, 02:00 -05",
			"01:00 -04, 02:00 -05", "01:00 -05, 02:00 -05", "01:00 -04, 01:00 -05, 02:00 -05"},
		// A star follows elapsed time in the default mode only.
		{newYork, autumn, 4, "30 * * * *",
			"00:30 -04, 01:30 -04, 01:30 -05, 02:30 -05", "00:30 -04, 01:30 -04, 02:30 -05", "00:30 -04, 01:30 -04, 02:30 -05",
			"00:30 -04, 01:30 -04, 02:30 -05", "00:30 -04, 01:30 -05, 02:30 -05", "00:30 -04, 01:30 -04, 01:30 -05, 02:30 -05"},
		{newYork, spring, 3, "15 * * * *",
			"00:15 -05, 01:15 -05, 03:15 -04", "00:15 -05, 01:15 -05, 03:15 -04", "00:15 -05, 01:15 -05, 03:15 -04",
			"00:15 -05, 01:15 -05, 03:00 -04, 03:15 -04", "00:15 -05, 01:15 -05, 03:00 -04, 03:15 -04", "00:15 -05, 01:15 -05, 03:00 -04, 03:15 -04"},
		{newYork, spring, 0, "*/20 2 * * *",
			"", "", "03:00 -04, 03:20 -04, 03:40 -04", "03:00 -04", "03:00 -04", "03:00 -04"},
		// Half an hour, and an hour at midnight.
		{"Australia/Lord_Howe", "2026-10-04", 0, "15 2 * * *", "02:30 +11", "", "02:45 +11", "02:30 +11", "02:30 +11", "02:30 +11"},
		{"Australia/Lord_Howe", "2026-04-05", 0, "45 1 * * *", "01:45 +11", "01:45 +11", "01:45 +11", "01:45 +11", "01:45 +10", "01:45 +11, 01:45 +10"},
		{"America/Havana", "2026-03-08", 0, "30 0 * * *", "01:00 -04", "", "01:30 -04", "01:00 -04", "01:00 -04", "01:00 -04"},
		// A correction of the calendar, which no mode makes up for.
		{"Pacific/Apia", "2011-12-31", 0, "0 0,12 * * *",
			"00:00 +14, 12:00 +14", "00:00 +14, 12:00 +14", "00:00 +14, 12:00 +14",
			"00:00 +14, 12:00 +14", "00:00 +14, 12:00 +14", "00:00 +14, 12:00 +14"},
		{"Antarctica/Casey", "2010-03-04", 28, "0 23 * * *",
			"23:00 +11, 23:00 +08", "23:00 +11, 23:00 +08", "23:00 +11, 23:00 +08",
			"23:00 +11, 23:00 +08", "23:00 +11, 23:00 +08", "23:00 +11, 23:00 +08"},
	}
	for _, tt := range tests {
		t.Run(tt.day+" "+tt.expr, func(t *testing.T) {
			t.Parallel()
			zone := location(t, tt.zone)
			from, to := localDay(t, tt.day, zone)
			if tt.hours > 0 {
				to = from.Add(time.Duration(tt.hours) * time.Hour)
			}
			for mode, want := range []string{tt.cron, tt.skip, tt.shift, tt.first, tt.last, tt.both} {
				c := cronWith(t, tt.expr, CronOptions{Zone: zone, DST: DST(mode)})
				if got := fires(c, from, to, "15:04 -07"); got != want {
					t.Errorf("%s: fires %s\nwant %s", DST(mode), got, want)
				}
			}
		})
	}
}

// TestDatedInLastPass asks for the last pass when the first one is half over: no
// other day is left.
func TestDatedInLastPass(t *testing.T) {
	t.Parallel()
	zone := location(t, "America/New_York")
	within := time.Date(2026, 11, 1, 5, 45, 0, 0, time.UTC) // 01:45 EDT
	for dst, want := range map[DST]bool{DSTCron: false, DSTFirst: false, DSTSkip: false, DSTLast: true, DSTBoth: true} {
		c := cronWith(t, "0 30 1 1 11 * 2026", CronOptions{Zone: zone, DST: dst})
		if next, ok := c.Next(within); ok != want || ok && next.Sub(within) != 45*time.Minute {
			t.Errorf("%s: %v, %v", dst, next, ok)
		}
	}
	_, err := ParseCron("0 30 2 8 3 * 2026", CronOptions{Zone: zone, DST: DSTSkip})
	checkFault(t, err, "cron expression", "0 30 2 8 3 * 2026", 13, "", "never fires")
}

func TestParseDST(t *testing.T) {
	t.Parallel()
	for d := DSTCron; d <= DSTBoth; d++ {
		if got, ok := ParseDST(d.String()); !ok || got != d {
			t.Errorf("%s is read as %s, %v", d, got, ok)
		}
	}
	for _, name := range []string{"", "Cron", "unknown"} {
		if got, ok := ParseDST(name); ok {
			t.Errorf("%q is read as %s", name, got)
		}
	}
	if got := (DSTBoth + 1).String(); got != "unknown" {
		t.Errorf("a mode that does not exist is %q", got)
	}
}

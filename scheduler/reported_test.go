package scheduler

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// What others were told about their schedules, each with where.

// systemd/systemd#8647, quartz-scheduler/quartz#1104: minutes of the days of a
// change were left out or came at once.
func TestEveryMinuteOfADay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		day  string
		want int
	}{{"2026-03-08", 1380}, {"2026-07-01", 1440}, {"2026-11-01", 1500}}
	zone := location(t, "America/New_York")
	for _, tt := range tests {
		from, to := localDay(t, tt.day, zone)
		for what, s := range map[string]Schedule{
			"cron":     cron(t, "* * * * *", "America/New_York"),
			"calendar": calendar(t, "minutely", "America/New_York", DSTCron),
		} {
			if got := strings.Count(fires(s, from, to, "x"), "x"); got != tt.want {
				t.Errorf("%s: %d fires on %s, want %d", what, got, tt.day, tt.want)
			}
		}
	}
}

// hashicorp/nomad#5410, quartznet/quartznet#2349: the same local minute fired over
// and over. In no mode do more than 60 fires fall within a real hour, nor two
// within a minute.
func TestFiresPerMinuteAreBounded(t *testing.T) {
	t.Parallel()
	for dst := DSTCron; dst <= DSTBoth; dst++ {
		for _, expr := range []string{"* * * * *", "0-59 1,2 * * *", "* 0-3 * * *"} {
			c := cronWith(t, expr, CronOptions{Zone: location(t, "America/New_York"), DST: dst})
			for _, day := range []string{"2026-03-08", "2026-11-01"} {
				from, to := localDay(t, day, c.times.zone)
				at := from.Add(-1)
				for {
					next, ok := c.Next(at)
					if !ok || !next.Before(to) {
						break
					}
					if next.Sub(at) < time.Minute && at.After(from) {
						t.Errorf("%q, %s: %v follows %v", expr, dst, next, at)
					}
					at = next
				}
			}
		}
	}
}

// go-co-op/gocron#69, #318: a daily run moved by an hour with the change, because
// its next time was 24 hours later.
func TestDailyKeepsWallTime(t *testing.T) {
	t.Parallel()
	for dst := DSTCron; dst <= DSTBoth; dst++ {
		c := cronWith(t, "0 9 * * *", CronOptions{Zone: location(t, "Europe/Berlin"), DST: dst})
		at := time.Date(2026, 1, 1, 9, 0, 0, 0, c.times.zone)
		for range 365 {
			next, ok := c.Next(at)
			if !ok || next.Format(time.TimeOnly) != "09:00:00" || next.YearDay() == at.YearDay() {
				t.Fatalf("%s: %v follows %v", dst, next, at)
			}
			at = next
		}
		if at.Format(time.DateOnly) != "2027-01-01" {
			t.Errorf("%s: 365 days after New Year is %v", dst, at)
		}
	}
}

// reugn/go-quartz#69: a trigger for one date fired a million times.
// aptible/supercronic#96: one whose date was past filled the log.
func TestDatedFiresOnce(t *testing.T) {
	t.Parallel()
	before, after := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2300, 1, 1, 0, 0, 0, 0, time.UTC)
	for what, s := range map[string]Schedule{
		"cron":     cron(t, "0 30 2 8 3 ? 2026", "America/New_York"), // and that in the gap
		"calendar": calendar(t, "2026-03-08 02:30", "America/New_York", DSTCron),
	} {
		if got := fires(s, before, after, time.RFC3339); got != "2026-03-08T03:00:00-04:00" {
			t.Errorf("%s fires %s", what, got)
		}
		if at, ok := s.Prev(after); !ok || at.Format(time.RFC3339) != "2026-03-08T03:00:00-04:00" {
			t.Errorf("the last of %s is %v, %v", what, at, ok)
		}
		if at, ok := s.Prev(before); ok {
			t.Errorf("%s fired already at %v", what, at)
		}
	}
}

// Measured: reugn/go-quartz fires on 1 and 2 March for 30 February.
func TestImpossibleDayIsRefused(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"0 0 30 2 *", "0 0 31 4 *", "0 0 31 2,4,6,9,11 *", "0 0 0 29 2 * 2026-2027"} {
		if _, err := ParseCron(expr, CronOptions{}); !errors.As(err, new(*ParseError)) {
			t.Errorf("%q gives %v", expr, err)
		}
	}
}

// Measured: go-co-op/gocron leaves a hole of two hours in an hourly schedule,
// reugn/go-quartz fires an hour early.
func TestHourlyHasNoHole(t *testing.T) {
	t.Parallel()
	c := cron(t, "0 * * * *", "America/New_York")
	at := time.Date(2026, 1, 1, 5, 0, 0, 0, time.UTC)
	for range 365 * 24 {
		next, ok := c.Next(at)
		if !ok || next.Sub(at) != time.Hour {
			t.Fatalf("%v follows %v", next, at)
		}
		at = next
	}
}

// robfig/cron#470, #554: a zone with no fields after it panicked.
func TestPrefixesAreRefused(t *testing.T) {
	t.Parallel()
	for _, expr := range []string{"TZ=0", "TZ=", "TZ=TZ=TZ=", "CRON_TZ=", "CRON_TZ=UTC", "TZ=UTC ", "tz=UTC * * * * *", "CRON_TZ=Nowhere/Land 61 * * * *"} {
		_, err := ParseCron(expr, CronOptions{})
		if fault := (*ParseError)(nil); !errors.As(err, &fault) || !strings.Contains(fault.Hint, "timezone") {
			t.Errorf("%q gives %v", expr, err)
		}
	}
}

package scheduler

import (
	"testing"
	"time"
)

// benchCrons are schedules from one fire to the next: usual ones, and those whose
// fires are far apart in a zone with daylight saving.
var benchCrons = []struct{ name, zone, expr string }{
	{"minutely", "Europe/Berlin", "* * * * *"},
	{"quarterly", "Europe/Berlin", "*/15 * * * *"},
	{"daily", "Europe/Berlin", "30 4 * * *"},
	{"weekdays", "Europe/Berlin", "0 9 * * mon-fri"},
	{"daily-utc", "UTC", "30 4 * * *"},
	{"last-friday", "Europe/Berlin", "0 9 * * fri#L"},
	{"month-end", "Europe/Berlin", "0 9 LW * *"},
	{"yearly", "America/New_York", "@yearly"},
	{"leap-day", "America/New_York", "0 0 29 2 *"},
}

// The years between which the benchmarks go from fire to fire, again and again.
var benchFrom, benchTo = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2037, 1, 1, 0, 0, 0, 0, time.UTC)

func BenchmarkCronNext(b *testing.B) {
	for _, bb := range benchCrons {
		b.Run(bb.name, func(b *testing.B) {
			c := cron(b, bb.expr, bb.zone)
			at := benchFrom
			b.ReportAllocs()
			for b.Loop() {
				if at, _ = c.Next(at); at.After(benchTo) {
					at = benchFrom
				}
			}
		})
	}
}

func BenchmarkCronPrev(b *testing.B) {
	for _, bb := range benchCrons {
		b.Run(bb.name, func(b *testing.B) {
			c := cron(b, bb.expr, bb.zone)
			at := benchTo
			b.ReportAllocs()
			for b.Loop() {
				if at, _ = c.Prev(at); at.Before(benchFrom) {
					at = benchTo
				}
			}
		})
	}
}

// BenchmarkCronNextByRule goes through years that the zone's table does not list:
// package time then works the window out from the zone's rule.
func BenchmarkCronNextByRule(b *testing.B) {
	c := cron(b, "@yearly", "America/New_York")
	from, to := time.Date(2040, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
	at := from
	b.ReportAllocs()
	for b.Loop() {
		if at, _ = c.Next(at); at.After(to) {
			at = from
		}
	}
}

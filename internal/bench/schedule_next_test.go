package main

import (
	"testing"
	"time"
)

// What the next time of a schedule costs, going from one to the next until the
// year 2090. gronx reads the expression again each time. gocron uses robfig.
func BenchmarkNext(b *testing.B) {
	for _, tt := range []struct{ name, expr, zone string }{
		{"five-minutes", "*/5 * * * *", "America/New_York"},
		{"daily", "30 2 * * *", "America/New_York"},
		{"weekdays", "0 9 * * MON-FRI", "America/New_York"},
		{"leap-day", "0 12 29 2 *", "Europe/Berlin"},
		{"new-year", "0 0 1 1 *", "Europe/Berlin"},
	} {
		b.Run(tt.name, func(b *testing.B) {
			zone, err := time.LoadLocation(tt.zone)
			if err != nil {
				b.Fatal(err)
			}
			for _, d := range dialects {
				b.Run(d.name, func(b *testing.B) {
					next, err := d.parse(tt.expr, zone)
					if err != nil {
						b.Fatal(err)
					}
					walk(b, next, time.Date(2026, 1, 1, 0, 0, 0, 0, zone))
				})
			}
		})
	}
}

// walk also reports how often there was no next time.
func walk(b *testing.B, next nextFunc, start time.Time) {
	b.Helper()
	var cost tally
	none := 0
	at := start
	for b.Loop() {
		cost.measure(1_000_000, func(int) {
			at = next(at)
			if at.IsZero() {
				none++
			}
			if at.IsZero() || at.Year() > 2090 {
				at = start
			}
		})
	}
	b.ReportMetric(cost.nanos(), "ns/next")
	b.ReportMetric(cost.allocs(), "allocs/next")
	b.ReportMetric(float64(none), "none")
	b.ReportMetric(0, "ns/op")
}

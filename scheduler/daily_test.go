package scheduler

import (
	"testing"
	"time"
)

// TestDailyFiresOnEachDay goes through the years with 32-bit time and on into
// those that only a zone's rule covers: a daily schedule fires once on each local
// date, strictly later each time.
func TestDailyFiresOnEachDay(t *testing.T) {
	t.Parallel()
	zones := []string{"America/New_York", "Europe/London", "Australia/Lord_Howe", "America/Sao_Paulo",
		"America/Havana", "Africa/Casablanca", "Antarctica/Troll", "Asia/Gaza", "UTC"}
	for _, zone := range zones {
		t.Run(zone, func(t *testing.T) {
			t.Parallel()
			for _, expr := range []string{"0 0 * * *", "30 1 * * *", "59 23 * * *", "15 2 * * *"} {
				c := cron(t, expr, zone)
				at := time.Date(1970, 1, 2, 0, 0, 0, 0, c.times.zone)
				at, _ = c.Next(at.Add(-1))
				for at.Year() < 2062 {
					next, ok := c.Next(at)
					y, m, d := at.Date()
					ny, nm, nd := next.Date()
					tomorrow := time.Date(y, m, d+1, 0, 0, 0, 0, time.UTC)
					if !ok || !next.After(at) || !tomorrow.Equal(time.Date(ny, nm, nd, 0, 0, 0, 0, time.UTC)) {
						t.Fatalf("%q: %v follows %v", expr, next, at)
					}
					at = next
				}
			}
		})
	}
}

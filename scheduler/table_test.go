package scheduler

import (
	"errors"
	"testing"
	"time"
)

// TestTable is the table of the scheduling design: for each row the fires of a
// local day, all of them or those of its first hours.
func TestTable(t *testing.T) {
	t.Parallel()
	tests := []struct {
		zone, day, expr string
		hours           int
		want            string
	}{
		{"America/New_York", "2026-03-08", "30 2 * * *", 24, "03:00 EDT"},
		{"America/New_York", "2026-03-08", "0 * * * *", 5, "00:00 EST, 01:00 EST, 03:00 EDT, 04:00 EDT, 05:00 EDT"},
		{"America/New_York", "2026-11-01", "30 1 * * *", 25, "01:30 EDT"},
		{"America/New_York", "2026-11-01", "30 * * * *", 4, "00:30 EDT, 01:30 EDT, 01:30 EST, 02:30 EST"},
		{"America/New_York", "2026-11-01", "*/30 * * * *", 4,
			"00:00 EDT, 00:30 EDT, 01:00 EDT, 01:30 EDT, 01:00 EST, 01:30 EST, 02:00 EST, 02:30 EST"},
		{"Australia/Lord_Howe", "2026-10-04", "15 2 * * *", 24, "02:30 +11"},
		{"Australia/Lord_Howe", "2026-04-05", "45 1 * * *", 24, "01:45 +11"},
		{"America/Sao_Paulo", "2018-11-04", "0 0 * * *", 23, "01:00 -02"},
		{"America/Havana", "2026-03-08", "30 0 * * *", 23, "01:00 CDT"},
		{"Pacific/Apia", "2011-12-30", "0 12 * * *", 0, ""},
		{"UTC", "2026-02-13", "0 0 13 * 5", 10 * 24, "Fri 13, Fri 20"},
	}
	for _, tt := range tests {
		t.Run(tt.zone+" "+tt.day+" "+tt.expr, func(t *testing.T) {
			t.Parallel()
			zone := location(t, tt.zone)
			from, _ := localDay(t, tt.day, zone)
			layout := "15:04 MST"
			if tt.hours > 25 {
				layout = "Mon 2"
			}
			got := fires(cron(t, tt.expr, tt.zone), from, from.Add(time.Duration(tt.hours)*time.Hour), layout)
			if got != tt.want {
				t.Errorf("fires %s\nwant  %s", got, tt.want)
			}
		})
	}
	for _, refused := range []string{"0 0 30 2 *", "TZ=0", "CRON_TZ=", "61 * * * *"} {
		if _, err := ParseCron(refused, CronOptions{}); !errors.As(err, new(*ParseError)) {
			t.Errorf("%q gives %v", refused, err)
		}
	}
}

// TestApiaSkipsADay goes over the day that did not exist: the noon before and the
// noon after are one day apart on the clock on the wall, and in fact.
func TestApiaSkipsADay(t *testing.T) {
	t.Parallel()
	zone := location(t, "Pacific/Apia")
	from := time.Date(2011, 12, 29, 0, 0, 0, 0, zone)
	if got := fires(cron(t, "0 12 * * *", "Pacific/Apia"), from, from.Add(3*24*time.Hour), "Jan 2 15:04 -07"); got != "Dec 29 12:00 -10, Dec 31 12:00 +14, Jan 1 12:00 +14" {
		t.Errorf("fires %s", got)
	}
}

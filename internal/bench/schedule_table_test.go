package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

const refused = "refused"

// daylightSaving is the table of the documentation: what a schedule fires in some
// hours around a change of the clocks, by ISC cron's rule.
var daylightSaving = []struct {
	zone, from string
	hours      float64 // that elapse
	expr, want string
}{
	{"America/New_York", "2026-03-08T00:00:00-05:00", 23, "30 2 * * *", "8 03:00 -04"},
	{"America/New_York", "2026-03-08T00:00:00-05:00", 4, "0 * * * *", "8 00:00 -05, 8 01:00 -05, 8 03:00 -04, 8 04:00 -04"},
	{"America/New_York", "2026-03-08T01:00:00-05:00", 2, "*/30 * * * *", "8 01:00 -05, 8 01:30 -05, 8 03:00 -04, 8 03:30 -04"},
	{"America/New_York", "2026-11-01T00:00:00-04:00", 25, "30 1 * * *", "1 01:30 -04"},
	{"America/New_York", "2026-11-01T00:00:00-04:00", 4, "30 * * * *", "1 00:30 -04, 1 01:30 -04, 1 01:30 -05, 1 02:30 -05"},
	{"America/New_York", "2026-11-01T01:00:00-04:00", 2, "*/30 * * * *", "1 01:00 -04, 1 01:30 -04, 1 01:00 -05, 1 01:30 -05"},
	{"Australia/Lord_Howe", "2026-10-04T00:00:00+10:30", 23.5, "15 2 * * *", "4 02:30 +11"},
	{"Australia/Lord_Howe", "2026-04-05T00:00:00+11:00", 24.5, "45 1 * * *", "5 01:45 +11"},
	{"America/Sao_Paulo", "2018-11-04T01:00:00-02:00", 23, "0 0 * * *", "4 01:00 -02"},
	{"America/Havana", "2026-03-08T01:00:00-04:00", 23, "30 0 * * *", "8 01:00 -04"},
	{"Pacific/Apia", "2011-12-29T00:00:00-10:00", 48, "0 12 * * *", "29 12:00 -10, 31 12:00 +14"},
	{"UTC", "2026-02-07T00:00:00Z", 15 * 24, "0 0 13 * 5", "13 00:00 +00, 20 00:00 +00"},
	{"UTC", "2026-02-07T00:00:00Z", 60 * 24, "0 0 30 2 *", refused},
	{"UTC", "2026-02-07T00:00:00Z", 1, "TZ=0", refused},
	{"UTC", "2026-02-07T00:00:00Z", 1, "CRON_TZ=", refused},
	{"UTC", "2026-02-07T00:00:00Z", 1, "61 * * * *", refused},
}

// TestDaylightSavingTable prints, with -v, who fires what. Only flowhost has to be
// right.
func TestDaylightSavingTable(t *testing.T) {
	t.Parallel()
	columns := append([]dialect{}, dialects...)
	columns = append(columns, gocronDialect)
	right := make([]int, len(columns))
	var table strings.Builder
	table.WriteString("\n| zone, from, expression | right |")
	for _, d := range columns {
		fmt.Fprintf(&table, " %s |", d.name)
	}
	table.WriteString("\n|" + strings.Repeat(" --- |", 2+len(columns)))
	for _, row := range daylightSaving {
		zone, err := time.LoadLocation(row.zone)
		if err != nil {
			t.Fatal(err)
		}
		from, err := time.Parse(time.RFC3339, row.from)
		if err != nil {
			t.Fatal(err)
		}
		to := from.Add(time.Duration(row.hours * float64(time.Hour)))
		fmt.Fprintf(&table, "\n| %s %s `%s` | %s |", row.zone, row.from, row.expr, row.want)
		for i, d := range columns {
			got := d.fires(row.expr, zone, from, to)
			if got != row.want {
				fmt.Fprintf(&table, " %s |", got)
				if d.name == "flowhost" {
					t.Errorf("%s %s %q fires %s, want %s", row.zone, row.from, row.expr, got, row.want)
				}
				continue
			}
			right[i]++
			table.WriteString(" yes |")
		}
	}
	fmt.Fprintf(&table, "\n| right of %d | |", len(daylightSaving))
	for _, n := range right {
		fmt.Fprintf(&table, " %d |", n)
	}
	t.Log(table.String())
}

// fires is the times of a schedule within [from, to), in words. It comes from the day
// before, as a scheduler does.
func (d dialect) fires(expr string, zone *time.Location, from, to time.Time) (fires string) {
	defer func() {
		if v := recover(); v != nil {
			fires = "panics"
		}
	}()
	next, err := d.parse(expr, zone)
	if err != nil {
		return refused
	}
	var times []string
	before := from.Add(-24 * time.Hour)
	for at := next(before); at.IsZero() || at.Before(to); at = next(at) {
		if at.IsZero() {
			times = append(times, "then never")
			break
		}
		if !at.After(before) {
			times = append(times, "then the same again")
			break
		}
		if !at.Before(from) {
			times = append(times, at.In(zone).Format("2 15:04 -07"))
		}
		before = at
	}
	if times == nil {
		return "nothing"
	}
	return strings.Join(times, ", ")
}

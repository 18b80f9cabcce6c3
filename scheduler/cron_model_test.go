package scheduler

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// The model of cron: it walks through real minutes, asks package time for the
// local clock, and keeps what it must remember of the last change of the offset.

// transitions are changes of offset with some hours or days around them: gaps and
// repetitions of 30 minutes to two hours, at midnight and at night, east and west,
// and a day that did not exist.
var transitions = []struct{ zone, day string }{
	{"America/New_York", "2026-03-08"}, {"America/New_York", "2026-11-01"},
	{"America/Havana", "2026-03-08"}, {"America/Havana", "2026-11-01"},
	{"America/Sao_Paulo", "2018-11-04"}, {"America/Sao_Paulo", "2018-02-18"},
	{"Australia/Lord_Howe", "2026-10-03"}, {"Australia/Lord_Howe", "2026-04-04"},
	{"Pacific/Apia", "2011-12-30"}, {"Pacific/Apia", "2012-03-31"},
	{"Antarctica/Troll", "2026-03-29"}, {"Antarctica/Troll", "2026-10-25"},
	{"Africa/Casablanca", "2026-02-15"}, {"Africa/Casablanca", "2026-03-22"},
	{"Asia/Pyongyang", "2015-08-14"}, {"Asia/Pyongyang", "2018-05-04"},
	{"Europe/Dublin", "2026-03-29"}, {"Asia/Kathmandu", "2026-06-01"},
}

// minute is one real minute of a zone.
type minute struct {
	at     time.Time
	local  time.Time // the local clock, as if it were UTC
	offset time.Duration
}

// minutesAround is the minutes from two days before a UTC day to three days after.
func minutesAround(t *testing.T, zone *time.Location, day string) []minute {
	t.Helper()
	start, err := time.Parse(time.DateOnly, day)
	if err != nil {
		t.Fatal(err)
	}
	start = start.AddDate(0, 0, -2)
	minutes := make([]minute, 5*24*60)
	for i := range minutes {
		at := start.Add(time.Duration(i) * time.Minute).In(zone)
		_, offset := at.Zone()
		d := time.Duration(offset) * time.Second
		minutes[i] = minute{at, at.UTC().Add(d), d}
	}
	return minutes
}

// naive is a cron expression as sets of values.
type naive struct {
	minute, hour, dom, month, dow map[int]bool
	either, elapsed               bool
}

func (n *naive) matches(local time.Time) bool {
	if !n.minute[local.Minute()] || !n.hour[local.Hour()] || !n.month[int(local.Month())] {
		return false
	}
	dom, dow := n.dom[local.Day()], n.dow[int(local.Weekday())]
	if n.either {
		return dom || dow
	}
	return dom && dow
}

// fires is the model: all minutes at which the schedule fires.
func (n *naive) fires(minutes []minute) []time.Time {
	var out []time.Time
	var repeatedUntil time.Time // local
	for i, m := range minutes[1:] {
		before := minutes[i]
		change := m.offset - before.offset
		fire := n.matches(m.local)
		if !n.elapsed && change.Abs() < 3*time.Hour {
			for skipped := before.local.Add(time.Minute); skipped.Before(m.local); skipped = skipped.Add(time.Minute) {
				fire = fire || n.matches(skipped)
			}
			if change < 0 {
				repeatedUntil = before.local.Add(time.Minute)
			}
		}
		if fire && !m.local.Before(repeatedUntil) {
			out = append(out, m.at)
		}
	}
	return out
}

// randomExpr is an expression and what it means.
func randomExpr(rnd *rand.Rand) (string, *naive) {
	n := &naive{}
	var words [5]string
	words[0], n.minute = randomField(rnd, 0, 59, 6)
	words[1], n.hour = randomField(rnd, 0, 23, 4)
	words[2], n.dom = randomField(rnd, 1, 31, 1)
	words[3], n.month = "*", span(1, 12, 1)
	words[4], n.dow = randomField(rnd, 0, 6, 1)
	star := func(i int) bool { return words[i][0] == '*' }
	n.either = !star(2) && !star(4)
	n.elapsed = star(0) || star(1)
	return strings.Join(words[:], " "), n
}

// randomField restricts the field in often of 7 cases. Small values, where the
// changes are, are more likely.
func randomField(rnd *rand.Rand, low, high, often int) (string, map[int]bool) {
	if rnd.IntN(7) >= often {
		return "*", span(low, high, 1)
	}
	value := func() int { return low + min(rnd.IntN(high-low+1), rnd.IntN(high-low+1), rnd.IntN(high-low+1)) }
	from, to, step := value(), value(), 1+rnd.IntN(high/2)
	from, to = min(from, to), max(from, to)
	switch rnd.IntN(6) {
	case 0:
		return fmt.Sprintf("*/%d", step), span(low, high, step)
	case 1:
		return fmt.Sprintf("%d-%d", from, to), span(from, to, 1)
	case 2:
		return fmt.Sprintf("%d-%d/%d", from, to, step), span(from, to, step)
	case 3:
		return fmt.Sprintf("%d/%d", from, step), span(from, high, step)
	case 4:
		return fmt.Sprintf("%d,%d", to, from), map[int]bool{from: true, to: true}
	}
	return fmt.Sprint(from), span(from, from, 1)
}

func span(from, to, step int) map[int]bool {
	set := map[int]bool{}
	for v := from; v <= to; v += step {
		set[v] = true
	}
	return set
}

func TestCronModel(t *testing.T) {
	t.Parallel()
	for _, tr := range transitions {
		t.Run(tr.zone+" "+tr.day, func(t *testing.T) {
			t.Parallel()
			zone, err := time.LoadLocation(tr.zone)
			if err != nil {
				t.Fatal(err)
			}
			minutes := minutesAround(t, zone, tr.day)
			fired := 0
			for seed := range uint64(40) {
				rnd := rand.New(rand.NewPCG(seed, 4))
				expr, n := randomExpr(rnd)
				c, err := ParseCron(expr, zone)
				if err != nil {
					t.Fatalf("seed %d: %v", seed, err)
				}
				want := n.fires(minutes)
				fired += len(want)
				compare(t, fmt.Sprintf("seed %d, %q", seed, expr), c, minutes, want)
				compareAnywhere(t, rnd, expr, zone, minutes, want)
			}
			if fired == 0 {
				t.Error("nothing fired: the test has lost its use")
			}
		})
	}
}

// compare goes from fire to fire.
func compare(t *testing.T, what string, c *Cron, minutes []minute, want []time.Time) {
	t.Helper()
	at, last := minutes[0].at, minutes[len(minutes)-1].at
	for _, w := range want {
		got, ok := c.Next(at)
		if !ok || !got.Equal(w) {
			t.Fatalf("%s: after %v comes %v, want %v", what, at, got, w.In(c.zone))
		}
		at = got
	}
	if got, ok := c.Next(at); ok && !got.After(last) {
		t.Fatalf("%s: %v is one too many", what, got)
	}
}

// compareAnywhere asks a new schedule, whose cache is empty, from random instants.
func compareAnywhere(t *testing.T, rnd *rand.Rand, expr string, zone *time.Location, minutes []minute, want []time.Time) {
	t.Helper()
	c, err := ParseCron(expr, zone)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		after := minutes[rnd.IntN(len(minutes))].at.Add(time.Duration(rnd.IntN(3) - 1))
		if after.Before(minutes[0].at) {
			continue
		}
		for _, w := range want {
			if !w.After(after) {
				continue
			}
			if got, _ := c.Next(after); !got.Equal(w) {
				t.Fatalf("%q: after %v comes %v, want %v", expr, after, got, w)
			}
			break
		}
	}
}

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
				at := time.Date(1970, 1, 2, 0, 0, 0, 0, c.zone)
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

func TestEveryMinuteOfADay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		day  string
		want int
	}{{"2026-03-08", 1380}, {"2026-07-01", 1440}, {"2026-11-01", 1500}}
	for _, tt := range tests {
		c := cron(t, "* * * * *", "America/New_York")
		from, to := localDay(t, tt.day, c.zone)
		if got := strings.Count(fires(c, from, to, "x"), "x"); got != tt.want {
			t.Errorf("%d fires on %s, want %d", got, tt.day, tt.want)
		}
	}
}

package scheduler

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

var modelSeeds = flag.Uint64("model.seeds", 1, "how many expressions in each mode the model test tries at each change of an offset")

// instant is one real minute, or second, of a zone.
type instant struct {
	at      int64
	face    face
	repeats bool // the clock showed the same less than three hours before
	recurs  bool // it will show the same within less than three hours
	skipped []skippedTime
}

// skippedTime is a local time that was never shown, between the instant and the
// one before, and how long after the first such it would have come.
type skippedTime struct {
	face face
	late int64
}

// instantsAround goes in steps, with package time as the source of offsets.
func instantsAround(zone *time.Location, from, to, step int64) []instant {
	out := make([]instant, 0, (to-from)/step)
	shown := make(map[int64]int, (to-from)/step) // index by local time
	before := int64(0)
	for at := from; at < to; at += step {
		local := at + offsetOf(time.Unix(at, 0).In(zone))
		i := instant{at: at, face: faceOf(local)}
		if first, ok := shown[local]; ok && at-out[first].at < 3*60*60 {
			i.repeats = true
			out[first].recurs = true
		}
		if len(out) > 0 && local-before-step < 3*60*60 {
			for skipped := before + step; skipped < local; skipped += step {
				i.skipped = append(i.skipped, skippedTime{faceOf(skipped), skipped - before - step})
			}
		}
		shown[local] = len(out)
		out = append(out, i)
		before = local
	}
	return out
}

// fires is the model: all instants at which the expression fires in a mode.
func (m *meaning) fires(instants []instant, dst DST) []int64 {
	fire := make([]bool, len(instants))
	step := instants[1].at - instants[0].at
	elapsed := m.elapsed && dst == DSTCron
	for n := range instants {
		i := &instants[n]
		counts := elapsed || dst == DSTBoth || (dst == DSTLast && !i.recurs) || (dst != DSTLast && !i.repeats)
		if counts && m.matches(&i.face) {
			fire[n] = true
		}
		for _, s := range i.skipped {
			switch {
			case elapsed || dst == DSTSkip || !m.matches(&s.face):
			case dst == DSTShift:
				fire[n+int(s.late/step)] = true
			default:
				fire[n] = true
			}
		}
	}
	var out []int64
	for n := range instants {
		if fire[n] {
			out = append(out, instants[n].at)
		}
	}
	return out
}

// change is a change of some zone's offset. Zones have most of them in common.
type change struct {
	at            int64
	before, after int
}

// allChanges is each change of each zone of the database from 1970 to 2037, once,
// and a zone that has it. testdata/zones.txt is the list of the database's files.
func allChanges(t *testing.T) map[change]*time.Location {
	t.Helper()
	text, err := os.ReadFile("testdata/zones.txt")
	if err != nil {
		t.Fatal(err)
	}
	changes := map[change]*time.Location{}
	for _, name := range strings.Fields(string(text)) {
		zone := location(t, name)
		for at := time.Unix(0, 0); ; {
			tr, ok := NextTransition(zone, at)
			if !ok || tr.At.Year() > 2037 {
				break
			}
			at = tr.At
			changes[change{at.Unix(), tr.Before, tr.After}] = zone
		}
	}
	return changes
}

// TestModel compares schedules with the model at every change of every zone, in
// every mode, in both directions and both notations. Next strictly increases for
// every zone, transition and expression, 1970-2037 (aptible/supercronic#86: a
// next time that did not advance filled disks).
func TestModel(t *testing.T) {
	t.Parallel()
	changes := allChanges(t)
	if len(changes) < 5000 {
		t.Fatalf("only %d changes: the list of zones is broken", len(changes))
	}
	const shards = 8
	for shard := range int64(shards) {
		t.Run(fmt.Sprint(shard), func(t *testing.T) {
			t.Parallel()
			fired := 0
			for c, zone := range changes {
				if c.at/daySeconds%shards == shard {
					fired += c.check(t, zone)
				}
			}
			if fired < 10_000 {
				t.Errorf("%d fires: the test has lost its use", fired)
			}
		})
	}
}

// check tries expressions around a change and gives how often they fire.
func (c change) check(t *testing.T, zone *time.Location) (fired int) {
	t.Helper()
	rnd := rand.New(rand.NewPCG(uint64(c.at), uint64(c.before)))
	step, reach := int64(60), int64(13*60*60)
	switch large := c.after - c.before; {
	case large >= correction || large <= -correction:
		reach = 50 * 60 * 60
	case c.before%60 != 0 || c.after%60 != 0 || c.at%60 != 0 || rnd.IntN(200) == 0:
		step, reach = 1, 3*60*60+1000
	}
	instants := instantsAround(zone, c.at-reach, c.at+reach, step)
	around := instants[len(instants)/2+rnd.IntN(3)-1].face
	for range *modelSeeds {
		for dst := DSTCron; dst <= DSTBoth; dst++ {
			m := randomMeaning(rnd, around, step == 1)
			fired += m.check(t, rnd, zone, dst, instants, m.either && rnd.IntN(2) == 0)
		}
	}
	if t.Failed() {
		t.Fatalf("%s, %v", zone, time.Unix(c.at, 0).In(zone))
	}
	return fired
}

// check compares one expression, and gives how often it fires. Both reports that both
// days must match.
func (m *meaning) check(t *testing.T, rnd *rand.Rand, zone *time.Location, dst DST, instants []instant, both bool) int {
	t.Helper()
	o := CronOptions{Zone: zone, DST: dst}
	if both {
		o.DayMatch, m.either = DayBoth, false
	}
	c, err := ParseCron(m.cron, o)
	if err != nil {
		if m.impossible(o) {
			return 0
		}
		t.Error(err)
		return 0
	}
	fires := m.fires(instants, dst)
	compare(t, fmt.Sprintf("cron %q, %s, both %v", m.cron, dst, both), c, instants, fires)
	fresh := cronWith(t, m.cron, o) // whose cache is empty
	at := instants[0].at + rnd.Int64N(instants[len(instants)-1].at-instants[0].at)
	compareAt(t, fmt.Sprintf("cron %q, %s, both %v", m.cron, dst, both), fresh, fires, time.Unix(at, rnd.Int64N(2)), instants)
	if m.calendar != "" && (both || !m.either) {
		c, err := ParseCalendar(m.calendar, zone, dst)
		if err != nil {
			t.Error(err)
			return 0
		}
		compare(t, fmt.Sprintf("calendar %q, %s", m.calendar, dst), c, instants, fires)
	}
	return len(fires)
}

// impossible looks for days that match, one by one through all that 28 years and
// the years of the model have. A mode that skips may leave none of a single day.
func (m *meaning) impossible(o CronOptions) bool {
	all := func(int) bool { return true }
	day := *m
	day.second, day.minute, day.hour = all, all, all
	days := 0
	for i := range modelDays() {
		if day.matches(&modelDays()[i]) {
			days++
		}
	}
	return days == 0 || days == 1 && o.DST == DSTSkip
}

// modelDays is each day from 1970 to 2037.
var modelDays = sync.OnceValue(func() []face {
	var days []face
	for at := time.Unix(0, 0).UTC(); at.Year() < 2038; at = at.AddDate(0, 0, 1) {
		days = append(days, faceOf(at.Unix()))
	}
	return days
})

// compare goes from fire to fire, to the end and back.
func compare(t *testing.T, what string, s Schedule, instants []instant, fires []int64) {
	t.Helper()
	start, end := instants[0].at, instants[len(instants)-1].at
	at := time.Unix(start-1, 0)
	for _, want := range fires {
		got, ok := s.Next(at)
		if !ok || got.Unix() != want || !got.After(at) {
			t.Errorf("%s: after %v comes %v, %v, want %v", what, at.In(got.Location()), got, ok, time.Unix(want, 0).In(got.Location()))
			return
		}
		at = got
	}
	if got, ok := s.Next(at); ok && got.Unix() <= end {
		t.Errorf("%s: %v is one too many", what, got)
	}
	at = time.Unix(end+1, 0)
	for n := len(fires) - 1; n >= 0; n-- {
		got, ok := s.Prev(at)
		if !ok || got.Unix() != fires[n] || !got.Before(at) {
			t.Errorf("%s: before %v comes %v, %v, want %v", what, at.In(got.Location()), got, ok, time.Unix(fires[n], 0).In(got.Location()))
			return
		}
		at = got
	}
	if got, ok := s.Prev(at); ok && got.Unix() >= start {
		t.Errorf("%s: back to %v is one too many", what, got)
	}
}

// compareAt asks for both neighbors of one time.
func compareAt(t *testing.T, what string, s Schedule, fires []int64, at time.Time, instants []instant) {
	t.Helper()
	before, after := instants[0].at-1, instants[len(instants)-1].at+1
	for _, fire := range fires {
		if f := time.Unix(fire, 0); f.Before(at) {
			before = fire
		} else if f.After(at) {
			after = min(after, fire)
		}
	}
	if got, ok := s.Next(at); ok && min(got.Unix(), instants[len(instants)-1].at+1) != after {
		t.Errorf("%s: after %v comes %v", what, at, got)
	}
	if got, ok := s.Prev(at); ok && max(got.Unix(), instants[0].at-1) != before {
		t.Errorf("%s: before %v comes %v", what, at, got)
	}
}

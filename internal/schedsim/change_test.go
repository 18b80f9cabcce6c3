package schedsim

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/scheduler"
)

// timetable reads "cron EXPR", "calendar EXPR", "every D" or "at T".
func timetable(t *testing.T, text, zone string, dst scheduler.DST) scheduler.Schedule {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	form, expr, _ := strings.Cut(text, " ")
	var s scheduler.Schedule
	switch form {
	case "cron":
		s, err = scheduler.ParseCron(expr, scheduler.CronOptions{Zone: location, DST: dst})
	case "calendar":
		s, err = scheduler.ParseCalendar(expr, location, dst)
	case "every":
		var interval time.Duration
		if interval, err = time.ParseDuration(expr); err == nil {
			s, err = scheduler.NewEvery(interval, 0)
		}
	case "at":
		s = scheduler.NewAt(at(t, expr, zone))
	}
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestEffects(t *testing.T) {
	t.Parallel()
	const newYork, spring, fall = "America/New_York", "2026-03-08T00:00:00Z", "2026-11-01T00:00:00Z"
	for _, c := range []struct {
		zone, from, schedule string
		dst                  scheduler.DST
		kind                 EffectKind
		words                string
	}{
		{newYork, spring, "cron 30 2 * * *", scheduler.DSTCron, EffectReplaced, "2026-03-08 02:30 does not exist: it fires at 03:00 -04:00 instead"},
		{newYork, spring, "calendar 02:30:15", scheduler.DSTCron, EffectReplaced, "2026-03-08 02:30:15 does not exist: it fires at 03:00 -04:00 instead"},
		{newYork, spring, "cron 0,30 2 * * *", scheduler.DSTCron, EffectReplaced, "2 times from 2026-03-08 02:00 to 02:30 do not exist: it fires once instead, at 03:00 -04:00"},
		{newYork, spring, "cron 30 2 * * *", scheduler.DSTSkip, EffectSkipped, "2026-03-08 02:30 does not exist and is left out; the next fire is at 02:30 -04:00"},
		{newYork, spring, "cron 30 2 * * *", scheduler.DSTShift, EffectReplaced, "2026-03-08 02:30 does not exist: it fires at 03:30 -04:00 instead"},
		{newYork, spring, "cron 0,30 2 * * *", scheduler.DSTShift, EffectReplaced,
			"2 times from 2026-03-08 02:00 to 02:30 do not exist: it fires 2 times instead, from 03:00 to 03:30 -04:00"},
		{newYork, spring, "cron 0 2,3 * * *", scheduler.DSTCron, EffectSkipped, "2026-03-08 02:00 does not exist and is left out; the next fire is at 03:00 -04:00"},
		{newYork, spring, "cron 0 * * * *", scheduler.DSTCron, EffectSkipped, "2026-03-08 02:00 does not exist and is left out; the next fire is at 03:00 -04:00"},
		{newYork, spring, "cron 0 9 * * *", scheduler.DSTCron, EffectNone, "none of its times is skipped"},
		{newYork, spring, "every 1h", scheduler.DSTCron, EffectElapsed, "it has no local times: the change does not concern it"},
		{newYork, spring, "at 2026-03-08T07:00:00Z", scheduler.DSTCron, EffectElapsed, "it has no local times: the change does not concern it"},

		{newYork, fall, "cron 30 1 * * *", scheduler.DSTCron, EffectOnce, "2026-11-01 01:30 comes twice and fires once, at the first pass, at -04:00"},
		{newYork, fall, "cron 30 1 * * *", scheduler.DSTLast, EffectOnce, "2026-11-01 01:30 comes twice and fires once, at the second pass, at -05:00"},
		{newYork, fall, "cron 30 1 * * *", scheduler.DSTBoth, EffectTwice, "2026-11-01 01:30 comes twice and fires twice, at -04:00 and at -05:00"},
		{newYork, fall, "cron 0,30 1 * * *", scheduler.DSTCron, EffectOnce, "2 times from 2026-11-01 01:00 to 01:30 come twice and fire once, at the first pass, at -04:00"},
		{newYork, fall, "cron */30 * * * *", scheduler.DSTCron, EffectTwice, "2 times from 2026-11-01 01:00 to 01:30 come twice and fire twice, at -04:00 and at -05:00"},
		{newYork, fall, "cron 0 2 * * *", scheduler.DSTCron, EffectNone, "none of its times is repeated"},

		{"Australia/Lord_Howe", "2026-10-01T00:00:00Z", "cron 15 2 * * *", scheduler.DSTCron, EffectReplaced, "2026-10-04 02:15 does not exist: it fires at 02:30 +11:00 instead"},
		{"Pacific/Apia", "2011-12-29T00:00:00Z", "cron 0 12 * * *", scheduler.DSTCron, EffectSkipped,
			"2011-12-30 12:00 does not exist and is left out; the next fire is at 12:00 +14:00"},
		{"Africa/Monrovia", "1972-01-01T00:00:00Z", "cron 15 0 * * *", scheduler.DSTCron, EffectReplaced, "1972-01-07 00:15 does not exist: it fires at 00:44:30 Z instead"},
	} {
		l, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		change, ok := scheduler.NextTransition(l, at(t, c.from, "UTC"))
		if !ok {
			t.Fatalf("%s does not change", c.zone)
		}
		got := EffectOf(timetable(t, c.schedule, c.zone, c.dst), change)
		if got.Kind != c.kind || got.String() != c.words {
			t.Errorf("%s %s %s: %s, %q, want %s, %q", c.zone, c.schedule, c.dst, got.Kind, got, c.kind, c.words)
		}
	}
}

func TestEffectsWithinBounds(t *testing.T) {
	t.Parallel()
	const zone = "America/New_York"
	daily := timetable(t, "cron 30 2 * * *", zone, scheduler.DSTCron)
	change, _ := scheduler.NextTransition(at(t, "2026-03-08T00:00:00Z", zone).Location(), at(t, "2026-03-08T00:00:00Z", zone))
	for _, c := range []struct {
		start, end time.Time
		want       EffectKind
	}{
		{time.Time{}, time.Time{}, EffectReplaced},
		{change.At, time.Time{}, EffectReplaced},
		{change.At.Add(1), time.Time{}, EffectNone},
		{time.Time{}, change.At, EffectNone},
	} {
		if got := EffectOf(scheduler.Bounded{Schedule: daily, Start: c.start, End: c.end}, change); got.Kind != c.want {
			t.Errorf("from %v to %v: %s, want %s", c.start, c.end, got.Kind, c.want)
		}
	}
	// The hour from 01:00 comes twice, and the schedule ends within its second pass.
	change, _ = scheduler.NextTransition(change.At.Location(), change.At)
	half := scheduler.Bounded{Schedule: timetable(t, "cron 0,30 * * * *", zone, scheduler.DSTCron), End: change.At.Add(time.Minute)}
	if got := EffectOf(half, change).String(); got != "2 times from 2026-11-01 01:00 to 01:30 come twice and fire 2 times at the first pass, at -04:00, and once at the second, at -05:00" {
		t.Error(got)
	}
}

func TestAround(t *testing.T) {
	t.Parallel()
	const newYork = "America/New_York"
	for _, c := range []struct {
		zone, from, schedule string
		want                 []string
		whole                bool
	}{
		{newYork, "2026-03-08T00:00:00Z", "cron 30 2,12 * * *", []string{"2026-03-08T03:00:00-04:00", "2026-03-08T12:30:00-04:00"}, true},
		{newYork, "2026-11-01T00:00:00Z", "cron */30 * * * *", []string{
			"2026-11-01T00:30:00-04:00", "2026-11-01T01:00:00-04:00", "2026-11-01T01:30:00-04:00",
			"2026-11-01T01:00:00-05:00", "2026-11-01T01:30:00-05:00", "2026-11-01T02:00:00-05:00",
		}, false},
		{newYork, "2026-11-01T00:00:00Z", "at 2026-11-01T02:00:00Z", nil, true}, // the day before, there
		{newYork, "2026-11-01T00:00:00Z", "every 12h", []string{"2026-11-01T07:00:00-05:00", "2026-11-01T19:00:00-05:00"}, true},
		{"America/Sao_Paulo", "2018-11-01T00:00:00Z", "cron 0 0 * * *", []string{"2018-11-04T01:00:00-02:00"}, true},
	} {
		l, err := time.LoadLocation(c.zone)
		if err != nil {
			t.Fatal(err)
		}
		change, _ := scheduler.NextTransition(l, at(t, c.from, "UTC"))
		e := EffectOf(timetable(t, c.schedule, c.zone, scheduler.DSTCron), change)
		var got []string
		for _, fire := range e.Around {
			got = append(got, fire.Format(time.RFC3339))
		}
		if diff := cmp.Diff(c.want, got); diff != "" || e.WholeDay != c.whole {
			t.Errorf("%s: whole day %t, (-want +got):\n%s", c.schedule, e.WholeDay, diff)
		}
	}
}

func TestOffset(t *testing.T) {
	t.Parallel()
	for seconds, want := range map[int]string{0: "+00:00", -5 * 3600: "-05:00", 19800: "+05:30", -2670: "-00:44:30"} {
		if got := Offset(seconds); got != want {
			t.Errorf("%d: %s, want %s", seconds, got, want)
		}
	}
}

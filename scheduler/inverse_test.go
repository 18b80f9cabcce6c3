package scheduler

import (
	"math/rand/v2"
	"testing"
	"time"
)

// TestInverse takes random schedules at random times: Prev is the inverse of Next.
func TestInverse(t *testing.T) {
	t.Parallel()
	zones := []*time.Location{time.UTC}
	for _, name := range []string{"America/New_York", "Australia/Lord_Howe", "Pacific/Apia", "Africa/Casablanca", "Antarctica/Troll", "Europe/Dublin", "Antarctica/Casey"} {
		zones = append(zones, location(t, name))
	}
	rnd := rand.New(rand.NewPCG(1, 11))
	tried := 0
	for range 3000 {
		s := randomSchedule(t, rnd, zones[rnd.IntN(len(zones))])
		if s == nil {
			continue
		}
		for range 5 {
			at := time.Unix(rnd.Int64N(5_000_000_000)-2_500_000_000, rnd.Int64N(2))
			if checkInverse(t, s, at) {
				tried++
			}
		}
	}
	if tried < 5000 {
		t.Errorf("%d times: the test has lost its use", tried)
	}
}

// randomSchedule is nil when it made an impossible expression.
func randomSchedule(t *testing.T, rnd *rand.Rand, zone *time.Location) Schedule {
	t.Helper()
	m := randomMeaning(rnd, faceOf(rnd.Int64N(2_500_000_000)), rnd.IntN(2) == 0)
	dst := DST(rnd.IntN(int(DSTBoth) + 1))
	var s Schedule
	var err error
	switch kind := rnd.IntN(5); {
	case kind == 0:
		interval := time.Duration(1+rnd.Int64N(1e15)) + MinInterval
		s, err = NewEvery(interval, time.Duration(rnd.Int64N(int64(interval))))
	case kind == 1 && m.calendar != "":
		s, err = ParseCalendar(m.calendar, zone, dst)
	default:
		s, err = ParseCron(m.cron, CronOptions{Zone: zone, DST: dst})
	}
	if err != nil {
		return nil
	}
	return s
}

// checkInverse reports whether there was something to check.
func checkInverse(t *testing.T, s Schedule, at time.Time) bool {
	t.Helper()
	next, ok := s.Next(at)
	if !ok {
		return false
	}
	if !next.After(at) {
		t.Errorf("%s: %v is not after %v", s, next, at)
	}
	if back, ok := s.Prev(next.Add(1)); !ok || !back.Equal(next) {
		t.Errorf("%s: before %v+1ns comes %v, %v", s, next, back, ok)
	}
	prev, ok := s.Prev(next)
	if !ok {
		return true
	}
	if prev.After(at) {
		t.Errorf("%s: %v lies between %v and the next, %v", s, prev, at, next)
	}
	if again, ok := s.Next(prev); !ok || !again.Equal(next) {
		t.Errorf("%s: after %v comes %v, %v, want %v", s, prev, again, ok, next)
	}
	return true
}

func TestPrevEnds(t *testing.T) {
	t.Parallel()
	every, err := NewEvery(24*time.Hour, 0)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []Schedule{every, cron(t, "0 0 * * *", "America/New_York"), calendar(t, "daily", "UTC", DSTCron)} {
		for _, early := range []time.Time{{}, time.Unix(firstSecond, 0), time.Date(-5000, 1, 1, 0, 0, 0, 0, time.UTC)} {
			if at, ok := s.Prev(early); ok {
				t.Errorf("%s: %v before %v", s, at, early)
			}
		}
		for _, late := range []time.Time{time.Unix(lastSecond, 0), time.Date(9000, 1, 1, 0, 0, 0, 0, time.UTC)} {
			at, ok := s.Prev(late)
			if !ok || at.Year() != 2262 {
				t.Errorf("%s: %v, %v before %v", s, at, ok, late)
			}
			if _, ok := s.Next(at); ok {
				t.Errorf("%s: %v is not the last", s, at)
			}
		}
	}
	if at, ok := (Every{}).Prev(time.Now()); ok {
		t.Errorf("the zero value has the time %v", at)
	}
}

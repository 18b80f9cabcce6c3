package scheduler

import (
	"slices"
	"time"
)

// CatchUp determines which of the nominal times that were missed fire late.
type CatchUp uint8

// What to catch up with.
const (
	CatchUpLatest CatchUp = iota // the last one
	CatchUpNone                  // none
	CatchUpAll                   // all of them
)

var catchUps = [...]string{CatchUpLatest: "latest", CatchUpNone: "none", CatchUpAll: "all"}

// String is the word for c: "latest", "none" or "all".
func (c CatchUp) String() string { return catchUps[c] }

// ParseCatchUp reads what String gives.
func ParseCatchUp(word string) (CatchUp, bool) {
	i := slices.Index(catchUps[:], word)
	return CatchUp(max(i, 0)), i >= 0
}

// Defaults of a [Policy].
const (
	DefaultMisfireAfter  = time.Minute
	DefaultCatchUpWindow = time.Hour
	DefaultCatchUpMax    = 100
)

// maxCounted bounds how long the times that are dropped are counted: about a
// millisecond.
const maxCounted = 10_000

// Policy determines what happens to nominal times that could not fire when they were
// due: because nothing was running, the machine slept, the schedule was paused
// or the clock was set. The zero value is the default.
type Policy struct {
	MisfireAfter time.Duration // how late a fire may be and still be on time; default 1m
	CatchUp      CatchUp       // what of the rest fires
	Window       time.Duration // how long ago what is caught up with may have been due; default 1h
	Max          int           // how many fire at one time; default 100, the latest
}

// Decision is what to do about the nominal times that have become due.
type Decision struct {
	Until   time.Time   // the last of them; the zero time when there is none
	Fire    []time.Time // those that are to fire now, the earliest first
	Dropped int         // how many of the others there are, counted up to 10 000
	Misfire bool        // some were later than the policy allows
}

// Decide states what fires at an instant when everything up to a nominal time has
// been decided before. It looks at no more times than the policy's maximum and
// those that it counts, however long ago that was.
func (p Policy) Decide(s Schedule, j Jitter, after, now time.Time) Decision {
	p = p.withDefaults()
	last, ok := lastDue(s, j, now)
	if !ok || !last.After(after) {
		return Decision{}
	}
	d := Decision{Until: last}
	first, _ := s.Next(after)
	if !p.late(s, j, first, now) {
		if d.Fire = upTo(s, first, last, p.Max); d.Fire != nil {
			return d
		}
	}
	d.Misfire = true
	d.Fire = p.caughtUp(s, j, after, last, now)
	d.Dropped = count(s, after, last) - len(d.Fire)
	return d
}

func (p Policy) withDefaults() Policy {
	if p.MisfireAfter <= 0 {
		p.MisfireAfter = DefaultMisfireAfter
	}
	if p.Window <= 0 {
		p.Window = DefaultCatchUpWindow
	}
	if p.Max <= 0 {
		p.Max = DefaultCatchUpMax
	}
	return p
}

func (p Policy) late(s Schedule, j Jitter, nominal, now time.Time) bool {
	return now.Sub(j.Due(s, nominal)) > p.MisfireAfter
}

// caughtUp is what fires of the times after one and up to another.
func (p Policy) caughtUp(s Schedule, j Jitter, after, last, now time.Time) []time.Time {
	limit := 1
	switch {
	case p.CatchUp == CatchUpAll:
		limit = p.Max
	case p.CatchUp == CatchUpNone && p.late(s, j, last, now):
		return nil
	}
	oldest := now.Add(-max(p.Window, p.MisfireAfter))
	var fire []time.Time
	for t, ok := last, true; ok && len(fire) < limit && t.After(after) && !j.Due(s, t).Before(oldest); t, ok = s.Prev(t) {
		fire = append(fire, t)
	}
	slices.Reverse(fire)
	return fire
}

// lastDue is the last nominal time that is due at an instant. A delay is shorter
// than the wait for the next nominal time: none but the last can be ahead.
func lastDue(s Schedule, j Jitter, now time.Time) (time.Time, bool) {
	t, ok := s.Prev(now.Add(1))
	if ok && j.Due(s, t).After(now) {
		t, ok = s.Prev(t)
	}
	return t, ok
}

// upTo is the times from one to another, nil when they are too many.
func upTo(s Schedule, first, last time.Time, limit int) []time.Time {
	var times []time.Time
	for t, ok := first, true; ok && !t.After(last); t, ok = s.Next(t) {
		if len(times) == limit {
			return nil
		}
		times = append(times, t)
	}
	return times
}

func count(s Schedule, after, last time.Time) int {
	n := 0
	for t, ok := s.Next(after); ok && !t.After(last) && n < maxCounted; t, ok = s.Next(t) {
		n++
	}
	return n
}

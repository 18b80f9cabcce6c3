package schedsim

import (
	"slices"
	"time"

	"github.com/flowhost/flowhost/scheduler"
)

// Effect is what a change of a zone's offset does to a schedule of local times in
// it.
type Effect struct {
	Kind   EffectKind
	Change scheduler.Transition

	// Local is how many local times of the schedule the change skips or repeats. The
	// first and the last of them are read in UTC, which represents the local clock.
	Local       int
	First, Last time.Time

	// Of skipped times: how many fires take their place, the first and the last.
	Made                int
	FirstMade, LastMade time.Time

	// Of repeated times: how many fire at the first and at the second pass.
	Passes [2]int

	After    time.Time   // the first fire from the change on; the zero time for none
	Around   []time.Time // fires of the local day of the change, or the MaxShown next to it
	WholeDay bool        // Around is all of that day
}

// EffectKind is a word for an effect.
type EffectKind string

// Kinds of effects.
const (
	EffectNone     EffectKind = "none"     // no time of the schedule is skipped or repeated
	EffectElapsed  EffectKind = "elapsed"  // the schedule does not know local times
	EffectSkipped  EffectKind = "skipped"  // skipped times do not fire
	EffectReplaced EffectKind = "replaced" // skipped times fire later
	EffectOnce     EffectKind = "once"     // repeated times fire at one of their passes
	EffectTwice    EffectKind = "twice"    // repeated times fire at both
)

// MaxShown bounds the fires that an [Effect] lists.
const MaxShown = 6

// EffectOf finds out what a change of an offset does to a schedule in that zone.
// Times that are expected are those of the same expression in a zone without
// changes.
func EffectOf(s scheduler.Schedule, c scheduler.Transition) Effect {
	e := Effect{Kind: EffectNone, Change: c}
	e.After, _ = s.Next(c.At.Add(-1))
	e.around(s)
	expected := steady(s)
	switch {
	case expected == nil:
		e.Kind = EffectElapsed
	case !fits(s, c.At):
	case c.Shift() > 0:
		e.skipped(s, expected)
	default:
		e.repeated(s, expected)
	}
	return e
}

// steady is a schedule of local times with nothing skipped or repeated, nil for
// one of elapsed time and for one instant.
func steady(s scheduler.Schedule) scheduler.Schedule {
	switch s := s.(type) {
	case scheduler.Bounded:
		return steady(s.Schedule)
	case *scheduler.Cron:
		return s.In(time.UTC)
	case *scheduler.Calendar:
		return s.In(time.UTC)
	}
	return nil
}

// face is what the local clock shows at an instant for an offset, read in UTC.
func face(at time.Time, offset int) time.Time {
	return at.Add(time.Duration(offset) * time.Second).UTC()
}

// skipped looks at what the change skips: what the local clock would show by the
// old offset, up to what it shows by the new one.
func (e *Effect) skipped(s, expected scheduler.Schedule) {
	c := e.Change
	for local := range scheduler.Between(expected, face(c.At, c.Before), face(c.At, c.After)) {
		e.note(local)
	}
	if e.Local == 0 {
		return
	}
	e.Kind = EffectSkipped
	for at := range scheduler.Between(s, c.At, c.At.Add(c.Shift())) {
		if fires(expected, face(at, c.After)) {
			continue
		}
		e.Kind = EffectReplaced
		if e.Made++; e.Made == 1 {
			e.FirstMade = at
		}
		e.LastMade = at
	}
}

// repeated looks at what the change repeats.
func (e *Effect) repeated(s, expected scheduler.Schedule) {
	c := e.Change
	for local := range scheduler.Between(expected, face(c.At, c.After), face(c.At, c.Before)) {
		e.note(local)
		for pass, offset := range []int{c.Before, c.After} {
			if fires(s, local.Add(-time.Duration(offset)*time.Second)) {
				e.Passes[pass]++
			}
		}
	}
	switch {
	case e.Local == 0:
	case e.Passes[0] > 0 && e.Passes[1] > 0:
		e.Kind = EffectTwice
	default:
		e.Kind = EffectOnce
	}
}

func (e *Effect) note(local time.Time) {
	if e.Local++; e.Local == 1 {
		e.First = local
	}
	e.Last = local
}

// fits reports whether an instant is within the bounds of a schedule.
func fits(s scheduler.Schedule, at time.Time) bool {
	b, ok := s.(scheduler.Bounded)
	return !ok || !at.Before(b.Start) && (b.End.IsZero() || at.Before(b.End))
}

func fires(s scheduler.Schedule, at time.Time) bool {
	next, ok := s.Next(at.Add(-1))
	return ok && next.Equal(at)
}

// around collects the fires of the change's local day, or those next to it.
func (e *Effect) around(s scheduler.Schedule) {
	at := e.Change.At
	year, month, day := at.Date()
	// Where the change skips midnight, this is a little early.
	start := time.Date(year, month, day, 0, 0, 0, 0, at.Location()).Add(-3 * time.Hour)
	for t := range scheduler.Between(s, start, at.AddDate(0, 0, 2)) {
		t = t.In(at.Location())
		if y, m, d := t.Date(); y != year || m != month || d != day {
			continue
		}
		if len(e.Around) == MaxShown {
			e.Around = nextTo(s, at)
			return
		}
		e.Around = append(e.Around, t)
	}
	e.WholeDay = true
}

// nextTo is half of MaxShown fires before an instant, and as many from it on.
func nextTo(s scheduler.Schedule, at time.Time) []time.Time {
	var times []time.Time
	for t, ok := s.Prev(at); ok && len(times) < MaxShown/2; t, ok = s.Prev(t) {
		times = append(times, t.In(at.Location()))
	}
	slices.Reverse(times)
	for t, ok := s.Next(at.Add(-1)); ok && len(times) < MaxShown; t, ok = s.Next(t) {
		times = append(times, t.In(at.Location()))
	}
	return times
}

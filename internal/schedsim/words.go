package schedsim

import (
	"fmt"
	"time"
)

// String is the effect in words, without the schedule that it is of.
func (e Effect) String() string {
	switch e.Kind {
	case EffectElapsed:
		return "it has no local times: the change does not concern it"
	case EffectSkipped:
		return e.times("does not exist and is left out", "do not exist and are left out") + e.next()
	case EffectReplaced:
		return e.times("does not exist: ", "do not exist: ") + e.made()
	case EffectTwice, EffectOnce:
		return e.times("comes twice and fires ", "come twice and fire ") + e.passes()
	}
	if e.Change.Shift() > 0 {
		return "none of its times is skipped"
	}
	return "none of its times is repeated"
}

// times are the affected local times, and the words for one or
// of many.
func (e Effect) times(one, many string) string {
	first := e.First.Format(time.DateOnly) + " " + clock(e.First)
	if e.Local == 1 {
		return first + " " + one
	}
	return fmt.Sprintf("%d times from %s to %s %s", e.Local, first, clock(e.Last), many)
}

func (e Effect) next() string {
	if e.After.IsZero() {
		return ""
	}
	return "; the next fire is at " + Moment(e.After.In(e.Change.At.Location()))
}

func (e Effect) made() string {
	switch {
	case e.Made == 1 && e.Local == 1:
		return "it fires at " + Moment(e.FirstMade) + " instead"
	case e.Made == 1:
		return "it fires once instead, at " + Moment(e.FirstMade)
	}
	return fmt.Sprintf("it fires %s instead, from %s to %s", often(e.Made), clock(e.FirstMade), Moment(e.LastMade))
}

// passes describes at which of their passes repeated times fire.
func (e Effect) passes() string {
	first, second := Offset(e.Change.Before), Offset(e.Change.After)
	switch e.Passes {
	case [2]int{e.Local, e.Local}:
		return fmt.Sprintf("twice, at %s and at %s", first, second)
	case [2]int{e.Local, 0}:
		return fmt.Sprintf("once, at the first pass, at %s", first)
	case [2]int{0, e.Local}:
		return fmt.Sprintf("once, at the second pass, at %s", second)
	}
	return fmt.Sprintf("%s at the first pass, at %s, and %s at the second, at %s", often(e.Passes[0]), first, often(e.Passes[1]), second)
}

func often(n int) string {
	switch n {
	case 0:
		return "never"
	case 1:
		return "once"
	}
	return fmt.Sprintf("%d times", n)
}

// clock is what a clock shows, "02:30" or "02:30:15".
func clock(t time.Time) string {
	if t.Second() == 0 {
		return t.Format("15:04")
	}
	return t.Format(time.TimeOnly)
}

// Moment is what a clock shows, with its offset: "02:30 -05:00".
func Moment(t time.Time) string { return clock(t) + t.Format(" Z07:00") }

// Offset is an offset from UTC, given in seconds, as "+05:30".
func Offset(seconds int) string {
	form := "-07:00"
	if seconds%60 != 0 {
		form = "-07:00:00"
	}
	return time.Unix(0, 0).In(time.FixedZone("", seconds)).Format(form)
}

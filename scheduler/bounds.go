package scheduler

import (
	"iter"
	"time"
)

// Bounded is a schedule within bounds.
type Bounded struct {
	Schedule
	Start time.Time // the first instant that may fire; the zero time for no such bound
	End   time.Time // the first instant that does not fire any more; the zero time for none
}

// Next is the first time of the schedule within the bounds after the given one.
func (b Bounded) Next(after time.Time) (time.Time, bool) {
	if !b.Start.IsZero() && after.Before(b.Start) {
		after = b.Start.Add(-1)
	}
	t, ok := b.Schedule.Next(after)
	return t, ok && (b.End.IsZero() || t.Before(b.End))
}

// Prev is the last time of the schedule within the bounds before the given one.
func (b Bounded) Prev(before time.Time) (time.Time, bool) {
	if !b.End.IsZero() && before.After(b.End) {
		before = b.End
	}
	t, ok := b.Schedule.Prev(before)
	return t, ok && (b.Start.IsZero() || !t.Before(b.Start))
}

// String is the schedule in words, with its bounds.
func (b Bounded) String() string {
	s := b.Schedule.String()
	if !b.Start.IsZero() {
		s += " from " + b.Start.Format(time.RFC3339Nano)
	}
	if !b.End.IsZero() {
		s += " until " + b.End.Format(time.RFC3339Nano)
	}
	return s
}

// Between gives the times of a schedule from one instant up to, but not
// including, another, the earliest first.
func Between(s Schedule, from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for t, ok := s.Next(from.Add(-1)); ok && t.Before(to); t, ok = s.Next(t) {
			if !yield(t) {
				return
			}
		}
	}
}

// Backward is [Between] with the latest time first.
func Backward(s Schedule, from, to time.Time) iter.Seq[time.Time] {
	return func(yield func(time.Time) bool) {
		for t, ok := s.Prev(to); ok && !t.Before(from); t, ok = s.Prev(t) {
			if !yield(t) {
				return
			}
		}
	}
}

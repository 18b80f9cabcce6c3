package scheduler

import "time"

// At is a schedule of one instant. The zero value has none.
type At struct {
	instant time.Time
}

// NewAt is the schedule of one instant.
func NewAt(instant time.Time) At { return At{instant.Round(0)} }

// Next is the instant, while it lies ahead.
func (a At) Next(after time.Time) (time.Time, bool) {
	return a.instant, !a.instant.IsZero() && a.instant.After(after)
}

// Prev is the instant, once it lies behind.
func (a At) Prev(before time.Time) (time.Time, bool) {
	return a.instant, !a.instant.IsZero() && a.instant.Before(before)
}

// String is the instant in RFC 3339, "at 2026-11-30T09:00:00+01:00".
func (a At) String() string { return "at " + a.instant.Format(time.RFC3339Nano) }

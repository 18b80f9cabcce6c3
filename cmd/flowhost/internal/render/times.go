package render

import (
	"time"
)

// LocalTime is an instant for people: in the local zone, which it states, and in a form
// that flags for times accept.
func LocalTime(at time.Time) string { return at.Local().Format(time.RFC3339) }

// Nominal is a nominal time for people. Schedules may fire several times in a second.
func Nominal(at time.Time) string { return at.Local().Format(time.RFC3339Nano) }

// Instant is a time for programs.
func Instant(t time.Time) string { return t.Format(time.RFC3339Nano) }

// Short is a duration rounded to what people read.
func Short(d time.Duration) string {
	switch {
	case d >= time.Second:
		return d.Round(10 * time.Millisecond).String()
	case d >= time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	}
	return d.Round(time.Microsecond).String()
}

// Elapsed is how long something has been running that has not ended. The start may be
// by the clock of another machine.
func Elapsed(since time.Time) string {
	d := max(0, time.Since(since))
	if d >= 10*time.Second {
		return d.Round(time.Second).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// MS is a duration in milliseconds, as records have it.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

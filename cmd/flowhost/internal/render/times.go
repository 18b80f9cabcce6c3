package render

import (
	"time"
)

// LocalTime is an instant for people, in the local zone.
func LocalTime(at time.Time) string { return at.Local().Format(time.DateTime) }

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

func milliseconds(ms float64) time.Duration { return time.Duration(ms * float64(time.Millisecond)) }

// MS is a duration in milliseconds, as records have it.
func MS(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

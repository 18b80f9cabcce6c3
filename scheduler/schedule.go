package scheduler

import (
	"time"
	_ "time/tzdata" // zones mean the same on machines that have no zone database
)

// Schedule gives the nominal times of a trigger. Next and Prev walk the same
// times, one forwards and one backwards.
type Schedule interface {
	// Next is the first nominal time strictly after the given one; false means
	// that there is none any more.
	Next(after time.Time) (time.Time, bool)

	// Prev is the last nominal time strictly before the given one; false means
	// that there was none yet.
	Prev(before time.Time) (time.Time, bool)

	// String is the schedule in canonical words. Among schedules with the same
	// zone and options, equal words mean equal times.
	String() string
}

package scheduler

import (
	"time"
	_ "time/tzdata" // zones mean the same on machines that have no zone database
)

// Schedule gives the nominal times of a trigger.
type Schedule interface {
	// Next is the first nominal time strictly after the given one; false says
	// that there is none any more.
	Next(after time.Time) (time.Time, bool)
}

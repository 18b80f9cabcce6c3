package scheduler

import (
	"math"
	"time"
)

// window is a time during which a zone's offset does not change. All fields are
// in seconds; start and end are Unix times.
type window struct {
	start, end int64
	offset     int64 // local time minus UTC
	before     int64 // offset of the window before, the same when there is none
}

func findWindow(zone *time.Location, at int64) *window {
	t := time.Unix(at, 0).In(zone)
	w := &window{start: math.MinInt64, end: math.MaxInt64, offset: offsetOf(t)}
	w.before = w.offset
	start, end := t.ZoneBounds()
	if !start.IsZero() {
		w.start = start.Unix()
		w.before = offsetOf(start.Add(-time.Second))
	}
	if !end.IsZero() {
		w.end = end.Unix()
	}
	if w.end <= at {
		// By a zone's rule for the future, ZoneBounds ends each year after 365 days.
		// The last day of a leap year belongs to the same window.
		w.end = (floorDiv(at, daySeconds) + 1) * daySeconds
	}
	return w
}

func offsetOf(t time.Time) int64 {
	_, offset := t.Zone()
	return int64(offset)
}

// farther than any two offsets of a zone are apart, in seconds.
const farther = 2 * daySeconds

// beyond is where to go on when, from the instant at on, the first match by the
// window's offset is at a local time that lies past its end. That is the next
// window; or, so that yearly schedules do not look at each window on the way, a
// later one: local times met before then lie between the start of the search and
// the match. A search that starts close to the window's end gives no such jump:
// local times from before its start may come again.
func (w *window) beyond(at, local int64) int64 {
	if w.end-at < farther {
		return w.end
	}
	return max(w.end, local-w.offset-farther)
}

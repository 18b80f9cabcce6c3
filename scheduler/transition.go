package scheduler

import "time"

// Transition is a change of a zone's offset from UTC.
type Transition struct {
	At            time.Time // the first instant of the new offset, in the zone
	Before, After int       // the offsets, in seconds east of UTC
}

// Shift is how far the local clock jumps: forwards it skips local times, backwards
// it repeats them.
func (t Transition) Shift() time.Duration { return time.Duration(t.After-t.Before) * time.Second }

// NextTransition is the first change of a zone's offset after an instant; false
// reports that there is none before April 2262. A nil zone is UTC.
func NextTransition(zone *time.Location, after time.Time) (Transition, bool) {
	if zone == nil {
		return Transition{}, false
	}
	for w := findWindow(zone, max(floorDiv(nanos(after), second), firstSecond), true); w.end <= lastSecond; w = findWindow(zone, w.end, true) {
		if w.after != w.offset {
			return Transition{At: time.Unix(w.end, 0).In(zone), Before: int(w.offset), After: int(w.after)}, true
		}
	}
	return Transition{}, false
}

package scheduler

import (
	"math"
	"sync/atomic"
	"time"
)

// correction is the least change of a zone's offset that counts as a correction
// of the clock and not as daylight saving. The figure is ISC cron's.
const correction = 3 * 60 * 60

// lastSecond is the last Unix time that has UTC nanoseconds in 64 bits.
const lastSecond = math.MaxInt64/second - 1

// Cron is a schedule of local times in a zone, safe for concurrent use.
//
// Where the zone's offset changes by less than three hours, as with daylight
// saving, it follows ISC cron. A local time that is skipped fires once, where the
// gap ends; all that one gap skips fires together. A local time that is repeated
// fires once, at its first pass. An expression whose minute or hour field starts
// with * follows real elapsed time instead: whatever the local clock shows
// counts, skipped times do not fire and repeated ones fire again. Larger changes
// are corrections of the calendar, such as Samoa's missing day, and every
// expression treats them in that way.
type Cron struct {
	expr    string
	pattern pattern
	zone    *time.Location
	window  atomic.Pointer[window] // the last one used; a cache
}

// String is the expression as it was written.
func (c *Cron) String() string { return c.expr }

// Next is the first time of the schedule after the given one, in its zone and on
// a whole second.
func (c *Cron) Next(after time.Time) (time.Time, bool) {
	at := floorDiv(nanos(after), second) + 1
	for at <= lastSecond {
		w := c.windowAt(at)
		if at == w.start && c.skippedBy(w) {
			return time.Unix(at, 0).In(c.zone), true
		}
		local, ok := c.pattern.next(c.firstLocal(w, at))
		if !ok {
			break
		}
		if fire := local - w.offset; fire < w.end {
			return time.Unix(fire, 0).In(c.zone), fire <= lastSecond
		}
		at = w.beyond(at, local)
	}
	return time.Time{}, false
}

// skippedBy reports whether the change that opens w skips a local time of the
// schedule that is to be made up for.
func (c *Cron) skippedBy(w *window) bool {
	gap := w.offset - w.before
	if c.pattern.elapsed || gap <= 0 || gap >= correction {
		return false
	}
	local, ok := c.pattern.next(w.start + w.before)
	return ok && local < w.start+w.offset
}

// firstLocal is the local time at which to search from an instant in w: its own,
// or the end of what the change that opens w repeats.
func (c *Cron) firstLocal(w *window, at int64) int64 {
	repeated := w.before - w.offset
	if c.pattern.elapsed || repeated <= 0 || repeated >= correction {
		return at + w.offset
	}
	return max(at+w.offset, w.start+w.before)
}

func (c *Cron) windowAt(at int64) *window {
	if w := c.window.Load(); w != nil && w.start <= at && at < w.end {
		return w
	}
	w := findWindow(c.zone, at)
	c.window.Store(w)
	return w
}

package scheduler

import (
	"math"
	"sync/atomic"
	"time"
)

// correction is the least change of a zone's offset that counts as a correction
// of the clock and not as daylight saving. The figure is ISC cron's.
const correction = 3 * 60 * 60

// window is a time during which a zone's offset does not change. All fields are
// in seconds; start and end are Unix times.
type window struct {
	start, end int64
	offset     int64 // local time minus UTC
	before     int64 // offset of the window before, the same when there is none
	after      int64 // offset of the window after, the same when there is none or nobody asked
}

// findWindow looks at the window after only on request: each look costs as
// much as the rest of a search.
func findWindow(zone *time.Location, at int64, after bool) window {
	t := time.Unix(at, 0).In(zone)
	offset := offsetOf(t)
	w := window{math.MinInt64 / 2, math.MaxInt64 / 2, offset, offset, offset}
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
	} else if after && !end.IsZero() {
		w.after = offsetOf(end)
	}
	return w
}

func offsetOf(t time.Time) int64 {
	_, offset := t.Zone()
	return int64(offset)
}

// gap is how many local seconds the change that opens w skips, 0 for none.
func (w *window) gap() int64 { return daylight(w.offset - w.before) }

// repeatedFirst is how many seconds at the end of w are a first pass, and
// repeatedLast how many at its start are a last one.
func (w *window) repeatedFirst() int64 { return daylight(w.offset - w.after) }
func (w *window) repeatedLast() int64  { return daylight(w.before - w.offset) }

// daylight is a change, 0 if it goes the other way or corrects the clock.
func daylight(change int64) int64 {
	if change <= 0 || change >= correction {
		return 0
	}
	return change
}

// farther than any two offsets of a zone and the longest repetition together, in
// seconds.
const farther = 2 * daySeconds

// beyond is where to continue when, from the instant at on, the first match by the
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

// behind is beyond for a search backwards, whose first match lies before w.
func (w *window) behind(at, local int64) int64 {
	if at-w.start < farther {
		return w.start - 1
	}
	return min(w.start-1, local-w.offset+farther)
}

// windowCache holds the window of a zone that was used last. It allocates
// nothing: version, odd while a writer is at work, shows readers whether what
// they have read belongs together, and a writer that meets another goes away.
type windowCache struct {
	version               atomic.Uint32
	start, end            atomic.Int64
	offset, before, after atomic.Int32
}

// at is the window of an instant. All calls ask for after, or none does.
func (c *windowCache) at(zone *time.Location, at int64, after bool) window {
	version := c.version.Load()
	w := window{c.start.Load(), c.end.Load(), int64(c.offset.Load()), int64(c.before.Load()), int64(c.after.Load())}
	if w.start <= at && at < w.end && version%2 == 0 && c.version.Load() == version {
		return w
	}
	w = findWindow(zone, at, after)
	if version%2 == 0 && c.version.CompareAndSwap(version, version+1) {
		c.start.Store(w.start)
		c.end.Store(w.end)
		c.offset.Store(int32(w.offset))
		c.before.Store(int32(w.before))
		c.after.Store(int32(w.after))
		c.version.Store(version + 2)
	}
	return w
}

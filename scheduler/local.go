package scheduler

import (
	"math"
	"time"
)

// The Unix times that have UTC nanoseconds in 64 bits.
const (
	firstSecond = math.MinInt64 / second
	lastSecond  = math.MaxInt64/second - 1
)

// localTimes is what Cron and Calendar have in common: a pattern of local times
// in a zone. It is safe for concurrent use.
type localTimes struct {
	pattern   pattern
	treatment treatment
	zone      *time.Location
	cache     windowCache
}

func (l *localTimes) init(p pattern, zone *time.Location, dst DST) {
	if zone == nil {
		zone = time.UTC
	}
	l.pattern, l.zone, l.treatment = p, zone, dst.treatment(&p)
}

// like copies another one into l, with l's own zone.
func (l *localTimes) like(other *localTimes, zone *time.Location) {
	if zone == nil {
		zone = time.UTC
	}
	l.pattern, l.zone, l.treatment = other.pattern, zone, other.treatment
}

func (l *localTimes) next(after time.Time) (time.Time, bool) {
	at, ok := l.nextSecond(max(floorDiv(nanos(after), second)+1, firstSecond))
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(at, 0).In(l.zone), true
}

func (l *localTimes) prev(before time.Time) (time.Time, bool) {
	at, ok := l.prevSecond(floorDiv(max(nanos(before), math.MinInt64+1)-1, second))
	if !ok {
		return time.Time{}, false
	}
	return time.Unix(at, 0).In(l.zone), true
}

// nextSecond is the first fire at or after an instant.
func (l *localTimes) nextSecond(at int64) (int64, bool) {
	for at <= lastSecond {
		w := l.window(at)
		from, end := l.counted(&w)
		local, found := l.pattern.next(max(at, from) + w.offset)
		fire, ok := local-w.offset, found && local-w.offset < end
		if made, skipped := l.nextSkipped(&w, at); skipped && (!ok || made < fire) {
			fire, ok = made, true
		}
		switch {
		case ok:
			return fire, fire <= lastSecond
		case found:
			at = w.beyond(at, local)
		case w.end-at < farther: // local times from before the search may come again
			at = w.end
		default:
			return 0, false
		}
	}
	return 0, false
}

// prevSecond is the last fire at or before an instant.
func (l *localTimes) prevSecond(at int64) (int64, bool) {
	for at = min(at, lastSecond); at >= firstSecond; {
		w := l.window(at)
		from, end := l.counted(&w)
		local, found := l.pattern.prev(min(at, end-1) + w.offset)
		fire, ok := local-w.offset, found && local-w.offset >= from
		if !ok || fire < w.start+w.gap() {
			if made, skipped := l.prevSkipped(&w, at); skipped && (!ok || made > fire) {
				fire, ok = made, true
			}
		}
		switch {
		case ok:
			return fire, fire >= firstSecond
		case w.start < firstSecond:
			return 0, false
		case found:
			at = w.behind(at, local)
		case at-w.start < farther:
			at = w.start - 1
		default:
			return 0, false
		}
	}
	return 0, false
}

func (l *localTimes) window(at int64) window {
	return l.cache.at(l.zone, at, l.treatment.pass == passLast)
}

// counted is the part of w whose local times count: all but a first or a last
// pass.
func (l *localTimes) counted(w *window) (from, end int64) {
	from, end = w.start, w.end
	switch l.treatment.pass {
	case passFirst:
		from += w.repeatedLast()
	case passLast:
		end -= w.repeatedFirst()
	}
	return from, end
}

// nextSkipped is the first fire at or after an instant of w that makes up for a
// local time that the change at w's start skipped.
func (l *localTimes) nextSkipped(w *window, at int64) (int64, bool) {
	gap := w.gap()
	if gap == 0 || at >= w.start+gap || l.treatment.gap == gapLost {
		return 0, false
	}
	if l.treatment.gap == gapEnd {
		return w.start, at == w.start && l.skipsAny(w)
	}
	local, ok := l.pattern.next(at + w.before)
	return local - w.before, ok && local < w.start+w.offset
}

// prevSkipped is nextSkipped backwards.
func (l *localTimes) prevSkipped(w *window, at int64) (int64, bool) {
	if w.gap() == 0 || l.treatment.gap == gapLost {
		return 0, false
	}
	if l.treatment.gap == gapEnd {
		return w.start, l.skipsAny(w)
	}
	local, ok := l.pattern.prev(min(at+w.before, w.start+w.offset-1))
	return local - w.before, ok && local >= w.start+w.before
}

// skipsAny reports whether the gap that opens w skips a match.
func (l *localTimes) skipsAny(w *window) bool {
	local, ok := l.pattern.next(w.start + w.before)
	return ok && local < w.start+w.offset
}

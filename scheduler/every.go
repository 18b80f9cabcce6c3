package scheduler

import (
	"fmt"
	"math"
	"strings"
	"time"
)

// MinInterval is the shortest interval of an [Every].
const MinInterval = time.Millisecond

// Every is a schedule of elapsed time: all instants that are a multiple of
// intervals, and the offset, after the Unix epoch. A restart does not shift it
// and changes of a zone do not concern it. The zero value has no times.
type Every struct {
	interval, offset time.Duration
}

// IntervalError reports why an [Every] cannot be made.
type IntervalError struct {
	Interval, Offset time.Duration
	Reason           string
}

func (e *IntervalError) Error() string {
	return fmt.Sprintf("every %s, offset %s: %s", duration(e.Interval), duration(e.Offset), e.Reason)
}

// NewEvery is a schedule with an interval of at least MinInterval and an offset
// from 0 up to less than the interval. It fails with *IntervalError.
func NewEvery(interval, offset time.Duration) (Every, error) {
	switch {
	case interval < MinInterval:
		return Every{}, &IntervalError{interval, offset, "the interval must be at least 1ms"}
	case offset < 0 || offset >= interval:
		return Every{}, &IntervalError{interval, offset, "the offset must be at least 0 and shorter than the interval"}
	}
	return Every{interval: interval, offset: offset}, nil
}

// Next is the first time of the schedule after the given one, in UTC.
func (e Every) Next(after time.Time) (time.Time, bool) {
	if e.interval <= 0 {
		return time.Time{}, false
	}
	interval, offset := int64(e.interval), int64(e.offset)
	now := nanos(after)
	passed := now % interval
	if passed < 0 {
		passed += interval
	}
	ahead := offset - passed
	if ahead <= 0 {
		ahead += interval
	}
	if now > math.MaxInt64-ahead {
		return time.Time{}, false
	}
	return time.Unix(0, now+ahead).UTC(), true
}

// Prev is the last time of the schedule before the given one, in UTC.
func (e Every) Prev(before time.Time) (time.Time, bool) {
	if e.interval <= 0 {
		return time.Time{}, false
	}
	interval, offset := int64(e.interval), int64(e.offset)
	now := nanos(before)
	back := now%interval - offset
	for back <= 0 {
		back += interval
	}
	if now < math.MinInt64+back {
		return time.Time{}, false
	}
	return time.Unix(0, now-back).UTC(), true
}

// String is the schedule in words, "every 15m" or "every 1h offset 5m".
func (e Every) String() string {
	s := "every " + duration(e.interval)
	if e.offset != 0 {
		s += " offset " + duration(e.offset)
	}
	return s
}

// duration is d without the zero minutes and seconds that its String shows.
func duration(d time.Duration) string {
	s := d.String()
	if strings.HasSuffix(s, "m0s") {
		s = s[:len(s)-2]
	}
	if strings.HasSuffix(s, "h0m") {
		s = s[:len(s)-2]
	}
	return s
}

package scheduler

import (
	"math"
	"time"
)

const second = int64(time.Second)

// nanos is the wall clock reading of t as UTC nanoseconds, the nearest there is
// for times outside the range that [time.Time.UnixNano] has.
func nanos(t time.Time) int64 {
	switch s := t.Unix(); {
	case s < math.MinInt64/second:
		return math.MinInt64
	case s >= math.MaxInt64/second:
		return math.MaxInt64
	}
	return t.UnixNano()
}

// floorDiv is a / b rounded down; b is positive.
func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

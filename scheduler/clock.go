package scheduler

import (
	"context"
	"time"
)

// Clock is what a [Queue] reads the time from and is woken by: the [WallClock],
// or a [VirtualClock] in tests and simulations. There are no others, because a
// queue needs more of a clock than its time.
type Clock interface {
	// Now is the present time of the clock.
	Now() time.Time

	// newWaker gives what wakes one owner of a queue, for as long as ctx lasts.
	newWaker(ctx context.Context) waker
}

// WallClock is the clock of the machine, as [time.Now] reads it. Within a bubble
// of [testing/synctest] it is the bubble's clock.
type WallClock struct{}

// Now is [time.Now].
func (WallClock) Now() time.Time { return time.Now() }

func (WallClock) newWaker(ctx context.Context) waker { return newWallWaker(ctx) }

// jumpMargin is how far a clock may move against elapsed time before that is a
// jump. Time synchronization that does not set clocks slews them, by at most one
// part in 2000 on Linux.
const jumpMargin = time.Second

// reading is what a clock shows.
type reading struct {
	wall    int64         // UTC nanoseconds
	elapsed time.Duration // since some time; not moved when the clock is set
}

// jump is by how much the clock was set between two readings, 0 when it was not.
// A suspended machine shows as a jump forward where elapsed time does not move
// meanwhile, as it does on Linux.
func (i reading) jump(before reading) time.Duration {
	elapsed := i.elapsed - before.elapsed
	by := time.Duration(i.wall-before.wall) - elapsed
	if by.Abs() > jumpMargin+elapsed/1000 {
		return by
	}
	return 0
}

// wallReader reads the wall clock.
type wallReader struct {
	start time.Time // with a monotonic reading
}

func (r wallReader) now() reading {
	now := time.Now()
	return reading{wall: nanos(now), elapsed: now.Sub(r.start)}
}

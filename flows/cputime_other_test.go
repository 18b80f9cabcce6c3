//go:build !linux

package flows

import "time"

var started = time.Now()

// cpuTime is the clock here: only Linux tells the time of a thread.
func cpuTime() time.Duration { return time.Since(started) }

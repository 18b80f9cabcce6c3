//go:build !linux

package watchdog

import "time"

var start = time.Now()

// now is the time that has passed: there is no better measure here.
func now() time.Duration { return time.Since(start) }

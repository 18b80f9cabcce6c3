//go:build !linux && !darwin && !freebsd

package natsd

import "math"

// FreeSpace is not known on this system: a full disk shows when a write fails.
func FreeSpace(string) (int64, error) { return math.MaxInt64, nil }

package natsd

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// SlowFsync is the time of an fsync above which most of what strict mode does is
// waiting for the disk.
const SlowFsync = 5 * time.Millisecond

// Bounds of the measurement at start.
const (
	fsyncRounds = 20
	fsyncBytes  = 4 << 10
	fsyncBudget = 250 * time.Millisecond
)

// measureFsync gives the median time of a small write with its fsync in a directory.
func measureFsync(dir string) (time.Duration, error) {
	file, err := os.CreateTemp(dir, ".fsync-*")
	if err != nil {
		return 0, fmt.Errorf("data directory: %w", err)
	}
	times, err := timeFsyncs(file)
	if err := errors.Join(err, file.Close(), os.Remove(file.Name())); err != nil {
		return 0, fmt.Errorf("data directory: %w", err)
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

func timeFsyncs(file *os.File) ([]time.Duration, error) {
	var times []time.Duration
	begin, text := time.Now(), make([]byte, fsyncBytes)
	for len(times) < fsyncRounds && time.Since(begin) < fsyncBudget {
		start := time.Now()
		if _, err := file.Write(text); err != nil {
			return nil, err
		}
		if err := file.Sync(); err != nil {
			return nil, err
		}
		times = append(times, time.Since(start))
	}
	return times, nil
}

package main

import (
	"slices"
	"time"
)

// quantile gives the value below which the share q of the sample lies, by the
// nearest rank.
func quantile(sample []time.Duration, q float64) time.Duration {
	sorted := slices.Sorted(slices.Values(sample))
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

func mb(bytes int64) float64 { return float64(bytes) / 1e6 }

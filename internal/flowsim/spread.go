package flowsim

import (
	"math"
	"slices"
	"time"
)

// Spread is a distribution of durations.
type Spread struct {
	N              int
	Min, Mean, Max time.Duration
	P50, P90, P99  time.Duration // nearest rank: so many of a hundred are not longer
	Bins           []Bin         // all of one width, from the first with a duration to the last
}

// Bin is how many durations lie from From on, below To; in the last one Max may be
// To.
type Bin struct {
	From, To time.Duration
	N        int
}

// maxBins is how many bins there are at most.
const maxBins = 12

func newSpread(all []time.Duration) Spread {
	if len(all) == 0 {
		return Spread{}
	}
	slices.Sort(all)
	s := Spread{N: len(all), Min: all[0], Max: all[len(all)-1], P50: rank(all, 50), P90: rank(all, 90), P99: rank(all, 99)}
	sum := 0.0
	for _, d := range all {
		sum += float64(d)
	}
	s.Mean = time.Duration(sum / float64(len(all)))
	s.Bins = bins(all)
	return s
}

// rank is the smallest of sorted durations that at least percent of them do not
// exceed.
func rank(all []time.Duration, percent int) time.Duration {
	return all[max((len(all)*percent+99)/100, 1)-1]
}

// bins counts sorted durations in bins whose bounds are round.
func bins(all []time.Duration) []Bin {
	least, most := all[0], all[len(all)-1]
	width := handy((most - least) / (maxBins - 2))
	from := least / width * width
	var out []Bin
	for next := 0; next < len(all); from += width {
		b := Bin{From: from, To: from + width}
		for ; next < len(all) && all[next] < b.To; next++ {
			b.N++
		}
		out = append(out, b)
	}
	return out
}

// handy is the next longer duration that people like: 1, 2 or 5 of a power of ten,
// and above a second of what clocks show.
func handy(d time.Duration) time.Duration {
	for _, clock := range []time.Duration{
		time.Second, 2 * time.Second, 5 * time.Second, 10 * time.Second, 15 * time.Second, 30 * time.Second,
		time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
		time.Hour, 2 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	} {
		if d > 500*time.Millisecond && d <= clock {
			return clock
		}
	}
	unit := time.Microsecond
	if d > 24*time.Hour {
		unit = 24 * time.Hour
	}
	power := time.Duration(math.Pow10(max(int(math.Floor(math.Log10(max(float64(d)/float64(unit), 1)))), 0)))
	for _, n := range []time.Duration{1, 2, 5} {
		if width := n * power * unit; width >= d {
			return width
		}
	}
	return 10 * power * unit
}

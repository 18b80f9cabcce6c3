package scheduler

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestWindowCacheIsShared goes to and fro between two windows on many goroutines:
// what one reads while another writes must never be mixed.
func TestWindowCacheIsShared(t *testing.T) {
	t.Parallel()
	zone := location(t, "America/New_York")
	var at [2]int64
	var want [2]window
	for i := range at {
		at[i] = time.Date(2026, time.Month(1+6*i), 1, 0, 0, 0, 0, time.UTC).Unix()
		want[i] = findWindow(zone, at[i], true)
	}
	var cache windowCache
	var group sync.WaitGroup
	for seed := range uint64(8) {
		group.Go(func() {
			rnd := rand.New(rand.NewPCG(seed, 12))
			for range 100_000 {
				i := rnd.IntN(2)
				if got := cache.at(zone, at[i], true); got != want[i] {
					t.Errorf("%v is in %v, want %v", at[i], got, want[i])
					return
				}
			}
		})
	}
	group.Wait()
}

// TestNextAllocatesNothing also where each fire lies in another window.
func TestNextAllocatesNothing(t *testing.T) {
	zone := location(t, "America/New_York")
	for _, s := range []Schedule{
		cronWith(t, "0 9 1,15W,L * fri#2", CronOptions{Zone: zone}),
		cronWith(t, "@yearly", CronOptions{Zone: zone, DST: DSTLast}),
		calendar(t, "Mon..Fri *-*-~01 09:00", "America/New_York", DSTShift),
	} {
		at := time.Date(2026, 1, 1, 0, 0, 0, 0, zone)
		allocs := testing.AllocsPerRun(30, func() {
			next, _ := s.Next(at)
			if prev, ok := s.Prev(next); !ok || prev.After(at) {
				t.Errorf("%v before %v", prev, next)
			}
			at = next
		})
		if allocs != 0 {
			t.Errorf("%s allocates %v times", s, allocs)
		}
	}
}

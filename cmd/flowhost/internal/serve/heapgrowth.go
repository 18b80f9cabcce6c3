package serve

import (
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"sync/atomic"
)

// Bounds of the heap's growth between two collections, in percent of what is live. A task
// produces much garbage: with Go's own 100, collections take an eighth of the CPU under
// load, and with 200 a host at full load has three times the memory that it uses.
const (
	mostGrowth  = 200
	leastGrowth = 100
	heapAim     = 400 << 20 // bytes that the heap grows to at most, while leastGrowth allows that
)

// growthOf is the growth for a live heap.
func growthOf(live uint64) int {
	if live == 0 {
		return mostGrowth
	}
	left := max(heapAim-int64(live), 0)
	return int(min(max(left*100/int64(live), leastGrowth), mostGrowth))
}

// TuneCollector sets the heap's growth after each collection, until stop is called.
func TuneCollector() (stop func()) {
	var stopped atomic.Bool
	growth := mostGrowth
	debug.SetGCPercent(growth)
	sample := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	afterCollection(func() bool {
		metrics.Read(sample)
		if wanted := growthOf(sample[0].Value.Uint64()); wanted != growth {
			growth = wanted
			debug.SetGCPercent(growth)
		}
		return !stopped.Load()
	})
	return func() { stopped.Store(true) }
}

// afterCollection calls f after each collection while it returns true, on a goroutine of
// the runtime, one call at a time.
func afterCollection(f func() bool) {
	garbage := new([64]byte)
	runtime.AddCleanup(garbage, func(f func() bool) {
		if f() {
			afterCollection(f)
		}
	}, f)
}

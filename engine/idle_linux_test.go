package engine

import (
	"runtime"
	"syscall"
	"testing"
	"time"
)

// BenchmarkIdleTimers arms a million timers that are due tomorrow and looks at
// what an engine costs that has nothing to do until then: CPU in ms for each
// second, and bytes for each timer, with what the engine keeps of it.
func BenchmarkIdleTimers(b *testing.B) {
	const timers = 1_000_000
	r := boot(b, Config{})
	b.Cleanup(r.crash)
	before := heap()
	r.onLoop(func() {
		for i := range timers {
			r.exec.clock.at(time.Now().Add(24*time.Hour+time.Duration(i)*time.Millisecond), func() { _ = i })
		}
	})
	held := heap() - before
	spent := cpu(b)
	began := time.Now()
	for b.Loop() {
		time.Sleep(time.Second)
	}
	b.ReportMetric(float64(held)/timers, "B/timer")
	b.ReportMetric(float64((cpu(b)-spent).Milliseconds())/time.Since(began).Seconds(), "cpu-ms/s")
}

func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func cpu(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

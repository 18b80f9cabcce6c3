package scheduler

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// lateSpan is for how long timers come due in one measurement.
const lateSpan = 2 * time.Second

// BenchmarkLateness measures how late values come out while many others are armed,
// with time.AfterFunc under the same load beside it.
func BenchmarkLateness(b *testing.B) {
	for _, tt := range []struct {
		armed, rate, burnt int
	}{
		{armed: 1_000, rate: 1_000},
		{armed: 100_000, rate: 1_000},
		{armed: 100_000, rate: 10_000},
		{armed: 1_000_000, rate: 10_000},
		{armed: 100_000, rate: 100_000},
		{armed: 100_000, rate: 1_000, burnt: runtime.GOMAXPROCS(0) - 1},
		{armed: 100_000, rate: 1_000, burnt: runtime.GOMAXPROCS(0)},
	} {
		b.Run(fmt.Sprintf("armed=%d/rate=%d/burnt=%d", tt.armed, tt.rate, tt.burnt), func(b *testing.B) {
			b.Run("Queue", func(b *testing.B) {
				for b.Loop() {
					report(b, tt.burnt, func() []time.Duration { return queueLateness(b, tt.armed, tt.rate, 0) })
				}
			})
			b.Run("Grid", func(b *testing.B) {
				for b.Loop() {
					report(b, tt.burnt, func() []time.Duration {
						return queueLateness(b, tt.armed, tt.rate, 500*time.Microsecond)
					})
				}
			})
			b.Run("AfterFunc", func(b *testing.B) {
				for b.Loop() {
					report(b, tt.burnt, func() []time.Duration { return afterFuncLateness(tt.armed, tt.rate) })
				}
			})
		})
	}
}

// BenchmarkHerd is how long after the instant the last of 100 000 values came out
// that are all due then.
func BenchmarkHerd(b *testing.B) {
	const herd = 100_000
	b.Run("Queue", func(b *testing.B) {
		for b.Loop() {
			due := time.Now().Add(300 * time.Millisecond)
			q := NewQueue[int64](Options{})
			for range herd {
				add(b, q, due, nanos(due))
			}
			reportHerd(b, drainQueue(b, q, herd))
		}
	})
	b.Run("Scheduler", func(b *testing.B) {
		for b.Loop() {
			reportHerd(b, schedulerHerd(b, herd))
		}
	})
	b.Run("AfterFunc", func(b *testing.B) {
		for b.Loop() {
			due := time.Now().Add(300 * time.Millisecond)
			late := make([]time.Duration, herd)
			var fired sync.WaitGroup
			fired.Add(herd)
			for i := range late {
				time.AfterFunc(time.Until(due), func() {
					late[i] = time.Since(due)
					fired.Done()
				})
			}
			fired.Wait()
			reportHerd(b, late)
		}
	})
}

func schedulerHerd(b *testing.B, herd int) []time.Duration {
	b.Helper()
	s := New(Config{})
	late := make([]time.Duration, herd)
	due := time.Now().Add(500 * time.Millisecond)
	var fired sync.WaitGroup
	fired.Add(herd)
	for i := range late {
		must(s.At(due, func(_ context.Context, f Fire) error {
			late[i] = f.Started.Sub(due)
			fired.Done()
			return nil
		}))
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run(b.Context()) }()
	fired.Wait()
	if err := s.Close(b.Context()); err != nil || <-ended != nil {
		b.Error(err)
	}
	return late
}

func reportHerd(b *testing.B, late []time.Duration) {
	b.Helper()
	b.ReportMetric(slices.Max(late).Seconds()*1000, "last-ms")
	b.ReportMetric(0, "ns/op")
}

// report measures while goroutines burn processors.
func report(b *testing.B, burnt int, measure func() []time.Duration) {
	b.Helper()
	var stop atomic.Bool
	var burning sync.WaitGroup
	for range burnt {
		burning.Go(func() {
			for !stop.Load() { // it can be preempted and has nothing else to do
			}
		})
	}
	cpu := processorTime()
	late := measure()
	cpu = processorTime() - cpu
	stop.Store(true)
	burning.Wait()
	slices.Sort(late)
	if late[0] < 0 {
		b.Errorf("%v early", -late[0])
	}
	b.ReportMetric(float64(late[len(late)/2].Nanoseconds())/1000, "p50-µs")
	b.ReportMetric(float64(late[len(late)*99/100].Nanoseconds())/1000, "p99-µs")
	b.ReportMetric(float64(late[len(late)-1].Nanoseconds())/1000, "max-µs")
	if burnt == 0 && cpu > 0 {
		b.ReportMetric(float64(cpu.Nanoseconds())/1000/float64(len(late)), "cpu-µs/fire")
	}
	b.ReportMetric(0, "ns/op")
}

// instants is when the timers of one measurement are due.
func instants(rate int) []time.Time {
	start := time.Now().Add(500 * time.Millisecond)
	dues := make([]time.Time, rate*int(lateSpan/time.Second))
	for i := range dues {
		dues[i] = start.Add(time.Duration(i) * time.Second / time.Duration(rate))
	}
	return dues
}

func queueLateness(b *testing.B, armed, rate int, grid time.Duration) []time.Duration {
	b.Helper()
	q := NewQueue[int64](Options{Limit: 2_000_000, Accuracy: grid})
	far := time.Now().Add(time.Hour)
	for i := range armed {
		add(b, q, far.Add(time.Duration(i)), 0)
	}
	runtime.GC()
	dues := instants(rate)
	for _, due := range dues {
		add(b, q, due, nanos(due))
	}
	return drainQueue(b, q, len(dues))
}

// drainQueue runs a queue of due times until n have come out, and reports how late
// each was.
func drainQueue(b *testing.B, q *Queue[int64], n int) []time.Duration {
	b.Helper()
	late := make([]time.Duration, 0, n)
	ctx, stop := context.WithCancel(b.Context())
	defer stop()
	q.Run(ctx, func(batch []int64) {
		now := time.Now().UnixNano()
		for _, due := range batch {
			late = append(late, time.Duration(now-due))
		}
		if len(late) == n {
			stop()
		}
	})
	return late
}

func afterFuncLateness(armed, rate int) []time.Duration {
	timers := make([]*time.Timer, armed)
	for i := range timers {
		timers[i] = time.AfterFunc(time.Hour, func() {})
	}
	defer stopAll(timers)
	runtime.GC()
	dues := instants(rate)
	late := make([]time.Duration, len(dues))
	var fired sync.WaitGroup
	fired.Add(len(dues))
	for i, due := range dues {
		time.AfterFunc(time.Until(due), func() {
			late[i] = time.Since(due)
			fired.Done()
		})
	}
	fired.Wait()
	return late
}

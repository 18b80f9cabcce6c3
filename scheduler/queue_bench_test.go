package scheduler

import (
	"math/rand/v2"
	"testing"
	"time"
)

// benchTimers is how many timers are in place while one more is measured.
const benchTimers = 1_000_000

// far is random due times beyond the end of the benchmark.
func far() []time.Time {
	rnd := rand.New(rand.NewPCG(1, 5))
	start := time.Now().Add(time.Hour)
	dues := make([]time.Time, 1<<20)
	for i := range dues {
		dues[i] = start.Add(time.Duration(rnd.Int64N(int64(time.Hour))))
	}
	return dues
}

func filled(b *testing.B, dues []time.Time) (*Queue[int], []Timer) {
	b.Helper()
	q := NewQueue[int](Options{Limit: 2 * benchTimers})
	timers := make([]Timer, benchTimers)
	for i := range timers {
		timers[i] = add(b, q, dues[i], i)
	}
	return q, timers
}

// BenchmarkAdd grows a queue from nothing to a million, again and again.
func BenchmarkAdd(b *testing.B) {
	dues := far()
	b.Run("Queue", func(b *testing.B) {
		b.ReportAllocs()
		q := NewQueue[int](Options{})
		for i := 0; b.Loop(); i++ {
			if i%benchTimers == 0 {
				q = NewQueue[int](Options{})
			}
			add(b, q, dues[i%benchTimers], i)
		}
	})
	b.Run("AfterFunc", func(b *testing.B) {
		b.ReportAllocs()
		timers := make([]*time.Timer, 0, benchTimers)
		for i := 0; b.Loop(); i++ {
			if len(timers) == benchTimers {
				b.StopTimer()
				timers = stopAll(timers)
				b.StartTimer()
			}
			timers = append(timers, time.AfterFunc(time.Until(dues[i%benchTimers]), func() {}))
		}
		stopAll(timers)
	})
}

func stopAll(timers []*time.Timer) []*time.Timer {
	for _, t := range timers {
		t.Stop()
	}
	return timers[:0]
}

// BenchmarkCancel adds a timer and cancels another.
func BenchmarkCancel(b *testing.B) {
	dues := far()
	b.Run("Queue", func(b *testing.B) {
		q, timers := filled(b, dues)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			k := i * 7919 % benchTimers
			if !q.Cancel(timers[k]) {
				b.Fatal("stale handle")
			}
			timers[k] = add(b, q, dues[i%len(dues)], i)
		}
	})
	b.Run("AfterFunc", func(b *testing.B) {
		timers := afterFuncs(dues)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			k := i * 7919 % benchTimers
			timers[k].Stop()
			timers[k] = time.AfterFunc(time.Until(dues[i%len(dues)]), func() {})
		}
		stopAll(timers)
	})
}

func afterFuncs(dues []time.Time) []*time.Timer {
	timers := make([]*time.Timer, benchTimers)
	for i := range timers {
		timers[i] = time.AfterFunc(time.Until(dues[i]), func() {})
	}
	return timers
}

func BenchmarkReset(b *testing.B) {
	dues := far()
	b.Run("Queue", func(b *testing.B) {
		q, timers := filled(b, dues)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			q.Reset(timers[i*7919%benchTimers], dues[i%len(dues)])
		}
	})
	b.Run("AfterFunc", func(b *testing.B) {
		timers := afterFuncs(dues)
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			timers[i*7919%benchTimers].Reset(time.Until(dues[i%len(dues)]))
		}
		stopAll(timers)
	})
}

// BenchmarkPop empties a queue of a million in batches. time.AfterFunc has no
// counterpart that could be measured without its goroutines.
func BenchmarkPop(b *testing.B) {
	dues := far()
	end := nanos(time.Now().Add(3 * time.Hour))
	q, _ := filled(b, dues)
	batch := make([]int, 0, maxBatch)
	b.ReportAllocs()
	for popped := 0; b.Loop(); popped++ {
		if popped%maxBatch == 0 {
			if batch, _ = q.due(batch[:0], end); len(batch) < maxBatch {
				b.StopTimer()
				q, _ = filled(b, dues)
				b.StartTimer()
			}
		}
	}
}

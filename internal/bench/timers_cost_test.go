package main

import (
	"runtime"
	"testing"
	"time"
)

// What one more timer costs where a million are armed: to add, to cancel and to
// give another due time, and in memory. robfig, netresearch and go-quartz have no
// call for the third, so it is a cancellation and an addition.
func BenchmarkTimers(b *testing.B) {
	const armed = 1_000_000
	for _, c := range contenders {
		if c.name == "flowhost-go" {
			continue // it differs in nothing but how it fires
		}
		b.Run(c.label(armed), func(b *testing.B) {
			var costs timerCosts
			for b.Loop() {
				leaveNothing(b, func() { costs.measure(b, c, min(armed, c.most)) })
			}
			b.ReportMetric(costs.add.nanos(), "add-ns")
			b.ReportMetric(costs.cancel.nanos(), "cancel-ns")
			b.ReportMetric(costs.rearm.nanos(), "rearm-ns")
			b.ReportMetric(costs.bytes, "bytes/timer")
			b.ReportMetric(0, "ns/op")
		})
	}
}

type timerCosts struct {
	add, cancel, rearm tally
	bytes              float64
}

func (t *timerCosts) measure(b *testing.B, c contender, armed int) {
	b.Helper()
	more := armed / 10
	a, err := c.open(armed+more, func(int) {})
	if err != nil {
		b.Fatal(err)
	}
	defer a.stop()
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	later := hoursAway()
	before := heap()
	for n := range armed {
		must(a.arm(n, later(n)))
	}
	t.bytes = float64(heap()-before) / float64(armed)
	a.start()
	// Each timer once, in no order that a cache could know: the numbers of timers do
	// not divide by 7919.
	scattered := func(i int) int { return i * 7919 % armed }
	t.add.measure(more, func(i int) { must(a.arm(armed+i, later(scattered(i)))) })
	canceled := t.cancel.measure(more, func(i int) { must(a.cancel(scattered(i))) })
	t.rearm.measure(armed-canceled, func(i int) { must(a.rearm(scattered(canceled+i), later(i))) })
}

// How long it takes for one of a million overdue timers to come out. No peer can be
// asked for that without what it does to fire them.
func BenchmarkPop(b *testing.B) {
	const armed = 1_000_000
	var took time.Duration
	for b.Loop() {
		popped, all := 0, make(chan struct{})
		a, err := openQueue(armed, func(int) {
			if popped++; popped == armed {
				close(all)
			}
		})
		if err != nil {
			b.Fatal(err)
		}
		later := hoursAway()
		for n := range armed {
			if err := a.arm(n, later(n).Add(-4*time.Hour)); err != nil {
				b.Fatal(err)
			}
		}
		begin := time.Now()
		a.start()
		<-all
		took += time.Since(begin)
		a.stop()
	}
	b.ReportMetric(float64(took.Nanoseconds())/float64(b.N)/armed, "pop-ns")
	b.ReportMetric(0, "ns/op")
}

// tally is what calls cost.
type tally struct {
	calls   int
	took    time.Duration
	mallocs uint64
}

// measure makes calls, with 0, 1, 2 and so on, for a tenth of a second but no more
// than most, and states how many.
func (t *tally) measure(most int, call func(i int)) int {
	const long, batch = 100 * time.Millisecond, 16 // calls between two looks at the clock
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	calls := 0
	begin := time.Now()
	for calls < most && time.Since(begin) < long {
		for range min(batch, most-calls) {
			call(calls)
			calls++
		}
	}
	t.took += time.Since(begin)
	runtime.ReadMemStats(&after)
	t.calls += calls
	t.mallocs += after.Mallocs - before.Mallocs
	return calls
}

func (t *tally) nanos() float64 { return float64(t.took.Nanoseconds()) / float64(t.calls) }

func (t *tally) allocs() float64 { return float64(t.mallocs) / float64(t.calls) }

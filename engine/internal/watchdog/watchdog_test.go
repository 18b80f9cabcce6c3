package watchdog

import (
	"testing"
	"time"
)

// work takes so much time of a processor.
func work(d time.Duration) {
	for began := now(); now()-began < d; {
	}
}

// Only a turn that takes too much time of a processor is reported, with what it did last.
func TestWatchdog(t *testing.T) {
	t.Parallel()
	var alarms []Turn
	w := New(20*time.Millisecond, false, func(t Turn) { alarms = append(alarms, t) })
	turn := func(took time.Duration) {
		w.Begin("nothing")
		w.Doing("work", "run 1")
		work(took)
		w.End()
	}
	turn(0)
	if long, _ := w.Report(); long != 0 || len(alarms) != 0 {
		t.Errorf("a short turn is reported: %v", alarms)
	}
	turn(30 * time.Millisecond)
	turn(25 * time.Millisecond)
	long, longest := w.Report()
	if long != 2 || len(alarms) != 2 || longest.What != "work" || longest.Of != "run 1" || longest.Took < alarms[1].Took {
		t.Errorf("%d long turns, the longest %+v, alarms %+v", long, longest, alarms)
	}
}

// A turn that says nothing of what it does is measured once another one took long.
func TestSuspicion(t *testing.T) {
	t.Parallel()
	var alarms []Turn
	w := New(20*time.Millisecond, false, func(t Turn) { alarms = append(alarms, t) })
	for range 2 {
		w.Begin("something")
		work(30 * time.Millisecond)
		w.End()
	}
	if len(alarms) != 1 || alarms[0].What != "something" {
		t.Errorf("%+v", alarms)
	}
}

func BenchmarkTurn(b *testing.B) {
	w := New(time.Second, false, func(Turn) {})
	for b.Loop() {
		w.Begin("nothing")
		w.End()
	}
}

// Package watchdog notices when a loop takes too much time for one turn: everybody else
// waits meanwhile.
//
// It measures processor time where the system tells that of a thread, so that a machine
// whose processors are busy with something else causes no alarm. To ask for it costs half a
// microsecond, so the watchdog does that only while it is suspicious: when the turn says
// that it does something large, and for some time after a turn that took long by the clock
// on the wall. Of turns that take long now and then, it misses the first.
package watchdog

import (
	"runtime"
	"sync/atomic"
	"time"
)

// Turn is the longest turn that a Watchdog has seen, or one that was too long.
type Turn struct {
	Took time.Duration // of a processor
	What string        // the loop was doing
	Of   string        // to what; empty if that is not known
}

// Watchdog watches one loop, which calls all methods but Report.
type Watchdog struct {
	limit  time.Duration
	alarm  func(Turn)
	always bool // suspicious

	start     time.Time     // from which the others count
	began     time.Duration // 0: no turn has
	measured  bool          // since cpu
	cpu       time.Duration
	suspicion time.Duration // until when it is suspicious

	what    string
	of      string
	long    atomic.Int64
	longest atomic.Pointer[Turn]
}

// suspicious is how long a watchdog is after a turn that took long.
const suspicious = 10 * time.Second

// New makes a watchdog that calls alarm, on the loop, after each turn that took longer than
// the limit. It may be suspicious always.
func New(limit time.Duration, always bool, alarm func(Turn)) *Watchdog {
	return &Watchdog{limit: limit, alarm: alarm, always: always, start: time.Now()}
}

// Begin begins a turn.
func (w *Watchdog) Begin(what string) {
	w.what, w.of, w.began = what, "", time.Since(w.start)
	if w.always || w.began < w.suspicion {
		w.measure()
	}
}

// measure measures the turn from now on. The loop stays on its thread until End.
func (w *Watchdog) measure() {
	if !w.measured {
		runtime.LockOSThread()
		w.measured, w.cpu = true, now()
	}
}

// Doing says what the turn does from now on, which may be large. A turn that does several
// things is known by the last of them.
func (w *Watchdog) Doing(what, of string) {
	w.what, w.of = what, of
	w.measure()
}

// End ends a turn. Without one it does nothing.
func (w *Watchdog) End() {
	if w.began == 0 {
		return
	}
	passed := time.Since(w.start) - w.began
	w.began = 0
	if !w.measured {
		if passed > w.limit {
			w.suspicion = time.Since(w.start) + suspicious
		}
		return
	}
	took := now() - w.cpu
	w.measured = false
	runtime.UnlockOSThread()
	if took <= w.limit {
		return
	}
	w.suspicion = time.Since(w.start) + suspicious
	t := Turn{took, w.what, w.of}
	w.long.Add(1)
	if longest := w.longest.Load(); longest == nil || longest.Took < took {
		w.longest.Store(&t)
	}
	w.alarm(t)
}

// Report is how many turns were too long, and the longest of them.
func (w *Watchdog) Report() (long int64, longest Turn) {
	if t := w.longest.Load(); t != nil {
		longest = *t
	}
	return w.long.Load(), longest
}

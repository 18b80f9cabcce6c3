package hostile

import (
	"context"
	"fmt"
	"runtime"
	"runtime/metrics"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// mostStop is how much longer than in a quiet process anything else in it may be
// held up.
const mostStop = timeFactor * 250 * time.Millisecond

// Paces of the probes.
const (
	neighbourPace = 5 * time.Millisecond
	collectorPace = 20 * time.Millisecond
	timerPace     = 2 * time.Millisecond
)

// stops is the longest stop of each of those who share the attacker's process.
type stops struct {
	Neighbour time.Duration // from when a call of an honest module is due to its end
	Collector time.Duration // one collection, from when it is due
	World     time.Duration // one pause of all goroutines for the collector, as the runtime counts it
	Timers    time.Duration // from when a goroutine is to wake to when it does: what an API has at least
}

// most is the longer one of each.
func (s stops) most(o stops) stops {
	return stops{max(s.Neighbour, o.Neighbour), max(s.Collector, o.Collector), max(s.World, o.World), max(s.Timers, o.Timers)}
}

// beyond describes what is longer than in the quiet process by more than the bound.
func (s stops) beyond(quiet stops) (found []string) {
	for _, stop := range []struct {
		what       string
		took, base time.Duration
	}{
		{"a call of an honest module", s.Neighbour, quiet.Neighbour},
		{"a collection", s.Collector, quiet.Collector},
		{"a pause of the world", s.World, quiet.World},
		{"a timer", s.Timers, quiet.Timers},
	} {
		if stop.took > stop.base+mostStop {
			found = append(found, fmt.Sprintf("%s took %v, %v without the attack", stop.what, stop.took, stop.base))
		}
	}
	return found
}

// watch runs the probes beside an attack.
type watch struct {
	stops
	fault  error // of the honest calls
	pauses []uint64
	cancel context.CancelFunc
	probes sync.WaitGroup
}

// startWatch starts the probes. Each ends after so many beats, or without a number
// when the watch is stopped.
func startWatch(ctx context.Context, h *host.Host, honest run.Call, beats int) *watch {
	w := &watch{}
	ctx, w.cancel = context.WithCancel(ctx)
	w.pauses, _ = worldPauses()
	w.probes.Go(func() {
		w.Neighbour = longest(ctx, neighbourPace, beats, func() {
			result, err := h.Invoke(ctx, honest)
			if ctx.Err() == nil && (err != nil || string(result.Output) != "42") {
				w.fault = fmt.Errorf("an honest call beside it: %s %v, error %v", result.Outcome, result.Failure, err)
			}
		})
	})
	w.probes.Go(func() { w.Collector = longest(ctx, collectorPace, beats, runtime.GC) })
	w.probes.Go(func() { w.Timers = longest(ctx, timerPace, beats, func() {}) })
	return w
}

// end stops the probes and gives what they saw. What is under way counts as long
// as it has taken so far.
func (w *watch) end() (stops, error) {
	w.cancel()
	return w.wait()
}

// wait waits for the beats that were asked for.
func (w *watch) wait() (stops, error) {
	w.probes.Wait()
	w.cancel()
	after, bounds := worldPauses()
	for i := range after {
		if after[i] > w.pauses[i] {
			w.World = time.Duration(max(bounds[i], 0) * float64(time.Second)) // the lower bound of the bucket
		}
	}
	return w.stops, w.fault
}

// longest calls what at a pace and gives the longest time from when a call was due
// to its end, as a stopwatch sees it.
func longest(ctx context.Context, pace time.Duration, beats int, what func()) (worst time.Duration) {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for due := time.Now(); ; due = time.Now().Add(pace) {
		watch := stopwatch{due, processorTime()}
		timer.Reset(time.Until(due))
		select {
		case <-timer.C:
			what()
		case <-ctx.Done():
		}
		worst = max(worst, watch.stopped())
		if beats--; beats == 0 || ctx.Err() != nil {
			return worst
		}
	}
}

// worldPauses is the runtime's histogram of them.
func worldPauses() (counts []uint64, bounds []float64) {
	sample := []metrics.Sample{{Name: "/sched/pauses/total/gc:seconds"}}
	metrics.Read(sample)
	h := sample[0].Value.Float64Histogram()
	return h.Counts, h.Buckets
}

// calmBeats is how many of each probe make a measurement without an attack.
const calmBeats = 3

// stopwatch measures in the processor's time where that is less than the clock's:
// other processes of a busy machine do not count.
type stopwatch struct {
	clock     time.Time
	processor time.Duration
}

func startStopwatch() stopwatch { return stopwatch{time.Now(), processorTime()} }

// spent is for what computes: waits are not seen.
func (s stopwatch) spent() time.Duration {
	return min(time.Since(s.clock), processorTime()-s.processor)
}

// idleStop is how long a stop in which this process computes nothing may be taken
// for the machine's.
const idleStop = timeFactor * 5 * time.Second

// stopped is for what is held up, by what computes or by what waits for long.
func (s stopwatch) stopped() time.Duration {
	if took := time.Since(s.clock); took > idleStop {
		return took
	}
	return s.spent()
}

// TestWatch stops what a probe does for a while, and compares.
func TestWatch(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := 0
		worst := longest(t.Context(), time.Millisecond, 3, func() {
			if n++; n == 2 {
				time.Sleep(2 * idleStop)
			}
		})
		if worst != 2*idleStop || n != 3 {
			t.Errorf("%v after %d beats, want %v after 3", worst, n, 2*idleStop)
		}
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(2*idleStop, cancel)
		if worst := longest(ctx, time.Millisecond, 0, func() { <-ctx.Done() }); worst != 2*idleStop {
			t.Errorf("%v until it was stopped, want %v", worst, 2*idleStop)
		}
	})
	computes := func() {
		for began := processorTime(); processorTime()-began < 100*time.Millisecond; {
		}
	}
	if worst := longest(t.Context(), time.Millisecond, 2, computes); worst < 100*time.Millisecond {
		t.Errorf("%v for 100 ms of the processor", worst)
	}
	quiet := stops{Neighbour: time.Millisecond, Collector: mostStop}
	if found := (stops{Neighbour: mostStop, Collector: 2 * mostStop}).beyond(quiet); len(found) != 0 {
		t.Errorf("%q within the bound", found)
	}
	if found := (stops{Neighbour: mostStop + 2*time.Millisecond, World: mostStop}).beyond(quiet); len(found) != 1 {
		t.Errorf("%q, want the neighbour", found)
	}
}

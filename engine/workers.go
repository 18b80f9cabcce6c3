package engine

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
)

// workers are the goroutines that make attempts, each one at a time. There are as many as
// attempts are in flight, and a few that wait for the next one.
type workers struct {
	invoker Invoker
	log     *slog.Logger
	work    chan *attempt // to the workers that wait; nil ends one
	results chan result   // from them
	closed  chan struct{} // the loop has ended: nobody takes results
	stuck   atomic.Int32  // attempts that were given up and have not ended yet
	running sync.WaitGroup

	// What follows belongs to the loop.
	attempts int // in flight
	idle     int // workers that wait for an attempt
}

func newWorkers(config *Config) workers {
	return workers{
		invoker: config.Invoker, log: config.Log,
		work: make(chan *attempt, maxIdle), results: make(chan result, maxTurn), closed: make(chan struct{}),
	}
}

// maxIdle is how many workers wait for the next attempt.
const maxIdle = 256

// begin passes an attempt to a worker that waits, or to a new one.
func (w *workers) begin(a *attempt) {
	if w.idle > 0 {
		w.idle--
		w.work <- a // never blocks: the channel has room for all that wait
		return
	}
	w.running.Add(1)
	go w.worker(a)
}

// worker makes one attempt at a time. A worker whose attempt was given up ends, and nothing
// waits for it.
func (w *workers) worker(a *attempt) {
	for ; a != nil; a = <-w.work {
		r := w.invoke(a)
		if !a.decided.CompareAndSwap(false, true) {
			w.stuck.Add(-1)
			w.log.Warn("an attempt that was given up has ended", "run", a.call.Run, "task", a.call.Task, "attempt", a.call.Attempt)
			return
		}
		select {
		case w.results <- r:
		case <-w.closed:
			w.running.Done()
			return
		}
	}
	w.running.Done()
}

// returned notes that a worker has delivered its result and waits for the next attempt.
func (w *workers) returned() {
	if w.idle < maxIdle {
		w.idle++
		return
	}
	w.work <- nil
}

// stop ends the workers, those with an attempt once that has ended.
func (w *workers) stop() {
	close(w.closed)
	close(w.work)
}

// invoke turns a panic of the invoker into a lost attempt: one broken call must not take
// the host down.
func (w *workers) invoke(a *attempt) (r result) {
	defer func() {
		if panicked := recover(); panicked != nil {
			r = result{attempt: a, err: fmt.Errorf("the host panicked: %v", panicked)}
		}
	}()
	answer, err := w.invoker.Invoke(a.ctx, a.call)
	return result{attempt: a, Result: answer, err: err}
}

// attemptPlace is the computing place of an attempt, and its time: that stands still while
// the attempt waits for what others have.
type attemptPlace struct {
	places *fairq.Places
	clock  *clock
	place  fairq.Place

	mu       sync.Mutex
	waiting  run.WaitReason // empty while it computes
	since    time.Time      // when its time began to stand still; zero while it passes
	excluded time.Duration  // for how long it has stood still before
}

// Leave implements run.Place.
func (p *attemptPlace) Leave(w run.WaitReason) {
	p.wait(w)
	p.places.Leave(&p.place, w == run.WaitMemory)
}

// Return implements run.Place.
func (p *attemptPlace) Return(ctx context.Context) error {
	p.wait(run.WaitWorker)
	if err := p.places.Return(ctx, &p.place); err != nil {
		return err
	}
	p.wait("")
	return nil
}

// wait notes what the attempt waits for now.
func (p *attemptPlace) wait(w run.WaitReason) {
	now := p.clock.now()
	p.mu.Lock()
	defer p.mu.Unlock()
	stands := w != "" && !w.Timed()
	if !p.since.IsZero() && !stands {
		p.excluded += now.Sub(p.since)
		p.since = time.Time{}
	} else if p.since.IsZero() && stands {
		p.since = now
	}
	p.waiting = w
}

// stoodStill is for how long the attempt's time has not passed.
func (p *attemptPlace) stoodStill() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.since.IsZero() {
		return p.excluded
	}
	return p.excluded + p.clock.now().Sub(p.since)
}

// waitsFor is what keeps the attempt from computing, empty for nothing.
func (p *attemptPlace) waitsFor() run.WaitReason {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.waiting
}

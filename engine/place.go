package engine

import (
	"context"
	"sync"
	"time"

	"github.com/flowhost/flowhost/internal/fairq"
	"github.com/flowhost/flowhost/run"
)

// attemptPlace is the computing place of an attempt, and its time: that stands still while
// the attempt waits for what others have.
type attemptPlace struct {
	context.Context // of the attempt, with this as its place
	places          *fairq.Places
	clock           *clock
	place           fairq.Place

	mu       sync.Mutex
	waiting  run.WaitReason // empty while it computes
	since    time.Time      // when its time began to stand still; zero while it passes
	excluded time.Duration  // for how long it has stood still before
}

// Value implements context.Context.
func (p *attemptPlace) Value(key any) any {
	if key == (run.PlaceKey{}) {
		return p
	}
	return p.Context.Value(key)
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

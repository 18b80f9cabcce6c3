package scheduler

import (
	"context"
	"sync"
	"time"
)

// VirtualClock is a clock that moves only when its owner moves it. Queues on
// it do what they do on the wall clock, by the same code. It is safe for
// concurrent use.
type VirtualClock struct {
	mu       sync.Mutex
	wall     int64
	elapsed  time.Duration
	sleepers map[*virtualWaker]struct{}
}

// NewVirtualClock makes a clock with the time start.
func NewVirtualClock(start time.Time) *VirtualClock {
	return &VirtualClock{wall: nanos(start), sleepers: map[*virtualWaker]struct{}{}}
}

// Now is the clock's time, in UTC.
func (c *VirtualClock) Now() time.Time { return time.Unix(0, c.now().wall).UTC() }

func (c *VirtualClock) now() reading {
	c.mu.Lock()
	defer c.mu.Unlock()
	return reading{wall: c.wall, elapsed: c.elapsed}
}

// Advance lets time pass and wakes whoever sleeps on the clock, without waiting
// for what they do then.
func (c *VirtualClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass(d)
}

// Set puts the clock to t, forward or backward, as when the clock of a machine is
// set: no time passes. It wakes whoever sleeps on the clock, without waiting for
// what they do then.
func (c *VirtualClock) Set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wall = nanos(t)
	c.pass(0)
}

// reach lets time pass until the clock is at t or later.
func (c *VirtualClock) reach(t int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if t > c.wall {
		c.pass(time.Duration(t - c.wall))
	}
}

func (c *VirtualClock) pass(d time.Duration) {
	c.wall += int64(d)
	c.elapsed += d
	for w := range c.sleepers {
		w.wake()
	}
}

func (c *VirtualClock) newWaker(ctx context.Context) waker {
	w := &virtualWaker{VirtualClock: c, ctx: ctx, woken: make(chan struct{}, 1)}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sleepers[w] = struct{}{}
	return w
}

// virtualWaker sleeps until the clock moves.
type virtualWaker struct {
	*VirtualClock
	ctx   context.Context
	woken chan struct{}
}

func (w *virtualWaker) sleep(int64) {
	select {
	case <-w.ctx.Done():
	case <-w.woken:
	}
}

func (w *virtualWaker) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *virtualWaker) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.sleepers, w)
}

// leaper moves the clock itself instead of sleeping: a simulation.
type leaper struct{ *virtualWaker }

func (w leaper) sleep(until int64) { w.reach(until) }

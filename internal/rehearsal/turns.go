package rehearsal

import (
	"container/heap"
	"context"
	"errors"
	"runtime"
	"sync"
	"time"

	"github.com/flowhost/flowhost/engine"
	"github.com/flowhost/flowhost/run"
)

// turn is a call that is being played.
type turn struct {
	Turn
	attempt *engine.Attempt
	began   time.Time
	due     time.Time
	order   uint64 // in which it began
	place   int    // in the heap; -1 for one that hangs
	err     error
}

// turns are the calls that are being played.
type turns struct {
	playing map[*engine.Attempt]*turn
	heap    []*turn // those that end by themselves
	begun   uint64
}

// maxOver is how many calls end before the engine is let on: it bounds what it has
// to commit at once.
const maxOver = 64

// begin asks what the calls do that have begun since the last rest, and makes
// those that are real.
func (d *Director) begin(ctx context.Context) error {
	if len(d.begun) == 0 {
		return nil
	}
	now := d.Now()
	var real []*turn
	for i, a := range d.begun {
		t := &turn{Turn: d.config.Play(&a.Call, now), attempt: a, began: now, place: -1}
		d.begun[i] = nil
		d.turns.add(t, now)
		if t.Call != nil {
			real = append(real, t)
		}
	}
	d.begun = d.begun[:0]
	call(ctx, real)
	return context.Cause(ctx)
}

// call makes real calls, a few at once, and waits for all of them.
func call(ctx context.Context, turns []*turn) {
	var calling sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, t := range turns {
		free <- struct{}{}
		calling.Go(func() {
			defer func() { <-free }()
			t.Result, t.err = t.Call(ctx, t.attempt.Call)
		})
	}
	calling.Wait()
}

func (all *turns) add(t *turn, now time.Time) {
	if t.Result.Failure != nil {
		own := *t.Result.Failure // the engine says in it where the task stands
		t.Result.Failure = &own
	}
	all.begun++
	t.order, t.due = all.begun, now.Add(max(t.Takes, 0))
	all.playing[t.attempt] = t
	if !t.Hangs {
		heap.Push(all, t)
	}
}

// next is when the first call ends by itself.
func (all *turns) next() (time.Time, bool) {
	if len(all.heap) == 0 {
		return time.Time{}, false
	}
	return all.heap[0].due, true
}

// over takes out what has ended by now: first those that were told to, then those
// that are done.
func (d *Director) over(now time.Time) []engine.CallResult {
	var ended []engine.CallResult
	for _, i := range d.interrupted {
		t := d.turns.playing[i.attempt]
		if t == nil {
			continue
		}
		t.Result, t.err = stopped(i.cause)
		ended = append(ended, d.end(t, now))
	}
	d.interrupted = d.interrupted[:0]
	for len(ended) < maxOver {
		if due, ok := d.turns.next(); !ok || due.After(now) {
			break
		}
		ended = append(ended, d.end(d.turns.heap[0], now))
	}
	return ended
}

// end takes a call out, and tells of it.
func (d *Director) end(t *turn, now time.Time) engine.CallResult {
	ended := d.turns.end(t, now)
	if d.config.Ended != nil {
		result := ended.Result
		if ended.Err != nil {
			result.Outcome = run.OutcomeLost
		}
		d.config.Ended(&t.attempt.Call, t.began, result)
	}
	return ended
}

func (all *turns) end(t *turn, now time.Time) engine.CallResult {
	delete(all.playing, t.attempt)
	if t.place >= 0 {
		heap.Remove(all, t.place)
	}
	t.Result.Duration = now.Sub(t.began)
	return engine.CallResult{Attempt: t.attempt, Result: t.Result, Err: t.err}
}

// stopped is how a call ends that is told to, as a host has it.
func stopped(cause error) (run.Result, error) {
	switch {
	case errors.Is(cause, run.ErrDeadline):
		return failed(&run.Failure{
			Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout, Message: run.ErrDeadline.Error(), Retryable: true,
		}), nil
	case errors.Is(cause, run.ErrCanceled):
		return failed(&run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: cause.Error()}), nil
	}
	return run.Result{}, cause
}

func failed(f *run.Failure) run.Result { return run.Result{Outcome: f.Outcome, Failure: f} }

// Len is part of heap.Interface, as are those that follow.
func (all *turns) Len() int { return len(all.heap) }

// Less lets calls that end at one instant end in the order in which they began.
func (all *turns) Less(i, j int) bool {
	a, b := all.heap[i], all.heap[j]
	if by := a.due.Compare(b.due); by != 0 {
		return by < 0
	}
	return a.order < b.order
}

// Swap keeps the places.
func (all *turns) Swap(i, j int) {
	all.heap[i], all.heap[j] = all.heap[j], all.heap[i]
	all.heap[i].place, all.heap[j].place = i, j
}

// Push adds a *turn.
func (all *turns) Push(x any) {
	t := x.(*turn)
	t.place = len(all.heap)
	all.heap = append(all.heap, t)
}

// Pop takes out the last one.
func (all *turns) Pop() any {
	last := len(all.heap) - 1
	t := all.heap[last]
	all.heap[last] = nil
	all.heap = all.heap[:last]
	t.place = -1
	return t
}

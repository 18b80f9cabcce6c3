package virtual

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

// pendingCall is a call that has begun and not ended.
type pendingCall struct {
	ScriptedCall
	attempt *engine.Attempt
	began   time.Time
	due     time.Time     // when it ends, or begins to wait
	waits   time.Duration // from then on; 0: it has begun to, or never does
	order   uint64        // in which it began
	place   int           // in the heap; -1 for one that hangs
	err     error
}

// pendingCalls are the calls that have begun and not ended.
type pendingCalls struct {
	open  map[*engine.Attempt]*pendingCall
	heap  []*pendingCall // those that end by themselves
	begun uint64
}

// maxOver is how many calls end before the engine continues: it bounds the size of
// one commit.
const maxOver = 64

// begin asks the script about the calls that have begun since the engine was idle
// last, and makes the real ones.
func (r *Runner) begin(ctx context.Context) error {
	if len(r.begun) == 0 {
		return nil
	}
	now := r.Now()
	var real []*pendingCall
	for i, a := range r.begun {
		t := &pendingCall{ScriptedCall: r.config.Script(&a.Call, now), attempt: a, began: now, place: -1}
		r.begun[i] = nil
		r.pending.add(t, now)
		if t.Call != nil {
			real = append(real, t)
		}
	}
	r.begun = r.begun[:0]
	call(ctx, real)
	return context.Cause(ctx)
}

// call makes real calls, a few concurrently, and waits for all of them.
func call(ctx context.Context, calls []*pendingCall) {
	var calling sync.WaitGroup
	free := make(chan struct{}, runtime.GOMAXPROCS(0))
	for _, t := range calls {
		free <- struct{}{}
		calling.Go(func() {
			defer func() { <-free }()
			t.Result, t.err = t.Call(ctx, t.attempt.Call)
		})
	}
	calling.Wait()
}

func (all *pendingCalls) add(t *pendingCall, now time.Time) {
	if t.Result.Failure != nil {
		own := *t.Result.Failure // the engine adds the place of the task to it
		t.Result.Failure = &own
	}
	all.begun++
	t.waits = min(max(t.Waits, 0), max(t.Takes, 0))
	t.order, t.due = all.begun, now.Add(max(t.Takes, 0)-t.waits)
	all.open[t.attempt] = t
	if !t.Hangs {
		heap.Push(all, t)
	}
}

// next is when the first call ends by itself, or begins to wait.
func (all *pendingCalls) next() (time.Time, bool) {
	if len(all.heap) == 0 {
		return time.Time{}, false
	}
	return all.heap[0].due, true
}

// over removes the calls that have ended by now: first the interrupted ones, then
// those that are done. It reports whether calls have begun to wait.
func (r *Runner) over(now time.Time) (ended []engine.CallResult, waiting bool) {
	for _, i := range r.interrupted {
		t := r.pending.open[i.attempt]
		if t == nil {
			continue
		}
		t.Result, t.err = stopped(i.cause)
		ended = append(ended, r.end(t, now))
	}
	r.interrupted = r.interrupted[:0]
	for len(ended) < maxOver {
		if due, ok := r.pending.next(); !ok || due.After(now) {
			break
		}
		t := r.pending.heap[0]
		if t.waits > 0 {
			t.attempt.Wait()
			t.due, t.waits, waiting = t.due.Add(t.waits), 0, true
			heap.Fix(&r.pending, 0)
			continue
		}
		ended = append(ended, r.end(t, now))
	}
	return ended, waiting
}

// end removes a call and reports it to [Config.Ended].
func (r *Runner) end(t *pendingCall, now time.Time) engine.CallResult {
	ended := r.pending.end(t, now)
	if r.config.Ended != nil {
		result := ended.Result
		if ended.Err != nil {
			result.Outcome = run.OutcomeLost
		}
		r.config.Ended(&t.attempt.Call, t.began, result)
	}
	return ended
}

func (all *pendingCalls) end(t *pendingCall, now time.Time) engine.CallResult {
	delete(all.open, t.attempt)
	if t.place >= 0 {
		heap.Remove(all, t.place)
	}
	t.Result.Duration = now.Sub(t.began)
	return engine.CallResult{Attempt: t.attempt, Result: t.Result, Err: t.err}
}

// stopped is the result of an interrupted call, as a host returns it.
func stopped(cause error) (run.Result, error) {
	switch {
	case errors.Is(cause, run.ErrDeadline):
		return failed(&run.Failure{
			Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout, Message: cause.Error(), Retryable: true,
		}), nil
	case errors.Is(cause, run.ErrCanceled):
		return failed(&run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: cause.Error()}), nil
	}
	return run.Result{}, cause
}

func failed(f *run.Failure) run.Result { return run.Result{Outcome: f.Outcome, Failure: f} }

// Len is part of heap.Interface, as are those that follow.
func (all *pendingCalls) Len() int { return len(all.heap) }

// Less lets calls that end at one instant end in the order in which they began.
func (all *pendingCalls) Less(i, j int) bool {
	a, b := all.heap[i], all.heap[j]
	if by := a.due.Compare(b.due); by != 0 {
		return by < 0
	}
	return a.order < b.order
}

// Swap keeps the places.
func (all *pendingCalls) Swap(i, j int) {
	all.heap[i], all.heap[j] = all.heap[j], all.heap[i]
	all.heap[i].place, all.heap[j].place = i, j
}

// Push adds a *pendingCall.
func (all *pendingCalls) Push(x any) {
	t := x.(*pendingCall)
	t.place = len(all.heap)
	all.heap = append(all.heap, t)
}

// Pop takes out the last one.
func (all *pendingCalls) Pop() any {
	last := len(all.heap) - 1
	t := all.heap[last]
	all.heap[last] = nil
	all.heap = all.heap[:last]
	t.place = -1
	return t
}

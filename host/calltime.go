package host

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/run"
)

// callTime is the context of a call, which ends when the time of the call is over. That
// stands still while the call waits for what other calls have: then its deadline moves.
// Its methods are called on the call's goroutine, those of context.Context on any.
type callTime struct {
	context.Context
	cancel   context.CancelCauseFunc
	place    run.Place
	timer    *time.Timer
	deadline atomic.Pointer[time.Time]

	since time.Time     // the call waits; zero while it computes
	timed bool          // and its time passes
	stood time.Duration // in all
}

// newCallTime gives a call that much time. The caller calls stop when it has ended.
func newCallTime(ctx context.Context, timeout time.Duration) *callTime {
	t := &callTime{place: run.PlaceOf(ctx)}
	t.Context, t.cancel = context.WithCancelCause(ctx)
	deadline := time.Now().Add(timeout)
	t.deadline.Store(&deadline)
	t.timer = time.AfterFunc(timeout, func() { t.cancel(run.ErrDeadline) })
	return t
}

type callTimeKey struct{}

// timeOf is the time of the call that a context belongs to, nil for none.
func timeOf(ctx context.Context) *callTime {
	t, _ := ctx.Value(callTimeKey{}).(*callTime)
	return t
}

// Value implements context.Context.
func (t *callTime) Value(key any) any {
	if key == (callTimeKey{}) {
		return t
	}
	return t.Context.Value(key)
}

// Deadline implements context.Context: the present one.
func (t *callTime) Deadline() (time.Time, bool) {
	own := *t.deadline.Load()
	if outer, limited := t.Context.Deadline(); limited && outer.Before(own) {
		return outer, true
	}
	return own, true
}

func (t *callTime) stop() {
	t.timer.Stop()
	t.cancel(nil)
}

// leave lets others compute while the call waits. No call has nil.
func (t *callTime) leave(w run.WaitReason) {
	if t == nil {
		return
	}
	t.since, t.timed = time.Now(), w.Timed()
	if !t.timed {
		t.timer.Stop()
	}
	t.place.Leave(w)
}

// back waits until the call may compute again. It fails with the cause with which the
// call's context ended.
func (t *callTime) back() error {
	if t == nil {
		return nil
	}
	if t.timed {
		if !t.timer.Stop() {
			return context.Cause(t)
		}
		t.since = time.Now()
	}
	err := t.place.Return(t.Context)
	stood := time.Since(t.since)
	t.stood += stood
	t.since = time.Time{}
	deadline := t.deadline.Load().Add(stood)
	t.deadline.Store(&deadline)
	t.timer.Reset(time.Until(deadline))
	return err
}

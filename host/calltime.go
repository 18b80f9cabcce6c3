package host

import (
	"context"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/flowhost/flowhost/run"
)

// callTime is the context of a call. It ends with the caller's context, when the host
// closes, and when the time of the call is over. That stands still while the call waits for
// what other calls have: then its deadline moves.
//
// A guest that computes asks it now and then whether it has ended. So there is no timer,
// and neither of the other two contexts knows of it, until somebody waits for its end.
// Its methods are called on the call's goroutine, those of context.Context on any.
type callTime struct {
	caller context.Context
	life   context.Context // of the host
	place  run.Place
	guest  *invocation // of the code that runs; nil before

	began    time.Time
	limit    int64        // after it began, in nanoseconds: when the caller's time is over
	deadline atomic.Int64 // the same of the call's own; while it stands still, what it was
	silence  atomic.Int64 // the same: when the guest has been silent for too long
	beat     time.Duration
	stands   atomic.Bool
	over     atomic.Pointer[error] // the cause, once it has ended

	mu     sync.Mutex
	done   chan struct{} // nil until somebody waits, as are the following
	timer  *time.Timer
	unhook [2]func() bool // from the caller's context and the host's

	since time.Time     // the call waits; zero while it computes
	timed bool          // and its time passes
	stood time.Duration // in all
}

// begin gives a call that much time, in which the guest must be heard every beat; 0: it may be
// silent. The caller calls stop when it has ended.
func (t *callTime) begin(caller, life context.Context, timeout, beat time.Duration) {
	t.caller, t.life, t.place = caller, life, run.PlaceOf(caller)
	t.began, t.limit = time.Now(), math.MaxInt64
	t.deadline.Store(int64(timeout))
	t.beat = beat
	t.heard()
	if at, limited := caller.Deadline(); limited {
		t.limit = int64(at.Sub(t.began))
	}
}

// heard has the guest be silent for another while.
func (t *callTime) heard() {
	if t.beat > 0 {
		t.silence.Store(int64(time.Since(t.began) + t.beat))
	} else {
		t.silence.Store(math.MaxInt64)
	}
}

type callTimeKey struct{}

// timeOf is the time of the call that a context belongs to, nil for none.
func timeOf(ctx context.Context) *callTime {
	t, _ := ctx.Value(callTimeKey{}).(*callTime)
	return t
}

// Value implements context.Context.
func (t *callTime) Value(key any) any {
	switch key.(type) {
	case callTimeKey:
		return t
	case invocationKey:
		return t.guest
	}
	return t.caller.Value(key)
}

// Deadline implements context.Context: the present one.
func (t *callTime) Deadline() (time.Time, bool) {
	return t.began.Add(time.Duration(min(t.deadline.Load(), t.limit))), true
}

// Err implements context.Context. It gives the cause: package context finds none in
// contexts of other packages.
func (t *callTime) Err() error {
	if over := t.over.Load(); over != nil {
		return *over
	}
	now := int64(time.Since(t.began))
	switch {
	case t.caller.Err() != nil:
		return t.end(context.Cause(t.caller))
	case t.life.Err() != nil:
		return t.end(context.Cause(t.life))
	case now >= t.limit, now >= t.deadline.Load() && !t.stands.Load():
		return t.end(run.ErrDeadline)
	case now >= t.silence.Load() && !t.stands.Load():
		return t.end(run.ErrSilent)
	}
	return nil
}

// end ends it, unless it has ended, and gives the cause.
func (t *callTime) end(cause error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.over.CompareAndSwap(nil, &cause) && t.done != nil {
		close(t.done)
	}
	return *t.over.Load()
}

// Done implements context.Context. The first to ask has the end watched for.
func (t *callTime) Done() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done != nil {
		return t.done
	}
	t.done = make(chan struct{})
	if t.over.Load() != nil {
		close(t.done)
		return t.done
	}
	t.timer = time.AfterFunc(t.left(), t.look)
	t.unhook = [2]func() bool{context.AfterFunc(t.caller, t.look), context.AfterFunc(t.life, t.look)}
	return t.done
}

// left is the time until the deadline, or until the guest must be heard.
func (t *callTime) left() time.Duration {
	return time.Duration(min(t.deadline.Load(), t.silence.Load(), t.limit)) - time.Since(t.began)
}

// look ends it if it is time for that.
func (t *callTime) look() {
	if t.Err() == nil && !t.stands.Load() {
		t.alarm(t.left()) // the deadline has moved
	}
}

// alarm has a timer, if there is one, look in so much time.
func (t *callTime) alarm(in time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Reset(in)
	}
}

// stop frees what waiting for the end has taken, and reports whether nobody has waited, so
// that nobody knows of this context any more.
func (t *callTime) stop() (unknown bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.done == nil {
		return true
	}
	if t.timer != nil {
		t.timer.Stop()
		t.timer = nil
		t.unhook[0]()
		t.unhook[1]()
	}
	if t.over.CompareAndSwap(nil, &errEnded) {
		close(t.done)
	}
	return false
}

// errEnded is the end of a context whose call has ended by itself.
var errEnded error = context.Canceled

// causeOf is why a context has ended, nil while it has not.
func causeOf(ctx context.Context) error {
	if t, ok := ctx.(*callTime); ok {
		return t.Err()
	}
	return context.Cause(ctx)
}

// leave lets others compute while the call waits. No call has nil.
func (t *callTime) leave(w run.WaitReason) {
	if t == nil {
		return
	}
	t.since, t.timed = time.Now(), w.Timed()
	if !t.timed {
		t.stands.Store(true)
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
		if t.left() <= 0 {
			return t.Err()
		}
		t.stands.Store(true)
		t.since = time.Now()
	}
	err := t.place.Return(t)
	stood := time.Since(t.since)
	t.stood += stood
	t.since = time.Time{}
	t.deadline.Add(int64(stood))
	if t.beat > 0 {
		t.silence.Add(int64(stood))
	}
	t.stands.Store(false)
	t.alarm(t.left())
	return err
}

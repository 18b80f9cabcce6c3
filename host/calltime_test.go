package host

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// TestContextOfACallEnds has it end in each way, seen by those who ask and by those who
// wait, on contexts of its own and derived ones.
func TestContextOfACallEnds(t *testing.T) {
	gone, closed := errors.New("gone"), errors.New("closed")
	for name, c := range map[string]struct {
		end  func(cancel, closing context.CancelCauseFunc)
		want error
	}{
		"caller":   {func(cancel, _ context.CancelCauseFunc) { cancel(gone) }, gone},
		"host":     {func(_, closing context.CancelCauseFunc) { closing(closed) }, closed},
		"deadline": {func(_, _ context.CancelCauseFunc) { time.Sleep(time.Second) }, run.ErrDeadline},
	} {
		for _, waits := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				caller, cancel := context.WithCancelCause(t.Context())
				life, closing := context.WithCancelCause(t.Context())
				own := new(callTime)
				own.begin(caller, life, time.Second, 0)
				var derived context.Context
				if waits {
					var stop context.CancelFunc
					derived, stop = context.WithCancel(own)
					defer stop()
				}
				time.Sleep(time.Second - 1)
				if own.Err() != nil || ended(own) || causeOf(own) != nil {
					t.Fatalf("%s: ended at once: %v", name, own.Err())
				}
				c.end(cancel, closing)
				if waits {
					<-own.Done()
					<-derived.Done()
				} else if !ended(own) {
					t.Errorf("%s: it goes on", name)
				}
				cancel(errors.New("later"))
				closing(errors.New("later"))
				if !ended(own) || !errors.Is(own.Err(), c.want) || !errors.Is(causeOf(own), c.want) {
					t.Errorf("%s: %v, want %v", name, causeOf(own), c.want)
				}
				select {
				case <-own.Done():
				default:
					t.Errorf("%s: whoever waits from now on would wait forever", name)
				}
				if own.stop() {
					t.Errorf("%s: somebody has waited, and it may be used again", name)
				}
			})
		}
	}
}

// A caller's own deadline counts, and does not move.
func TestContextOfACallHasTheEarlierDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		caller, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		own := new(callTime)
		own.begin(caller, t.Context(), time.Minute, 0)
		if deadline, _ := own.Deadline(); time.Until(deadline) != time.Second {
			t.Errorf("%v", time.Until(deadline))
		}
		own.leave(run.WaitMemory)
		time.Sleep(999 * time.Millisecond)
		if err := own.back(); err != nil || ended(own) {
			t.Error(err)
		}
		time.Sleep(time.Millisecond)
		synctest.Wait()
		if !ended(own) || !own.stop() {
			t.Error("it goes on, or is known to somebody")
		}
	})
}

// Time that passes in a sleep of the guest counts, and ends the call while it waits.
func TestContextOfACallEndsInASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := new(callTime)
		own.begin(t.Context(), t.Context(), time.Second, 0)
		defer own.stop()
		own.leave(run.WaitSleep)
		<-own.Done()
		if err := own.back(); !errors.Is(err, run.ErrDeadline) {
			t.Error(err)
		}
	})
}

// A call that has ended frees those who wait for its context, and is not used again.
func TestContextOfACallThatHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		own := new(callTime)
		own.begin(t.Context(), t.Context(), time.Second, 0)
		derived, cancel := context.WithCancel(own)
		defer cancel()
		if own.stop() {
			t.Error("a derived context knows it")
		}
		<-derived.Done()
		if !errors.Is(own.Err(), context.Canceled) {
			t.Error(own.Err())
		}
	})
}

// A guest must be heard now and then: what it says lets it be silent for another while, and
// waiting for what other calls have does not count.
func TestContextOfASilentCallEnds(t *testing.T) {
	for _, waits := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			own := new(callTime)
			own.begin(t.Context(), t.Context(), time.Hour, time.Minute)
			defer own.stop()
			if waits {
				own.Done()
			}
			for range 5 {
				time.Sleep(time.Minute - 1)
				if ended(own) {
					t.Fatal("it ended before it was silent for too long")
				}
				own.heard()
			}
			time.Sleep(30 * time.Second)
			own.leave(run.WaitMemory)
			time.Sleep(time.Hour)
			if err := own.back(); err != nil {
				t.Error(err)
			}
			time.Sleep(30*time.Second - time.Nanosecond)
			synctest.Wait()
			if ended(own) {
				t.Error("the wait was counted")
			}
			time.Sleep(time.Nanosecond)
			synctest.Wait()
			if !ended(own) || !errors.Is(own.Err(), run.ErrSilent) {
				t.Errorf("ended with %v", own.Err())
			}
		})
	}
}

// A heartbeat that was performed is heard, and no other operation.
func TestHeartbeatsAreHeard(t *testing.T) {
	for kind, heard := range map[string]bool{access.KindHeartbeat: true, access.KindKVGet: false} {
		for _, fault := range []*access.Fault{nil, {Code: access.CodeBudget}} {
			synctest.Test(t, func(t *testing.T) {
				own := new(callTime)
				own.begin(t.Context(), t.Context(), time.Hour, time.Minute)
				defer own.stop()
				inv := &invocation{context: own}
				time.Sleep(50 * time.Second)
				inv.noteOperation(door.Report{Operation: &access.Operation{Kind: kind}, Answer: &access.Answer{Fault: fault}})
				time.Sleep(50 * time.Second)
				if want := heard && fault == nil; ended(own) == want {
					t.Errorf("%s %v: heard %t, want %t", kind, fault, !want, want)
				}
			})
		}
	}
}

package host

import (
	"context"
	"errors"
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk/abi"
)

// asking is the call of a guest that has asked whether it should stop, with that grace.
func asking(t *testing.T, length time.Duration) *invocation {
	t.Helper()
	inv := newInvocation(&run.Call{}, ABIFlowhost, "f", run.Limits{Output: 1000, Log: 1000})
	inv.grace = grace{host: granting(t, length), open: true, asked: true}
	return inv
}

// granting is a host that grants that time.
func granting(t *testing.T, length time.Duration) *Host {
	t.Helper()
	h := &Host{life: t.Context()}
	h.tuning.Store(&Tuning{Grace: length})
	return h
}

func TestGraceBeginsWhenItIsNoticed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inv := asking(t, time.Second)
		ctx, cancel := context.WithCancelCause(t.Context())
		look := func(over bool, left int64) {
			t.Helper()
			if got := inv.over(ctx); got != over {
				t.Errorf("over: %t", got)
			}
			if got := answerShouldStop(ctx, inv, nil, nil); got != left {
				t.Errorf("should_stop answers %d, want %d", got, left)
			}
		}
		look(false, 0)
		cancel(fmt.Errorf("%w: not needed", run.ErrCanceled))
		time.Sleep(time.Hour) // in which the guest was not looked at
		look(false, 1000)
		time.Sleep(600 * time.Millisecond)
		look(false, 400)
		time.Sleep(400*time.Millisecond - 1)
		look(false, 1)
		time.Sleep(time.Nanosecond)
		look(true, 1)
	})
}

func TestWhatHasNoGrace(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cause error
		grace grace
	}{
		"a guest that cannot ask":   {run.ErrCanceled, grace{open: true}},
		"a host that grants none":   {run.ErrCanceled, grace{host: granting(t, 0), open: true}},
		"a call that has not begun": {run.ErrCanceled, grace{host: granting(t, time.Hour)}},
		"the run's deadline":        {run.ErrDeadline, grace{host: granting(t, time.Hour), open: true}},
		"a host that stops":         {ErrClosed, grace{host: granting(t, time.Hour), open: true}},
		"an engine that stops":      {errors.New("stop"), grace{host: granting(t, time.Hour), open: true}},
		"a context without a cause": {nil, grace{host: granting(t, time.Hour), open: true}},
	} {
		inv := asking(t, 0)
		inv.grace = c.grace
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(c.cause)
		if !inv.over(ctx) || inv.grace.begun() || inv.grace.ask() != 0 {
			t.Errorf("%s: %+v", name, inv.grace)
		}
	}
}

// Neither the deadline nor the host waits for it.
func TestGraceIsCutShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		timed, release := context.WithTimeoutCause(t.Context(), time.Second, run.ErrDeadline)
		defer release()
		ctx, cancel := context.WithCancelCause(timed)
		cancel(run.ErrCanceled)
		inv := asking(t, time.Hour)
		if inv.over(ctx) || inv.grace.ask() != 1000 {
			t.Errorf("before the deadline: %+v", inv.grace)
		}
		time.Sleep(time.Second)
		if !inv.over(ctx) || !inv.grace.begun() {
			t.Errorf("after the deadline: %+v", inv.grace)
		}

		inv = asking(t, time.Hour)
		var end context.CancelFunc
		inv.grace.host.life, end = context.WithCancel(t.Context())
		ctx, cancel = context.WithCancelCause(t.Context())
		cancel(run.ErrCanceled)
		if inv.over(ctx) {
			t.Error("over before the host ends")
		}
		end()
		if !inv.over(ctx) {
			t.Error("the host waits")
		}
	})
}

// A guest that has not asked yet has a moment to do so, and the whole grace once it has.
func TestGraceOfAGuestThatHasNotAsked(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		grace, asks, ends time.Duration // after the cancellation; asks 0: never
	}{
		"never":              {time.Hour, 0, askTime},
		"never, short grace": {askTime / 2, 0, askTime / 2},
		"soon":               {time.Minute, askTime - time.Millisecond, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				inv := asking(t, c.grace)
				inv.grace.asked = false
				ctx, cancel := context.WithCancelCause(t.Context())
				if inv.over(ctx) {
					t.Fatal("over before it is canceled")
				}
				cancel(run.ErrCanceled)
				began := time.Now()
				lasts := func(until time.Duration) {
					t.Helper()
					for !inv.over(ctx) && time.Since(began) < until {
						time.Sleep(min(time.Millisecond, until-time.Since(began)))
					}
				}
				if c.asks > 0 {
					lasts(c.asks)
					inv.grace.ask()
				}
				lasts(2 * c.ends)
				if took := time.Since(began); took != c.ends {
					t.Errorf("it was over after %v, want %v", took, c.ends)
				}
			})
		})
	}
}

func TestLeftFitsIntoTheAnswer(t *testing.T) {
	t.Parallel()
	inv := asking(t, math.MaxInt64)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(run.ErrCanceled)
	if inv.over(ctx) || inv.grace.ask() != math.MaxInt32 {
		t.Errorf("%d left of %v", inv.grace.ask(), inv.grace.host.tuning.Load().Grace)
	}
}

// A guest that sleeps while it is canceled is woken, its time up, and cannot wait
// for much longer than a moment from then on.
func TestSleepOfACanceledCall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		inv := asking(t, time.Second)
		time.AfterFunc(time.Minute, func() { cancel(run.ErrCanceled) })
		for _, c := range []struct{ sleep, takes time.Duration }{
			{time.Second, time.Second},
			{time.Hour, time.Minute - time.Second + maxNap},
			{time.Hour, maxNap},
			{maxNap / 2, maxNap / 2},
			{0, 0},
		} {
			began, elapsed := time.Now(), inv.clock.elapsed
			inv.sleep(ctx, c.sleep)
			if took, moved := time.Since(began), inv.clock.elapsed-elapsed; took != c.takes || moved != c.sleep {
				t.Errorf("%v took %v, want %v; the guest's clock moved by %v", c.sleep, took, c.takes, moved)
			}
		}
		time.Sleep(time.Second)
		defer func() {
			if r := recover(); r != errInterrupted {
				t.Errorf("recovered %v", r)
			}
		}()
		inv.sleep(ctx, time.Hour)
		t.Error("sleep came back after the grace")
	})
}

// What a guest made of its grace is told in the failure of the call.
func TestEndOfACanceledCall(t *testing.T) {
	t.Parallel()
	details := []byte(`{"done":7}`)
	for name, c := range map[string]struct {
		status  int32
		err     error
		failure *abi.Failure
		unasked bool
		message string
		details string
	}{
		"an output":      {message: "canceled: why"},
		"what it heard":  {status: 1, failure: &abi.Failure{Message: "context canceled", Details: details}, message: "canceled: why"},
		"a failure":      {status: 1, failure: &abi.Failure{Code: "x", Message: "half", Retryable: true, Details: details}, message: "canceled: why: x: half", details: string(details)},
		"without a code": {status: 1, failure: &abi.Failure{Message: "half"}, message: "canceled: why: half"},
		"denied":         {failure: &abi.Failure{Code: abi.CodeDenied, Message: "no"}, message: "canceled: why: denied: no"},
		"a status":       {status: 4, message: "canceled: why: status_4: function f returned 4"},
		"a trap":         {err: &trapError{reason: "unreachable"}, message: "canceled: why: trap: unreachable"},
		"fuel":           {err: errFuel, message: "canceled: why: fuel: the call's fuel is used up, the limit of the call is 0 units"},
		"no end":         {err: errInterrupted, failure: &abi.Failure{Message: "half"}, message: "canceled: why; the guest did not end by itself within 1.5s"},
		"no question":    {err: errInterrupted, unasked: true, message: "canceled: why; the guest never asked whether to stop"},
	} {
		synctest.Test(t, func(t *testing.T) {
			inv := asking(t, time.Hour)
			inv.grace.asked = !c.unasked
			inv.output = []byte("7")
			ctx, cancel := context.WithCancelCause(t.Context())
			cancel(fmt.Errorf("%w: why", run.ErrCanceled))
			inv.over(ctx)
			time.Sleep(1500 * time.Millisecond)
			inv.failure = c.failure
			result, err := inv.conclude(ctx, c.status, c.err)
			if err != nil || result.Outcome != run.OutcomeCanceled || result.Output != nil {
				t.Fatalf("%s: %s %s, %v", name, result.Outcome, result.Output, err)
			}
			want := run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: c.message}
			if got := *result.Failure; got.Outcome != want.Outcome || got.Code != want.Code || got.Message != want.Message ||
				got.Retryable || got.RetryAfter != 0 || string(got.Details) != c.details {
				t.Errorf("%s: %+v", name, got)
			}
		})
	}
}

// A call that is done before anybody has noticed has succeeded; one that fails has
// failed of it, as far as one can tell.
func TestCancelAtTheVeryEnd(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(run.ErrCanceled)
	inv := asking(t, time.Hour)
	if result, err := inv.conclude(ctx, 0, nil); err != nil || result.Outcome != run.OutcomeSucceeded {
		t.Errorf("%+v, %v", result, err)
	}
	for _, length := range []time.Duration{0, time.Hour} {
		inv = asking(t, length)
		inv.failure = &abi.Failure{Message: "half"}
		if result, err := inv.conclude(ctx, 1, nil); err != nil || result.Outcome != run.OutcomeCanceled {
			t.Errorf("%+v, %v", result, err)
		}
	}
}

package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// canceler is a host that cancels each call a moment after its guest has said
// "begun", or at once.
type canceler struct {
	*host.Host
	calls sync.Map // context.CancelCauseFunc by idempotency key
}

// moment is enough for a guest to be in the middle of what it does.
const moment = 20 * time.Millisecond

var errNotNeeded = fmt.Errorf("%w: not needed", run.ErrCanceled)

func newCanceler(t testing.TB, config host.Config) *canceler {
	t.Helper()
	c := new(canceler)
	config.Lines = func(call *run.Call, _ time.Time, line run.LogLine) {
		cancel, known := c.calls.Load(call.IdempotencyKey())
		switch {
		case !known || line.Message != "begun":
		case call.Attempt == 1:
			time.AfterFunc(moment, func() { cancel.(context.CancelCauseFunc)(errNotNeeded) })
		default:
			cancel.(context.CancelCauseFunc)(errNotNeeded)
		}
	}
	c.Host = newHost(t, config)
	return c
}

// cancel makes a call and cancels it. It gives how long that took from then on.
func (c *canceler) cancel(t testing.TB, call run.Call) (run.Result, time.Duration) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	var canceled time.Time
	call.Task = t.Name()
	c.calls.Store(call.IdempotencyKey(), context.CancelCauseFunc(func(cause error) {
		canceled = time.Now()
		cancel(cause)
	}))
	defer c.calls.Delete(call.IdempotencyKey())
	result, err := c.Invoke(ctx, call)
	if err != nil {
		t.Fatalf("%s: %v", call.Function, err)
	}
	if ctx.Err() == nil {
		t.Fatalf("%s was not canceled: %s %v", call.Function, result.Outcome, result.Failure)
	}
	return result, time.Since(canceled)
}

// wantCanceled fails the test unless the call was canceled, with those words.
func wantCanceled(t testing.TB, result run.Result, words string) *run.Failure {
	t.Helper()
	failure := wantFailure(t, result, run.OutcomeCanceled, run.CodeCanceled)
	if !strings.HasPrefix(failure.Message, words) || failure.Retryable || failure.RetryAfter != 0 {
		t.Errorf("%+v, want %q", failure, words)
	}
	return failure
}

// ample is a grace that no guest uses up.
const ample = 5 * patience

func TestGuestWindsDown(t *testing.T) {
	t.Parallel()
	c := newCanceler(t, host.Config{Grace: ample})
	inGo, inC := load(t, c.Host, guest(t, "winddown")), load(t, c.Host, kept("c/winddown")(t))
	const half = "canceled: not needed: stopped: half done"
	tests := []struct {
		module, function string
		words            string
		quiet            bool // it does not tell what it has learned
	}{
		{inGo, "looks", half, false},
		{inGo, "receives", half, false},
		{inGo, "selects", half, false},
		{inGo, "derives", half, false},
		{inGo, "yields", half, false},
		{inGo, "sleeps", half, false},
		{inGo, "tidies", half, false},
		{inGo, "naps", half, false},
		{inGo, "answers", "canceled: not needed", true},
		{inGo, "panics", "canceled: not needed: trap: panic: in a hurry", true},
		{inGo, "exits", "canceled: not needed: exit: exit status 3", true},
		{inC, "work", half, false},
		{inC, "finish", "canceled: not needed", true},
	}
	for _, tt := range tests {
		for attempt, when := range []string{"in between", "in a host function"} {
			t.Run(tt.function+" "+when, func(t *testing.T) {
				t.Parallel()
				call := callOf(tt.module, tt.function, "null")
				call.Attempt += attempt
				call.Grants.Files = []run.FileGrant{{Folder: t.TempDir(), Path: "out", Guest: "/out", Write: true}}
				call.Timeout = 2 * ample
				result, took := c.cancel(t, call)
				failure := wantCanceled(t, result, tt.words)
				if took > patience {
					t.Errorf("it took %v", took)
				}
				if left, err := os.ReadDir(filepath.Join(call.Grants.Files[0].Folder, "out")); len(left) != 0 || err != nil {
					t.Errorf("files %v, %v", left, err)
				}
				if !tt.quiet {
					checkTold(t, failure.Details)
				}
			})
		}
	}
}

// checkTold looks at what a guest was told when it asked.
func checkTold(t *testing.T, details json.RawMessage) {
	t.Helper()
	var told struct {
		Left     int64
		Canceled bool
	}
	err := json.Unmarshal(details, &told)
	if left := time.Duration(told.Left) * time.Millisecond; err != nil || !told.Canceled || left > ample || left < ample-patience {
		t.Errorf("the guest was told %s, %v", details, err)
	}
}

func TestGuestThatDoesNotCareIsStopped(t *testing.T) {
	t.Parallel()
	const short = 200 * time.Millisecond
	c := newCanceler(t, host.Config{Grace: short})
	result, took := c.cancel(t, callOf(load(t, c.Host, kept("c/winddown")(t)), "insist", "null"))
	wantCanceled(t, result, "canceled: not needed; the guest did not end by itself within 2")
	if took < short || took > patience {
		t.Errorf("it took %v", took)
	}
}

// A guest that only could ask, as each in Go, does not keep its place for a grace.
func TestGuestThatNeverAsksHasNoGrace(t *testing.T) {
	t.Parallel()
	c := newCanceler(t, host.Config{Grace: ample})
	module := load(t, c.Host, guest(t, "winddown"))
	for _, function := range []string{"loops", "sleeps_on"} {
		t.Run(function, func(t *testing.T) {
			t.Parallel()
			result, took := c.cancel(t, callOf(module, function, "null"))
			wantCanceled(t, result, "canceled: not needed; the guest never asked whether to stop")
			if took > patience {
				t.Errorf("it took %v", took)
			}
		})
	}
}

func TestGraceEndsAtTheDeadline(t *testing.T) {
	t.Parallel()
	c := newCanceler(t, host.Config{Grace: ample})
	call := callOf(load(t, c.Host, kept("c/winddown")(t)), "insist", "null")
	call.Timeout = time.Second
	result, _ := c.cancel(t, call)
	wantCanceled(t, result, "canceled: not needed; the guest did not end by itself within")
	if result.Duration < call.Timeout || result.Duration > patience {
		t.Errorf("it took %v", result.Duration)
	}
}

// A guest that cannot ask has nothing to do with its time.
func TestGuestThatCannotAskIsStoppedAtOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Grace: ample})
	asks := endless()
	asks.imports = []importEntry{{"flowhost:task/v1", "should_stop", taskFunction}}
	none := newHost(t, host.Config{Grace: -1})
	for name, c := range map[string]struct {
		host   *host.Host
		module string
	}{
		"no import": {h, loadBytes(t, h, endless().bytes())},
		"no grace":  {none, loadBytes(t, none, asks.bytes())},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(moment, func() { cancel(errNotNeeded) })
			call := callOf(c.module, "", "1")
			call.Timeout = 2 * ample
			result, err := c.host.Invoke(ctx, call)
			if err != nil {
				t.Fatal(err)
			}
			failure := wantCanceled(t, result, "canceled: not needed")
			if failure.Message != errNotNeeded.Error() || result.Duration > patience {
				t.Errorf("%q after %v", failure.Message, result.Duration)
			}
		})
	}
}

// A tuned host uses the new limits, timeout and grace for the next calls.
func TestTune(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Timeout: ample, Grace: ample})
	asks := endless()
	asks.imports = []importEntry{{"flowhost:task/v1", "should_stop", taskFunction}}
	digest := loadBytes(t, h, asks.bytes())
	invoke := func(ctx context.Context) run.Result {
		t.Helper()
		call := callOf(digest, "", "1")
		call.Timeout, call.Limits = 0, run.Limits{}
		result, err := h.Invoke(ctx, call)
		if err != nil {
			t.Fatal(err)
		}
		return result
	}
	h.Tune(host.Tuning{Timeout: moment})
	if result := invoke(t.Context()); result.Outcome != run.OutcomeTimedOut || result.Duration > patience {
		t.Errorf("with a short timeout: %s after %v", result.Outcome, result.Duration)
	}
	h.Tune(host.Tuning{Timeout: ample, Grace: -1})
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(moment, func() { cancel(errNotNeeded) })
	if result := invoke(ctx); result.Outcome != run.OutcomeCanceled || result.Duration > patience {
		t.Errorf("without a grace: %s after %v", result.Outcome, result.Duration)
	}
	h.Tune(host.Tuning{Limits: run.Limits{Fuel: 1000}})
	if result := invoke(t.Context()); result.Failure == nil || result.Failure.Code != run.CodeFuel {
		t.Errorf("with little fuel: %+v", result)
	}
}

// A call that is canceled while it waits for a place ends at once.
func TestWaitingCallHasNoGrace(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Grace: ample, Instances: 1})
	blocker := loadBytes(t, h, endless().bytes())
	module := load(t, h, kept("c/winddown")(t))
	short := callOf(blocker, "", "1")
	short.Timeout = moment
	for name, call := range map[string]run.Call{"blocker": short, "module": callOf(module, "once", "null")} {
		if _, err := h.Invoke(t.Context(), call); err != nil { // so that both have been initialized
			t.Fatal(name, err)
		}
	}
	blocked, release := context.WithCancelCause(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() { h.Invoke(blocked, callOf(blocker, "", "1")) })
	for h.Stats().Running == 0 {
		time.Sleep(time.Millisecond)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(moment, func() { cancel(errNotNeeded) })
	wantUntouched(t, h, ctx, callOf(module, "insist", "null"))
	release(run.ErrCanceled)
	calls.Wait()
}

// Nothing of a call runs that was canceled before, also when the module is new.
func TestCallThatWasCanceledHasNoGrace(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Grace: ample})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errNotNeeded)
	for _, call := range []run.Call{
		callOf(load(t, h, kept("c/winddown")(t)), "insist", "null"),
		callOf(load(t, h, guest(t, "winddown")), "loops", "null"),
	} {
		wantUntouched(t, h, ctx, call)
		warm := call
		warm.Timeout = moment
		wantFailure(t, invoke(t, h, warm), run.OutcomeTimedOut, run.CodeTimeout)
		wantUntouched(t, h, ctx, call)
	}
}

// wantUntouched fails the test unless the call is canceled before it begins.
func wantUntouched(t *testing.T, h *host.Host, ctx context.Context, call run.Call) {
	t.Helper()
	result, err := h.Invoke(ctx, call)
	if err != nil {
		t.Fatal(err)
	}
	failure := wantCanceled(t, result, errNotNeeded.Error())
	if failure.Message != errNotNeeded.Error() || len(result.Log.Lines) != 0 || result.Duration > patience {
		t.Errorf("%v after %v, log %v", failure, result.Duration, result.Log.Lines)
	}
}

// The guest sees other numbers only when it is canceled.
func TestShouldStopIsZeroInACallThatGoesOn(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	module := load(t, h, kept("c/winddown")(t))
	for range 3 {
		wantOutput(t, invoke(t, h, callOf(module, "once", "null")), "0")
	}
}

// However a canceled call ends, the next one has an instance that is as new.
func TestInstanceIsAsNewAfterACancel(t *testing.T) {
	t.Parallel()
	c := newCanceler(t, host.Config{Grace: 100 * time.Millisecond, Instances: 1})
	module := load(t, c.Host, guest(t, "winddown"))
	for _, function := range []string{"looks", "loops", "receives", "panics", "exits", "sleeps", "sleeps_on"} {
		result, _ := c.cancel(t, callOf(module, function, "null"))
		wantCanceled(t, result, "canceled: not needed")
		wantOutput(t, invoke(t, c.Host, callOf(module, "counts", "null")), "1")
	}
	for _, m := range c.Stats().Modules {
		if m.Made != 1 || len(m.Discarded) != 0 {
			t.Errorf("made %d, discarded %v", m.Made, m.Discarded)
		}
	}
}

func TestCloseDoesNotWaitForTheGrace(t *testing.T) {
	t.Parallel()
	ready := make(chan struct{}, 2)
	ctx, cancel := context.WithCancelCause(t.Context())
	h := newHost(t, host.Config{Grace: ample, Lines: func(*run.Call, time.Time, run.LogLine) { ready <- struct{}{} }})
	module := load(t, h, kept("c/winddown")(t))
	inGo := load(t, h, guest(t, "winddown"))
	var calls sync.WaitGroup
	for function, module := range map[string]string{"insist": module, "sleeps_on": inGo} {
		calls.Go(func() {
			call := callOf(module, function, "null")
			call.Timeout = 2 * ample
			result, err := h.Invoke(ctx, call)
			if err != nil || result.Duration > patience {
				t.Errorf("%s: %v after %v", function, err, result.Duration)
			}
		})
	}
	<-ready
	<-ready // both are under way
	cancel(errNotNeeded)
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	calls.Wait()
}

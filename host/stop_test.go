package host_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// patience is far more than stopping a guest takes, and far less than the calls
// below would last.
const patience = 30 * time.Second

// The guest and the host's timer see the deadline in either order: the outcome
// is the same.
func TestGuestThatGivesUpAtItsDeadlineTimesOut(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	call := callOf(load(t, h, guest(t, "tasks")), "gives_up", "0")
	for i := range 10 {
		call.Timeout = 20*time.Millisecond + time.Duration(i)*100*time.Microsecond
		wantFailure(t, invoke(t, h, call), run.OutcomeTimedOut, run.CodeTimeout)
	}
}

func TestLoopAndSleepEndAtTheDeadline(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	tasks := load(t, h, guest(t, "tasks"))
	loop := loadBytes(t, h, endless().bytes())
	for _, call := range []run.Call{
		callOf(tasks, "loops", "1"),
		callOf(tasks, "sleeps", "3600000"),
		callOf(loop, "run", "1"),
	} {
		t.Run(call.Function, func(t *testing.T) {
			t.Parallel()
			call.Timeout = 300 * time.Millisecond
			result := invoke(t, h, call)
			failure := wantFailure(t, result, run.OutcomeTimedOut, run.CodeTimeout)
			if !failure.Retryable || result.Duration < call.Timeout || result.Duration > patience {
				t.Errorf("retryable %v after %v", failure.Retryable, result.Duration)
			}
		})
	}
}

// endless is a program that never ends and never calls the host.
func endless() program {
	return task(opLoop, noBlockType, opBr, 0, opEnd, opUnreachable)
}

func TestHostsDefaultTimeoutApplies(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Timeout: 100 * time.Millisecond})
	call := callOf(loadBytes(t, h, endless().bytes()), "", "1")
	call.Timeout = 0
	wantFailure(t, invoke(t, h, call), run.OutcomeTimedOut, run.CodeTimeout)
}

func TestCauseOfTheContextDecidesTheOutcome(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Grace: 100 * time.Millisecond})
	tasks := load(t, h, guest(t, "tasks"))
	stopping := errors.New("this worker stops")
	tests := []struct {
		name    string
		cause   error
		outcome run.Outcome // "": the attempt is lost
		message string
	}{
		{"canceled", run.ErrCanceled, run.OutcomeCanceled, "canceled"},
		{"canceled with a reason", fmt.Errorf("%w: wrong order", run.ErrCanceled), run.OutcomeCanceled, "wrong order"},
		{"the run's time is up", run.ErrDeadline, run.OutcomeTimedOut, "time is up"},
		{"a plain deadline", context.DeadlineExceeded, run.OutcomeTimedOut, "time is up"},
		{"the engine stops", stopping, "", ""},
		{"no cause", nil, "", ""},
	}
	for _, tt := range tests {
		for _, function := range []string{"loops", "sleeps"} {
			t.Run(tt.name+" "+function, func(t *testing.T) {
				t.Parallel()
				ctx, cancel := context.WithCancelCause(t.Context())
				time.AfterFunc(200*time.Millisecond, func() { cancel(tt.cause) })
				result, err := h.Invoke(ctx, callOf(tasks, function, "3600000"))
				if tt.outcome == "" {
					if want := context.Cause(ctx); !errors.Is(err, want) || result.Outcome != "" {
						t.Fatalf("%+v, %v; want %v", result, err, want)
					}
					return
				}
				if err != nil {
					t.Fatal(err)
				}
				if result.Outcome != tt.outcome || !strings.Contains(result.Failure.Message, tt.message) {
					t.Errorf("%s %v, want %s %q", result.Outcome, result.Failure, tt.outcome, tt.message)
				}
			})
		}
	}
}

func TestCallThatIsCanceledBeforehandDoesNotRun(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(run.ErrCanceled)
	result, err := h.Invoke(ctx, callOf(load(t, h, guest(t, "tasks")), "counter", "1"))
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, result, run.OutcomeCanceled, run.CodeCanceled)
}

func TestWaitingForAnInstanceEndsWithTheCall(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Instances: 1})
	digest := loadBytes(t, h, endless().bytes())
	first, release := context.WithCancelCause(t.Context())
	var calls sync.WaitGroup
	calls.Go(func() { h.Invoke(first, callOf(digest, "", "1")) })
	// Both end at their deadline, whichever of them has the instance.
	call := callOf(digest, "", "1")
	call.Timeout = 200 * time.Millisecond
	for range 2 {
		calls.Go(func() { wantFailure(t, invoke(t, h, call), run.OutcomeTimedOut, run.CodeTimeout) })
	}
	stopping := errors.New("this worker stops")
	calls.Go(func() {
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(stopping)
		if _, err := h.Invoke(ctx, call); !errors.Is(err, stopping) {
			t.Errorf("stopping: %v", err)
		}
	})
	time.AfterFunc(time.Second, func() { release(run.ErrCanceled) })
	calls.Wait()
}

func TestCloseCutsOffCallsAndWaitsForThem(t *testing.T) {
	t.Parallel()
	h, err := host.New(t.Context(), host.Config{})
	if err != nil {
		t.Fatal(err)
	}
	digest := loadBytes(t, h, endless().bytes())
	lost := make(chan error, 4)
	for range cap(lost) {
		go func() {
			_, err := h.Invoke(t.Context(), callOf(digest, "", "1"))
			lost <- err
		}()
	}
	// Whether they run, wait or have not begun by now makes no difference.
	for range 2 {
		if err := h.Close(t.Context()); err != nil {
			t.Fatalf("close: %v", err)
		}
	}
	for range cap(lost) {
		if err := <-lost; !errors.Is(err, host.ErrClosed) {
			t.Errorf("call: %v", err)
		}
	}
	_, inspectErr := h.Inspect(t.Context(), "x.wasm")
	_, signatureErr := h.Signature(t.Context(), "x.wasm")
	_, digestErr := h.SignatureOf(t.Context(), digest)
	for _, err := range []error{inspectErr, signatureErr, digestErr} {
		if !errors.Is(err, host.ErrClosed) {
			t.Errorf("after close: %v", err)
		}
	}
}

func TestCloseGivesUpWhenItsContextEnds(t *testing.T) {
	t.Parallel()
	source := stuck{entered: make(chan struct{}), release: make(chan struct{})}
	h, err := host.New(t.Context(), host.Config{Modules: source})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := h.SignatureOf(t.Context(), "sha256:00")
		ended <- err
	}()
	<-source.entered
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.Close(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("close while a module is opened: %v", err)
	}
	close(source.release)
	if err := h.Close(t.Context()); err != nil {
		t.Errorf("close afterwards: %v", err)
	}
	if err := <-ended; !errors.Is(err, host.ErrClosed) {
		t.Errorf("call: %v", err)
	}
}

// stuck is a source whose Open waits until it is let go.
type stuck struct{ entered, release chan struct{} }

func (s stuck) Open(context.Context, string) ([]byte, error) {
	close(s.entered)
	<-s.release
	return nil, nil
}

func (s stuck) Size(context.Context, string) (int64, error) { return 0, fs.ErrNotExist }
func (s stuck) Keep(context.Context, string, []byte) error  { return nil }

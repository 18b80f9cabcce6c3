package host_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// deaf is a driver that ignores the end of its context.
type deaf struct {
	began, release chan struct{}
	open           atomic.Int32
}

func (d *deaf) Do(context.Context, *access.Operation) access.Answer {
	d.began <- struct{}{}
	<-d.release
	return access.Answer{Head: []byte("{}")}
}

func (d *deaf) Close() { d.open.Add(-1) }

// A driver that ignores the end of its context does not hold up the call. Its operation is
// reported; the host waits for it when it closes, as long as it may.
func TestDeafDriver(t *testing.T) {
	t.Parallel()
	driver := &deaf{began: make(chan struct{}, 1), release: make(chan struct{})}
	late := make(chan door.Report, 1)
	h := newHost(t, host.Config{
		Reach: func(*run.Call) door.Session {
			driver.open.Add(1)
			return driver
		},
		Operations: func(_ *run.Call, r door.Report) { late <- r },
		Doors:      door.Limits{Patience: 20 * time.Millisecond},
	})
	signature, err := h.Signature(t.Context(), guest(t, "outside"))
	if err != nil {
		t.Fatal(err)
	}
	call := callOf(signature.Digest, "forever", `"import"`)
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-driver.began
		cancel(run.ErrCanceled)
	}()
	result, err := h.Invoke(ctx, call)
	if err != nil || result.Outcome != run.OutcomeCanceled {
		t.Fatal(result.Outcome, result.Failure, err)
	}
	if r := <-late; !r.Late || r.Operation.Kind != "http" || r.Answer.Fault.Code != access.CodeInternal {
		t.Errorf("%+v", r)
	}
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	if err := h.Close(short); err == nil || driver.open.Load() != 1 {
		t.Error("the host has closed beside an operation:", err)
	}
	close(driver.release)
	if err := h.Close(t.Context()); err != nil || driver.open.Load() != 0 {
		t.Error("the session is open:", err)
	}
	if held := h.Stats().Memory; held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// A host that closes cuts off calls that wait for operations, and leaves nothing behind.
func TestCloseDuringOperations(t *testing.T) {
	t.Parallel()
	const calls = 8
	w := &stalled{began: make(chan struct{}, 2*calls)}
	h := newHost(t, host.Config{Reach: w.session, Instances: calls})
	signature, err := h.Signature(t.Context(), guest(t, "outside"))
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range calls {
		all.Go(func() {
			how := []string{"import", "file", "context"}[i%3]
			result, err := h.Invoke(t.Context(), callOf(signature.Digest, "forever", fmt.Sprintf("%q", how)))
			if err == nil && result.Outcome == run.OutcomeSucceeded {
				t.Error("a call has succeeded")
			}
		})
	}
	for range calls {
		<-w.began
	}
	if err := h.Close(t.Context()); err != nil {
		t.Error(err)
	}
	all.Wait()
	if open, running := w.open.Load(), w.running.Load(); open != 0 || running != 0 {
		t.Errorf("%d sessions are open, %d operations are under way", open, running)
	}
}

// stalled has operations that end with their context.
type stalled struct {
	began         chan struct{}
	open, running atomic.Int32
}

func (c *stalled) session(*run.Call) door.Session {
	c.open.Add(1)
	return c
}

func (c *stalled) Do(ctx context.Context, _ *access.Operation) access.Answer {
	c.running.Add(1)
	defer c.running.Add(-1)
	c.began <- struct{}{}
	<-ctx.Done()
	return access.Answer{Fault: &access.Fault{Code: access.CodeCanceled, Message: "canceled"}}
}

func (c *stalled) Close() { c.open.Add(-1) }

// Thousands of subscriptions to files of the door, and more files than operations may be
// open, end like others.
func TestPollsOfDoorFiles(t *testing.T) {
	t.Parallel()
	h, module := outsideHost(t, &web{}, host.Config{})
	for input, want := range map[string]string{
		`{"files":1,"each":4000}`: "ended", `{"files":64,"each":60}`: "ended", `{"files":5000,"each":1}`: "no more files",
	} {
		result := invoke(t, h, callOf(module, "polls", input))
		var got [2]int32
		if err := json.Unmarshal(result.Output, &got); err != nil || result.Outcome != run.OutcomeSucceeded {
			t.Errorf("%s: %v %v %v", input, result.Outcome, result.Failure, err)
		}
		if ended := got[0] > 0 && got[1] == 0; ended != (want == "ended") {
			t.Errorf("%s: %d have ended, error %d, want %s", input, got[0], got[1], want)
		}
	}
	wantOutput(t, invoke(t, h, callOf(module, "fetch", `"/x"`)), `"200 b body of /x"`)
}

// faulty is a driver that panics at its first operation.
type faulty struct{ operations atomic.Int32 }

func (f *faulty) Do(context.Context, *access.Operation) access.Answer {
	if f.operations.Add(1) == 1 {
		panic("hunter2")
	}
	return access.Answer{Head: []byte(`{"status":200}`)}
}

func (f *faulty) Close() {}

// A driver that panics fails the operation. The host logs it and serves the next call.
func TestDriverPanics(t *testing.T) {
	t.Parallel()
	driver, log := new(faulty), new(bytes.Buffer)
	h := newHost(t, host.Config{
		Reach: func(*run.Call) door.Session { return driver },
		Log:   slog.New(slog.NewTextHandler(log, nil)),
	})
	signature, err := h.Signature(t.Context(), guest(t, "outside"))
	if err != nil {
		t.Fatal(err)
	}
	call := callOf(signature.Digest, "fetch", `"/x"`)
	result, err := h.Invoke(t.Context(), call)
	if err != nil || result.Failure == nil || result.Failure.Code != access.CodeInternal || !result.Failure.Retryable {
		t.Fatalf("%+v, %v", result.Failure, err)
	}
	if text := log.String(); !strings.Contains(text, "operation=http") || !strings.Contains(text, "faulty") || strings.Contains(text, "hunter2") {
		t.Errorf("the log is %s", text)
	}
	if result, err = h.Invoke(t.Context(), call); err != nil || result.Failure != nil {
		t.Errorf("the next call: %+v, %v", result.Failure, err)
	}
}

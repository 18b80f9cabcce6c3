package host_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/host/door"
	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/run/access"
)

// web answers operations: of the URL /never when their context has ended, of /slow after a
// while, of /denied with a fault, and of others at once.
type web struct {
	t        testing.TB
	open     atomic.Int32 // sessions
	running  atomic.Int32 // operations
	together chan struct{}
	began    chan struct{} // closed when one for /never is under way; nil: nobody waits
	wanted   int32         // operations that must be under way at once before any is answered

	mu   sync.Mutex
	seen []string
}

func (w *web) session(*run.Call) door.Session {
	w.open.Add(1)
	return w
}

func (w *web) Close() { w.open.Add(-1) }

func (w *web) Do(ctx context.Context, op *access.Operation) access.Answer {
	n := w.running.Add(1)
	defer w.running.Add(-1)
	if w.wanted > 0 {
		if n == w.wanted {
			close(w.together)
		}
		select {
		case <-w.together:
		case <-ctx.Done():
		}
	}
	var head struct{ URL string }
	if err := json.Unmarshal(op.Head, &head); err != nil {
		return access.Answer{Fault: &access.Fault{Code: access.CodeInvalid, Message: err.Error()}}
	}
	w.mu.Lock()
	if len(w.seen) < 1000 {
		w.seen = append(w.seen, fmt.Sprint(op.Number, " ", op.Kind, " ", head.URL, " ", string(op.Body)))
	}
	w.mu.Unlock()
	switch head.URL {
	case "/never":
		if w.began != nil {
			close(w.began)
		}
		<-ctx.Done()
		return access.Answer{Fault: &access.Fault{Code: access.CodeCanceled, Message: "canceled"}}
	case "/slow":
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
		}
	case "/denied":
		return access.Answer{Fault: &access.Fault{Code: access.CodeDenied, Message: "GET /denied is not granted", Rule: "not granted", Target: "/denied", Add: `allow = ["GET /denied"]`}}
	case "/large":
		return access.Answer{Head: []byte(`{"status":200}`), Body: make([]byte, 20<<20)}
	}
	return access.Answer{Head: []byte(`{"status":200,"headers":{"X-A":["b"]},"url":"` + head.URL + `"}`), Body: []byte("body of " + head.URL)}
}

// outsideHost has the guest and what it reaches.
func outsideHost(t testing.TB, w *web, config host.Config) (h *host.Host, module string) {
	t.Helper()
	w.t, w.together = t, make(chan struct{})
	config.Reach = w.session
	h = newHost(t, config)
	signature, err := h.Signature(t.Context(), guest(t, "outside"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if open, running := w.open.Load(), w.running.Load(); open != 0 || running != 0 {
			t.Errorf("%d sessions are open, %d operations are under way", open, running)
		}
	})
	return h, signature.Digest
}

func TestOperationsOfTheSDK(t *testing.T) {
	t.Parallel()
	h, module := outsideHost(t, &web{}, host.Config{})
	wantOutput(t, invoke(t, h, callOf(module, "fetch", `"/x"`)), `"200 b body of /x"`)
	result := invoke(t, h, callOf(module, "fetch", `"/denied"`))
	wantFailure(t, result, run.OutcomeDenied, "denied")
	if text := string(result.Failure.Details); !strings.Contains(text, `"add":"allow = [\"GET /denied\"]"`) || !strings.Contains(result.Failure.Message, "not granted") {
		t.Errorf("%s %s", result.Failure.Message, text)
	}
	wantOutput(t, invoke(t, h, callOf(module, "goroutines", `{}`)), `true`)
}

// Operations of goroutines are under way together: none is answered before all are.
func TestOperationsAtOnce(t *testing.T) {
	t.Parallel()
	h, module := outsideHost(t, &web{wanted: 10}, host.Config{})
	result := invoke(t, h, callOf(module, "several", `10`))
	var answers []string
	if err := json.Unmarshal(result.Output, &answers); err != nil {
		t.Fatal(result.Outcome, result.Failure, result.Log)
	}
	for i, answer := range answers {
		if want := fmt.Sprintf("200 b body of /%d", i); answer != want {
			t.Errorf("%q, want %q", answer, want)
		}
	}
}

func TestOperationsByImports(t *testing.T) {
	t.Parallel()
	w := &web{}
	h, module := outsideHost(t, w, host.Config{})
	wantOutput(t, invoke(t, h, callOf(module, "imports", `{"url":"/slow"}`)), `[1,-6,0,"{\"status\":200,\"headers\":{\"X-A\":[\"b\"]},\"url\":\"/slow\"}","body of /slow",0,-8]`)
	if diff := cmp.Diff([]string{"1 http /slow body"}, w.seen); diff != "" {
		t.Error(diff)
	}
	wantOutput(t, invoke(t, h, callOf(module, "imports", `{"url":"/denied"}`)), `[1,-6,0,"{\"code\":\"denied\",\"message\":\"GET /denied is not granted\",\"target\":\"/denied\",\"rule\":\"not granted\",\"add\":\"allow = [\\\"GET /denied\\\"]\"}","-2",0,-8]`)
}

func TestWrongOperations(t *testing.T) {
	t.Parallel()
	h, module := outsideHost(t, &web{}, host.Config{})
	result := invoke(t, h, callOf(module, "wrong", `{}`))
	var got map[string]int32
	if err := json.Unmarshal(result.Output, &got); err != nil {
		t.Fatal(result.Outcome, result.Failure, result.Log)
	}
	const badf, again, invalid, large = -8, -6, -28, -1
	want := map[string]int32{
		"no kind": invalid, "long kind": invalid, "head is no object": invalid, "head is no JSON": invalid, "large head": large, "body too large": large,
		"kind beside": invalid, "head beside": invalid, "body beside": invalid,
		"wait for nothing": invalid, "wait for many": invalid, "wait beside": invalid, "wait for another": badf, "wait, not ended": again,
		"read another": badf, "read negative": badf, "read, not ended": again, "close another": badf, "close, not ended": 0, "close again": badf, "read what is ended": 0,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// A guest that starts more than it may is refused, and its call goes on.
func TestOperationsAreBounded(t *testing.T) {
	t.Parallel()
	h, module := outsideHost(t, &web{}, host.Config{Doors: door.Limits{Operations: 1000, InFlight: 8, Held: 4 << 20, Total: 64 << 20}})
	flood := func(input, want string) {
		t.Helper()
		wantOutput(t, invoke(t, h, callOf(module, "flood", input)), want)
	}
	flood(`{"N":1000000}`, `[8,-33]`)
	flood(`{"N":1000000,"Close":true}`, `[1000,-51]`)
	flood(`{"N":8,"Body":1048576}`, `[3,-51]`) // what they hold; heads count, too
	flood(`{"N":1000,"Body":1048576,"Close":true}`, `[63,-51]`)
	result := invoke(t, h, callOf(module, "fetch", `"/large"`))
	wantFailure(t, result, run.OutcomeFailed, access.CodeBudget)

	// What the host has in all bounds them as well.
	poor, module := outsideHost(t, &web{}, host.Config{Memory: 24 << 20, Idle: -1, Limits: run.Limits{Memory: 8 << 20}})
	result = invoke(t, poor, callOf(module, "fetch", `"/large"`))
	wantFailure(t, result, run.OutcomeFailed, access.CodeBudget)
	wantOutput(t, invoke(t, poor, callOf(module, "fetch", `"/x"`)), `"200 b body of /x"`)
	if held := poor.Stats().Memory; held != 0 {
		t.Errorf("%d bytes are held", held)
	}
}

// What a call leaves behind ends with it.
func TestOperationsEndWithTheCall(t *testing.T) {
	t.Parallel()
	w := &web{}
	h, module := outsideHost(t, w, host.Config{})
	wantOutput(t, invoke(t, h, callOf(module, "unread", `20`)), `{}`)
	if running := w.running.Load(); running != 0 {
		t.Errorf("%d operations are under way", running)
	}
	for _, how := range []string{"import", "file", "context"} {
		call := callOf(module, "forever", fmt.Sprintf("%q", how))
		call.Timeout = 50 * time.Millisecond
		wantFailure(t, invoke(t, h, call), run.OutcomeTimedOut, run.CodeTimeout)

		ctx, cancel := context.WithCancelCause(t.Context())
		began := make(chan struct{})
		go func() {
			<-began
			cancel(run.ErrCanceled)
		}()
		call.Timeout = time.Minute
		close(began)
		result, err := h.Invoke(ctx, call)
		if err != nil || result.Outcome != run.OutcomeCanceled {
			t.Errorf("%s: %v %v %v", how, result.Outcome, result.Failure, err)
		}
	}
}

// A function that waits for an operation learns that it is canceled, and may still tidy up.
func TestOperationsOfACanceledCall(t *testing.T) {
	t.Parallel()
	w := &web{began: make(chan struct{})}
	h, module := outsideHost(t, w, host.Config{})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-w.began
		cancel(run.ErrCanceled)
	}()
	result, err := h.Invoke(ctx, callOf(module, "tidies", `{}`))
	if err != nil || result.Outcome != run.OutcomeCanceled || !strings.Contains(result.Failure.Message, "context canceled, then 200 b body of /slow <nil>") {
		t.Errorf("%v %v %v", result.Outcome, result.Failure, err)
	}
}

func TestOperationsByFile(t *testing.T) {
	t.Parallel()
	h, module := outsideHost(t, &web{}, host.Config{})
	requests := []string{
		"http {\"url\":\"/slow\"}\nthe body", `http {"url":"/x"}`, `http {"url":"/denied"}`, "http", "", "http []\n", " {}",
	}
	want := []string{
		"ok 13 {\"status\":200,\"headers\":{\"X-A\":[\"b\"]},\"url\":\"/slow\"}\nbody of /slow",
		"ok 10 {\"status\":200,\"headers\":{\"X-A\":[\"b\"]},\"url\":\"/x\"}\nbody of /x",
		"fault 0 {\"code\":\"denied\",\"message\":\"GET /denied is not granted\",\"target\":\"/denied\",\"rule\":\"not granted\",\"add\":\"allow = [\\\"GET /denied\\\"]\"}\n",
		`fault 0 {"code":"invalid","message":"the first line`, `fault 0 {"code":"invalid","message":"the first line`,
		`fault 0 {"code":"invalid","message":"the operation has no kind`, `fault 0 {"code":"invalid","message":"the operation has no kind`,
	}
	input, _ := json.Marshal(requests)
	result := invoke(t, h, callOf(module, "files", string(input)))
	var got []string
	if err := json.Unmarshal(result.Output, &got); err != nil || len(got) != len(want) {
		t.Fatal(result.Outcome, result.Failure, result.Log, string(result.Output))
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q gave %q, want %q", requests[i], got[i], want[i])
		}
	}
}

// A guest that says nothing for too long is ended, whether it computes or waits.
func TestSilentCalls(t *testing.T) {
	t.Parallel()
	h, module := outsideHost(t, &web{}, host.Config{})
	for _, how := range []string{"import", "file", "context", "computing"} {
		call := callOf(module, "forever", fmt.Sprintf("%q", how))
		call.Heartbeat = 50 * time.Millisecond
		wantFailure(t, invoke(t, h, call), run.OutcomeTimedOut, run.CodeHeartbeat)
	}
	call := callOf(module, "beats", `10`)
	call.Heartbeat = time.Minute
	wantOutput(t, invoke(t, h, call), `10`)
}

// The hook sees each operation once, in the order in which the guest saw their ends.
func TestOperationsAreReported(t *testing.T) {
	t.Parallel()
	var seen []string
	h, module := outsideHost(t, &web{}, host.Config{Operations: func(call *run.Call, r door.Report) {
		code := "ok"
		if r.Answer.Fault != nil {
			code = r.Answer.Fault.Code
		}
		seen = append(seen, fmt.Sprint(call.Task, " ", r.Operation.Number, " ", r.Operation.Kind, " ", code))
	}})
	invoke(t, h, callOf(module, "fetch", `"/x"`))
	invoke(t, h, callOf(module, "fetch", `"/denied"`))
	invoke(t, h, callOf(module, "unread", `2`))
	want := []string{"price 1 http ok", "price 1 http denied", "price 1 http canceled", "price 2 http canceled"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Error(diff)
	}
}

// Without a way outside, everything is denied.
func TestNothingIsReachedByDefault(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	signature, err := h.Signature(t.Context(), guest(t, "outside"))
	if err != nil {
		t.Fatal(err)
	}
	wantFailure(t, invoke(t, h, callOf(signature.Digest, "fetch", `"/x"`)), run.OutcomeDenied, "denied")
}

// BenchmarkOperation compares a call with an operation that costs nothing itself with the
// same call without one.
func BenchmarkOperation(b *testing.B) {
	h, module := outsideHost(b, &web{}, host.Config{})
	small, err := h.Signature(b.Context(), "testdata/guests/wat/operations.wasm")
	if err != nil {
		b.Fatal(err)
	}
	for _, c := range []struct{ name, module, function, input string }{
		{"small/nothing", small.Digest, "nothing", `null`}, {"small/once", small.Digest, "once", `null`},
		{"go/nothing", module, "flood", `{"N":0}`}, {"go/once", module, "fetch", `"/x"`},
		{"go/ten", module, "sequence", `10`}, {"go/hundred", module, "sequence", `100`},
	} {
		b.Run(c.name, func(b *testing.B) {
			call := callOf(c.module, c.function, c.input)
			for b.Loop() {
				if result := invoke(b, h, call); result.Outcome != run.OutcomeSucceeded {
					b.Fatal(result.Failure)
				}
			}
		})
	}
}

// What is granted of the real world is what a guest sees, and nothing else.
func TestRealTimeAndRandomNumbers(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	signature, err := h.Signature(t.Context(), guest(t, "outside"))
	if err != nil {
		t.Fatal(err)
	}
	world := func(grants access.Grants) (now time.Time, random string) {
		t.Helper()
		call := callOf(signature.Digest, "world", `{}`)
		call.Grants.Grants = grants
		var out struct {
			Now    time.Time
			Random string
		}
		result := invoke(t, h, call)
		if err := json.Unmarshal(result.Output, &out); err != nil {
			t.Fatal(result.Failure, err)
		}
		return out.Now, out.Random
	}
	virtual, random := world(access.Grants{})
	if again, other := world(access.Grants{}); !again.Equal(virtual) || other != random || virtual.Year() != 2026 || virtual.Month() != time.March {
		t.Errorf("%v and %v, %s and %s", virtual, again, random, other)
	}
	began := time.Now()
	now, real := world(access.Grants{Clock: access.Real, Random: access.Real})
	if now.Before(began) || now.After(time.Now()) {
		t.Errorf("the guest's time is %v", now)
	}
	if _, other := world(access.Grants{Random: access.Real}); real == random || real == other {
		t.Errorf("%s, %s and %s", random, real, other)
	}
}

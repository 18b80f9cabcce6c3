package host_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

func TestEveryCallHasAFreshInstance(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Instances: 1})
	digest := load(t, h, guest(t, "tasks"))
	for range 3 {
		wantOutput(t, invoke(t, h, callOf(digest, "counter", "1")), "1")
		failure := wantFailure(t, invoke(t, h, callOf(digest, "counter_then_panic", "1")), run.OutcomeTrapped, run.CodeTrap)
		if failure.Message != "panic: broke at 1" {
			t.Errorf("message %q", failure.Message)
		}
	}
}

func TestGlobalsAndMemoryOfAHandMadeModuleAreFresh(t *testing.T) {
	t.Parallel()
	// global++; return global: the status is 1 on a fresh instance.
	module := task(opGlobalGet, 0, opI32Const, 1, opI32Add, opGlobalSet, 0, opGlobalGet, 0)
	h := newHost(t, host.Config{})
	digest := loadBytes(t, h, module.bytes())
	for range 5 {
		wantFailure(t, invoke(t, h, callOf(digest, "", "1")), run.OutcomeFailed, "status_1")
	}
}

func TestConcurrentCallsShareAPool(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Instances: 4})
	digest := load(t, h, guest(t, "tasks"))
	var calls sync.WaitGroup
	for i := range 64 {
		calls.Go(func() {
			function, want := "counter", "1"
			if i%4 == 0 {
				function, want = "recovers", "0"
			}
			result, err := h.Invoke(t.Context(), callOf(digest, function, "9"))
			if err != nil || result.Outcome != run.OutcomeSucceeded || string(result.Output) != want {
				t.Errorf("call %d: %s %s %v, %v", i, result.Outcome, result.Output, result.Failure, err)
			}
		})
	}
	calls.Wait()
}

func TestFullQueueTurnsCallsAway(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Instances: 1, Queue: -1})
	digest := loadBytes(t, h, endless().bytes())
	ctx, cancel := context.WithCancelCause(t.Context())
	var calls sync.WaitGroup
	outcomes := make(chan run.Result, 4)
	for range cap(outcomes) {
		calls.Go(func() {
			result, err := h.Invoke(ctx, callOf(digest, "", "1"))
			if err != nil {
				t.Error(err)
			}
			outcomes <- result
		})
	}
	for range cap(outcomes) - 1 { // all but the one that runs
		failure := wantFailure(t, <-outcomes, run.OutcomeRejected, host.CodeBusy)
		if !failure.Retryable {
			t.Error("a busy host is not for ever")
		}
	}
	cancel(run.ErrCanceled)
	calls.Wait()
	wantFailure(t, <-outcomes, run.OutcomeCanceled, run.CodeCanceled)
}

func TestMemoryLimitOfACall(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	digest := load(t, h, guest(t, "tasks"))
	call := callOf(digest, "hoards", "20")
	call.Limits.Memory = 64 << 20
	wantOutput(t, invoke(t, h, call), "20")

	call.Input = json.RawMessage("200")
	failure := wantFailure(t, invoke(t, h, call), run.OutcomeTrapped, run.CodeMemory)
	if !failure.Retryable || !strings.Contains(failure.Message, "67108864") || !strings.Contains(failure.Message, "out of memory") {
		t.Errorf("%+v", failure)
	}
	call.Limits.Memory = 1 << 16
	failure = wantFailure(t, invoke(t, h, call), run.OutcomeRejected, run.CodeMemory)
	if failure.Retryable {
		t.Error("the module will never need less")
	}
}

func TestMemoryOfTheHostBoundsACall(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Memory: 32 << 20, Instances: 4})
	call := callOf(load(t, h, guest(t, "tasks")), "hoards", "100")
	wantFailure(t, invoke(t, h, call), run.OutcomeTrapped, run.CodeMemory)
	// What the call held is free again.
	call.Input = json.RawMessage("5")
	wantOutput(t, invoke(t, h, call), "5")
}

func TestRefusedGrowthGivesTheGuestMinusOne(t *testing.T) {
	t.Parallel()
	// return memory.grow(n)
	grow := func(pages byte) []byte { return task(opI32Const, pages, opMemoryGrow, 0).bytes() }
	h := newHost(t, host.Config{Limits: run.Limits{Memory: 3 << 16}})
	wantFailure(t, invoke(t, h, callOf(loadBytes(t, h, grow(2)), "", "1")), run.OutcomeFailed, "status_1")
	wantFailure(t, invoke(t, h, callOf(loadBytes(t, h, grow(3)), "", "1")), run.OutcomeFailed, "status_-1")
}

func TestGuestSeesNothingOfTheMachine(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	digest := load(t, h, guest(t, "tasks"))
	for path, want := range map[string]string{
		"/etc/hostname": "open /etc/hostname",
		"main_test.go":  "open main_test.go",
		".":             "read .: Is a directory", // an empty one
	} {
		result := invoke(t, h, callOf(digest, "files", `"`+path+`"`))
		if result.Outcome != run.OutcomeSucceeded || !strings.Contains(string(result.Output), want) {
			t.Errorf("reading %s: %s %v", path, result.Output, result.Failure)
		}
	}
}

func TestGuestsWorldIsTheSameInEveryAttempt(t *testing.T) {
	t.Parallel()
	h, other := newHost(t, host.Config{}), newHost(t, host.Config{})
	call := callOf(load(t, h, guest(t, "tasks")), "world", "1")
	load(t, other, guest(t, "tasks"))
	first := invoke(t, h, call)
	var seen struct {
		Random, Now string
		Took, Env   int
		Args        int
	}
	if err := json.Unmarshal(first.Output, &seen); err != nil {
		t.Fatalf("%v: %s %v", err, first.Output, first.Failure)
	}
	if seen.Now != "2026-03-29T01:30:00Z" || seen.Took <= 0 || seen.Env != 0 || seen.Args != 1 {
		t.Errorf("the guest saw %+v", seen)
	}
	call.Attempt = 2
	for range 3 {
		wantOutput(t, invoke(t, h, call), string(first.Output))
	}
	wantOutput(t, invoke(t, other, call), string(first.Output))

	for name, change := range map[string]func(*run.Call){
		"run":  func(c *run.Call) { c.Run = "01JZZZZZZZZZZZZZZZZZZZZZZY" },
		"task": func(c *run.Call) { c.Task = "prices" },
		"key":  func(c *run.Call) { c.Key = "us" },
	} {
		changed := call
		change(&changed)
		if result := invoke(t, h, changed); strings.Contains(string(result.Output), seen.Random) {
			t.Errorf("another %s sees the same random numbers", name)
		}
	}
}

func TestSleepMovesTheGuestsClock(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	result := invoke(t, h, callOf(load(t, h, guest(t, "tasks")), "sleeps", "50"))
	var ms int
	if err := json.Unmarshal(result.Output, &ms); err != nil || ms < 50 || ms > 200 {
		t.Errorf("the guest slept %s ms by its own clock, want 50 and what reading clocks adds: %v", result.Output, result.Failure)
	}
	if result.Duration.Milliseconds() < 50 {
		t.Errorf("and really %v", result.Duration)
	}
}

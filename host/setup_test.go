package host_test

import (
	"sync"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// growing traps in its initialization if it does not get so many more pages.
func growing(pages int) []byte {
	return program{pages: 1, functions: []functionEntry{
		{"_initialize", signature{}, concat(number(pages), []byte{opMemoryGrow, 0}, number(-1), []byte{0x46, 0x04, noBlockType, opUnreachable, opEnd})},
		{"run", taskFunction, number(0)},
	}}.bytes()
}

// counting counts so far down in its initialization.
func counting(from int) []byte {
	loop := concat(number(from), []byte{opGlobalSet, 0, opLoop, noBlockType, opGlobalGet, 0}, number(-1),
		[]byte{opI32Add, opGlobalSet, 0, opGlobalGet, 0, 0x0d, 0, opEnd})
	return program{pages: 1, functions: []functionEntry{{"_initialize", signature{}, loop}, {"run", taskFunction, number(0)}}}.bytes()
}

// A module is initialized in the same way whoever calls it first.
func TestLimitsOfTheFirstCallAreItsOwn(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	call := callOf(loadBytes(t, h, growing(4)), "", "1")
	small := call
	small.Limits = run.Limits{Memory: 2 << 16, Fuel: 1, Log: 1, Output: 1}
	for range 2 {
		failure := wantFailure(t, invoke(t, h, small), run.OutcomeRejected, run.CodeMemory)
		if failure.Retryable {
			t.Error("the module will never need less")
		}
	}
	wantOutput(t, invoke(t, h, call), "null")
	if got := statsOf(t, h); got.Sandbox.Strategy == host.StrategyFresh || got.Made != 1 || got.Sandbox.Image != 5<<16 {
		t.Errorf("%+v", got)
	}

	large := newHost(t, host.Config{Limits: run.Limits{Memory: 2 << 16}})
	call = callOf(loadBytes(t, large, growing(4)), "", "1")
	call.Limits.Memory = 1 << 20
	wantFailure(t, invoke(t, large, call), run.OutcomeTrapped, run.CodeMemory)
}

// The pool's shortage is not the module's fault.
func TestInitializationThatOthersLeaveNoMemoryFor(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Memory: 7 << 16, Instances: 4, Limits: run.Limits{Output: 1 << 10, Log: 1 << 10}})
	module := callOf(loadBytes(t, h, growing(4)), "", "1")
	other := callOf(loadBytes(t, h, program{pages: 3, functions: endless().functions}.bytes()), "", "1")
	other.Timeout = 300 * time.Millisecond
	var calls sync.WaitGroup
	calls.Go(func() { wantFailure(t, invoke(t, h, other), run.OutcomeTimedOut, run.CodeTimeout) })
	for h.Stats().Running == 0 && !t.Failed() {
		time.Sleep(time.Millisecond)
	}
	if failure := wantFailure(t, invoke(t, h, module), run.OutcomeRejected, host.CodeBusy); !failure.Retryable {
		t.Errorf("%+v", failure)
	}
	calls.Wait()
	wantOutput(t, invoke(t, h, module), "null")
}

// A call that cannot wait for the initialization ends neither that nor the calls
// that can.
func TestDeadlineOfTheFirstCallIsItsOwn(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Instances: 1})
	call := callOf(loadBytes(t, h, counting(300_000_000)), "", "1")
	hasty := call
	hasty.Timeout = 5 * time.Millisecond
	var calls sync.WaitGroup
	calls.Go(func() { wantFailure(t, invoke(t, h, hasty), run.OutcomeTimedOut, run.CodeTimeout) })
	for range 3 {
		calls.Go(func() { wantOutput(t, invoke(t, h, call), "null") })
	}
	calls.Wait()
	if got := statsOf(t, h); got.Made != 1 || got.Sandbox.Strategy == host.StrategyFresh {
		t.Errorf("%+v", got)
	}
}

// What nobody waits for does not run: a place is free soon after the last call
// has left.
func TestInitializationIsAbandoned(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Instances: 1})
	endless := program{pages: 1, functions: []functionEntry{
		{"_initialize", signature{}, []byte{opLoop, noBlockType, opBr, 0, opEnd}}, {"run", taskFunction, number(0)},
	}}
	call := callOf(loadBytes(t, h, endless.bytes()), "", "1")
	call.Timeout = 20 * time.Millisecond
	for range 3 {
		wantFailure(t, invoke(t, h, call), run.OutcomeTimedOut, run.CodeTimeout)
	}
	wantOutput(t, invoke(t, h, callOf(loadBytes(t, h, noop().bytes()), "", "1")), "null")
	for h.Stats().Running > 0 { // at the latest when it is closed
		time.Sleep(time.Millisecond)
	}
	limited := newHost(t, host.Config{Timeout: 50 * time.Millisecond})
	call = callOf(loadBytes(t, limited, endless.bytes()), "", "1")
	if failure := wantFailure(t, invoke(t, limited, call), run.OutcomeTimedOut, run.CodeTimeout); !failure.Retryable {
		t.Errorf("%+v", failure)
	}
}

package host_test

import (
	"testing"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// What a call has used serves the next one, with nothing left of the first.
func TestWorkIsClearedBetweenCalls(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	digest := load(t, h, guest(t, "tasks"))
	call := callOf(digest, "echo", `{"a":1}`)
	call.Config, call.Limits = []byte(`{"b":2}`), run.Limits{Fuel: 1e9}
	call.Grants.Files = []run.FileGrant{{Folder: t.TempDir(), Path: ".", Guest: "/in"}}
	for range 20 {
		if result := invoke(t, h, call); result.Outcome != run.OutcomeSucceeded {
			t.Fatal(result.Failure)
		}
		if left := host.LeftOfACall(h); left != "" {
			t.Fatalf("left behind: %s", left)
		}
	}
}

// TestSmallCallsAllocateNothing but their output, and what a collection takes from the
// pool of works.
func TestSmallCallsAllocateNothing(t *testing.T) {
	if underRace {
		return // it has pools lose much on purpose
	}
	h := newHost(t, host.Config{})
	call := callOf(loadBytes(t, h, noop().bytes()), "run", "1")
	allocations := testing.AllocsPerRun(200, func() { wantOutput(t, invoke(t, h, call), "null") })
	if allocations > 2 {
		t.Errorf("%v allocations", allocations)
	}
}

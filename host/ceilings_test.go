package host_test

import (
	"strings"
	"testing"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

// No call and no configuration raises output and log above what the host's own
// memory is for.
func TestOutputAndLogHaveCeilings(t *testing.T) {
	t.Parallel()
	const much = 900 << 30
	h := newHost(t, host.Config{Limits: run.Limits{Output: much, Log: much}})
	call := callOf(load(t, h, guest(t, "tasks")), "large", "17000000")
	for _, limits := range []run.Limits{{}, {Output: much, Log: much}} {
		call.Limits = limits
		failure := wantFailure(t, invoke(t, h, call), run.OutcomeRejected, run.CodeOutputSize)
		if !strings.Contains(failure.Message, "16777216 bytes") {
			t.Errorf("%+v", failure)
		}
	}
	call.Function, call.Input = "floods", []byte("400000")
	log, bytes := invoke(t, h, call).Log, 0
	for _, line := range log.Lines {
		bytes += len(line.Message) + len(line.Fields)
	}
	if bytes > run.MaxLog || log.Dropped == 0 {
		t.Errorf("%d lines of %d bytes, %d dropped", len(log.Lines), bytes, log.Dropped)
	}
}

// Output and log are in the host's memory: calls wait for it, and one that could
// never have it is refused.
func TestOutputAndLogAreCharged(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{Memory: 8 << 20})
	call := callOf(loadBytes(t, h, noop().bytes()), "", "1")
	wantOutput(t, invoke(t, h, call), "null")
	call.Limits.Output = 8 << 20
	failure := wantFailure(t, invoke(t, h, call), run.OutcomeRejected, run.CodeMemory)
	if failure.Retryable || !strings.Contains(failure.Message, "lower its limits of output and log") {
		t.Errorf("%+v", failure)
	}
}

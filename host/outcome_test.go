package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/flowhost/flowhost/host"
	"github.com/flowhost/flowhost/run"
)

func TestGuestReadsItsCall(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	call := callOf(load(t, h, guest(t, "tasks")), "echo", `{"items":[1,2,3]}`)
	call.Config = json.RawMessage(`{"rate":0.1}`)
	wantOutput(t, invoke(t, h, call), `{"input":{"items":[1,2,3]},"config":{"rate":0.1},"function":"echo",`+
		`"identity":{"flow":"orders","run":"01JZZZZZZZZZZZZZZZZZZZZZZZ","task":"price","key":"eu","attempt":1,`+
		`"idempotency_key":"01JZZZZZZZZZZZZZZZZZZZZZZZ/price/eu","scheduled":"2026-03-29T01:30:00Z"}}`)

	call.Input, call.Config = nil, nil
	result := invoke(t, h, call)
	if !strings.HasPrefix(string(result.Output), `{"input":null,"config":null,`) {
		t.Errorf("output %s, failure %v", result.Output, result.Failure)
	}
}

func TestOutcomesOfReactor(t *testing.T) {
	t.Parallel()
	tests := []struct {
		function, input string
		outcome         run.Outcome
		code            string
		retryable       bool
		message         string // is part of the failure's message, or is the output
	}{
		{"nothing", "1", run.OutcomeSucceeded, "", false, "null"},
		{"raw", `"  [1] \n"`, run.OutcomeRejected, run.CodeOutputFormat, false, "not JSON"},
		{"raw", `"true "`, run.OutcomeSucceeded, "", false, "true"},
		{"raw", `"hello"`, run.OutcomeRejected, run.CodeOutputFormat, false, "not JSON"},
		{"raw", `"1e1000"`, run.OutcomeRejected, run.CodeOutputFormat, false, "exponent"},
		{"large", "1000", run.OutcomeSucceeded, "", false, `"` + strings.Repeat("x", 998) + `"`},
		{"large", "1001", run.OutcomeRejected, run.CodeOutputSize, false, "1000 bytes"},
		{"large_then_fails", "1001", run.OutcomeRejected, run.CodeOutputSize, false, "1000 bytes"},
		{"recovers", "1001", run.OutcomeSucceeded, "", false, "-1"},
		{"fails", `{"code":"no_stock","message":"sold out"}`, run.OutcomeFailed, "no_stock", false, "sold out"},
		{"fails", `{"message":"try again","retryable":true}`, run.OutcomeFailed, "", true, "try again"},
		{"fails", `{"code":"denied","message":"needs the network"}`, run.OutcomeDenied, run.CodeDenied, false, "network"},
		{"fails", `"what"`, run.OutcomeFailed, "status_28", false, "returned 28"},
		{"fails_then_panics", "1", run.OutcomeTrapped, run.CodeTrap, true, "panic: boom"},
		{"changes", "0", run.OutcomeSucceeded, "", false, `"second"`},
		{"changes", "1", run.OutcomeFailed, "second", false, "2"},
		{"status", "3", run.OutcomeFailed, "status_3", false, "returned 3"},
		{"panics", "1", run.OutcomeTrapped, run.CodeTrap, true, "panic: boom"},
		{"nil_pointer", "0", run.OutcomeTrapped, run.CodeTrap, true, "nil pointer dereference"},
		{"exits", "0", run.OutcomeSucceeded, "", false, "null"},
		{"exits", "4", run.OutcomeTrapped, run.CodeExit, true, "exit status 4: cannot go on"},
		{"exits", "-1", run.OutcomeTrapped, run.CodeExit, true, "exit status"},         // what wazero uses for a cancel
		{"exits", "-268435457", run.OutcomeTrapped, run.CodeExit, true, "exit status"}, // and for a deadline
		{"absent", "1", run.OutcomeRejected, run.CodeFunction, false, "counter, counter_then_panic, echo"},
		{"", "1", run.OutcomeRejected, run.CodeFunction, false, "several functions"},
	}
	h := newHost(t, host.Config{Limits: run.Limits{Output: 1000}})
	digest := load(t, h, guest(t, "tasks"))
	for _, tt := range tests {
		t.Run(tt.function+" "+tt.input, func(t *testing.T) {
			t.Parallel()
			checkOutcome(t, invoke(t, h, callOf(digest, tt.function, tt.input)), tt.outcome, tt.code, tt.retryable, tt.message)
		})
	}
}

func TestOutcomesOfCommand(t *testing.T) {
	t.Parallel()
	tests := []struct {
		input     string
		outcome   run.Outcome
		code      string
		retryable bool
		message   string
	}{
		{`"echo"`, run.OutcomeSucceeded, "", false, `{"stdin":"echo","args":["plugin"],"env":0}`},
		{`"nothing"`, run.OutcomeSucceeded, "", false, "null"},
		{`"exit 0"`, run.OutcomeSucceeded, "", false, "null"},
		{`"exit 1"`, run.OutcomeFailed, run.CodeExit, false, "exit status 1: last words"},
		{`"exit 75"`, run.OutcomeFailed, run.CodeExit, true, "exit status 75: last words"},
		{`"panic"`, run.OutcomeFailed, run.CodeExit, false, "panic: boom"},
		{`"text"`, run.OutcomeRejected, run.CodeOutputFormat, false, "not JSON"},
		{`"write 1000"`, run.OutcomeSucceeded, "", false, `"` + strings.Repeat("x", 998) + `"`},
		{`"write 1001"`, run.OutcomeRejected, run.CodeOutputSize, false, "1000 bytes"},
		{`"flood"`, run.OutcomeRejected, run.CodeOutputSize, false, "1000 bytes"},
		{`"hoard 40"`, run.OutcomeTrapped, run.CodeMemory, true, "out of memory"},
	}
	h := newHost(t, host.Config{Limits: run.Limits{Output: 1000, Memory: 32 << 20}})
	digest := load(t, h, guest(t, "command"))
	for _, tt := range tests {
		t.Run(tt.input, func(t *testing.T) {
			t.Parallel()
			checkOutcome(t, invoke(t, h, callOf(digest, "", tt.input)), tt.outcome, tt.code, tt.retryable, tt.message)
		})
	}
}

func checkOutcome(t *testing.T, result run.Result, outcome run.Outcome, code string, retryable bool, text string) {
	t.Helper()
	if outcome == run.OutcomeSucceeded {
		wantOutput(t, result, text)
		return
	}
	failure := wantFailure(t, result, outcome, code)
	if failure.Retryable != retryable || !strings.Contains(failure.Message, text) {
		t.Errorf("retryable %v, message %q; want %v, %q", failure.Retryable, failure.Message, retryable, text)
	}
}

func TestGuestFailureKeepsAllItSays(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	digest := load(t, h, guest(t, "tasks"))
	failure := wantFailure(t, invoke(t, h, callOf(digest, "fails",
		`{"code":"busy","message":"later","retryable":true,"retry_after_ms":1500,"details":{"shard":7}}`)), run.OutcomeFailed, "busy")
	if failure.RetryAfter != 1500*time.Millisecond || string(failure.Details) != `{"shard":7}` {
		t.Errorf("retry after %v, details %s", failure.RetryAfter, failure.Details)
	}
	for ms, want := range map[int64]time.Duration{-5: 0, 1 << 62: 9223372036854 * time.Millisecond} {
		input := fmt.Sprintf(`{"message":"later","retry_after_ms":%d}`, ms)
		if got := invoke(t, h, callOf(digest, "fails", input)).Failure.RetryAfter; got != want {
			t.Errorf("%d ms: %v, want %v", ms, got, want)
		}
	}
}

func TestTrapShowsTheGuestsStack(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	result := invoke(t, h, callOf(loadBytes(t, h, task(opUnreachable).bytes()), "", "1"))
	failure := wantFailure(t, result, run.OutcomeTrapped, run.CodeTrap)
	if failure.Message != "unreachable" {
		t.Errorf("message %q", failure.Message)
	}
	if lines := result.Log.Lines; len(lines) != 1 || lines[0].Level != "error" || !strings.Contains(lines[0].Message, "$0() i32") {
		t.Errorf("log %+v", lines)
	}
}

func TestTrapShowsTheNamesOfFunctions(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	named := withCustomSection(task(opUnreachable).bytes(), "name", "\x01\x07\x01\x00\x04boom")
	result := invoke(t, h, callOf(loadBytes(t, h, named), "", "1"))
	if lines := result.Log.Lines; len(lines) != 1 || !strings.Contains(lines[0].Message, ".boom() i32") {
		t.Errorf("log %+v", lines)
	}
}

func TestRecursionEndsAtItsDepth(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	failure := wantFailure(t, invoke(t, h, callOf(loadBytes(t, h, task(opCall, 0).bytes()), "", "1")), run.OutcomeTrapped, run.CodeDepth)
	if failure.Retryable {
		t.Error("it would be too deep again")
	}
}

func TestFuelEndsACallAtTheSameUnit(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	call := callOf(load(t, h, guest(t, "tasks")), "echo", `{"items":[1,2,3]}`)
	used := invoke(t, h, call).Fuel
	if used <= 0 {
		t.Fatalf("the call used %d units", used)
	}
	for range 3 {
		call.Limits.Fuel = used
		if result := invoke(t, h, call); result.Outcome != run.OutcomeSucceeded || result.Fuel != used {
			t.Errorf("with all that it needs: %s, %d units, want %d", result.Outcome, result.Fuel, used)
		}
		call.Limits.Fuel = used / 2
		result := invoke(t, h, call)
		failure := wantFailure(t, result, run.OutcomeTrapped, run.CodeFuel)
		if failure.Retryable || result.Fuel <= used/2 {
			t.Errorf("with half of it: retryable %v, %d units", failure.Retryable, result.Fuel)
		}
	}
}

func TestWrongRequestsAreAnsweredWithErrnos(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	digest := load(t, h, guest(t, "tasks"))
	const einval, e2big = "-28", "-1"
	want := "[" + strings.Join([]string{
		einval, einval, // unknown fields
		einval, e2big, einval, // read: unknown, too small, outside of memory
		einval, e2big, // output: outside of memory, too long
		einval, einval, // fail: not JSON, outside of memory
		einval, einval, einval, e2big, // log: message, fields no object, fields outside of memory, too long
		"0",
	}, ",") + "]"
	wantOutput(t, invoke(t, h, callOf(digest, "asks", "1")), want)
}

func TestLargeInputAndOutput(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	numbers := "[" + strings.Repeat("7,", 1<<19-2) + "7]"
	wantOutput(t, invoke(t, h, callOf(load(t, h, guest(t, "tasks")), "raw", `"`+numbers+`"`)), numbers)
}

func TestTimeLeftIsThatOfTheCall(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	result := invoke(t, h, callOf(load(t, h, guest(t, "tasks")), "time_left", "1"))
	var left int64
	if err := json.Unmarshal(result.Output, &left); err != nil || left <= 0 || left > time.Minute.Milliseconds() {
		t.Errorf("time left %s ms of a minute: %v", result.Output, err)
	}
}

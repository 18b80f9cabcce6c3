package sdk_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

var errDisk = errors.New("disk full")

func TestErrors(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		err  error
		want run.Failure
	}{
		"plain": {errDisk, run.Failure{Message: "disk full", Retryable: true}},
		"fail":  {sdk.Fail("empty", "order %d is empty", 7), run.Failure{Code: "empty", Message: "order 7 is empty"}},
		"fail wrapped": {
			fmt.Errorf("pricing: %w", sdk.Fail("empty", "no items")),
			run.Failure{Code: "empty", Message: "pricing: no items"},
		},
		"retry": {
			sdk.Retry(errDisk, 2*time.Second),
			run.Failure{Message: "disk full", Retryable: true, RetryAfter: 2 * time.Second},
		},
		"retry rounds up": {
			sdk.Retry(errDisk, time.Nanosecond),
			run.Failure{Message: "disk full", Retryable: true, RetryAfter: time.Millisecond},
		},
		"retry keeps code and details": {
			sdk.Retry(fmt.Errorf("call: %w", &sdk.Error{Code: "busy", Message: "try later", Details: []int{1}}), 0),
			run.Failure{Code: "busy", Message: "call: try later", Retryable: true, Details: []byte(`[1]`)},
		},
		"permanent":          {sdk.Permanent(errDisk), run.Failure{Message: "disk full"}},
		"permanent of retry": {sdk.Permanent(sdk.Retry(errDisk, time.Second)), run.Failure{Message: "disk full"}},
		"message and cause": {
			&sdk.Error{Message: "saving", Err: errDisk, Retryable: true},
			run.Failure{Message: "saving: disk full", Retryable: true},
		},
		"details that are not JSON": {
			&sdk.Error{Message: "m", Details: func() {}},
			run.Failure{Message: "m", Details: []byte(`"the details cannot be encoded: json: unsupported type: func()"`)},
		},
		"denied": {sdk.Fail("denied", "no access"), run.Failure{Outcome: run.OutcomeDenied, Code: "denied", Message: "no access"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sdktest.Call(t.Context(), func(sdk.Context, struct{}) (struct{}, error) {
				return struct{}{}, test.err
			}, struct{}{}, sdktest.Options{})
			if test.want.Outcome == "" {
				test.want.Outcome = run.OutcomeFailed
			}
			if diff := cmp.Diff(&test.want, got.Failure); diff != "" {
				t.Error(diff)
			}
			if got.Outcome != test.want.Outcome {
				t.Errorf("outcome %q", got.Outcome)
			}
		})
	}
}

func TestNoError(t *testing.T) {
	t.Parallel()
	if sdk.Retry(nil, time.Second) != nil || sdk.Permanent(nil) != nil {
		t.Error("nil became an error")
	}
	if err := sdk.Permanent(fmt.Errorf("a: %w", errDisk)); !errors.Is(err, errDisk) {
		t.Errorf("%v does not unwrap to its cause", err)
	}
}

func nop(sdk.Context, struct{}) (struct{}, error) { return struct{}{}, nil }

func TestRegistrationPanics(t *testing.T) {
	t.Parallel()
	sdk.Function("taken", nop)
	tests := map[string]func(){
		`flowhost: the function "taken" is registered twice`:        func() { sdk.Function("taken", nop) },
		`flowhost: a function needs a name`:                         func() { sdk.Function("", nop) },
		`flowhost: the function name "_start" is reserved`:          func() { sdk.Function("_start", nop) },
		`flowhost: the function name "flowhost_warmup" is reserved`: func() { sdk.Function("flowhost_warmup", nop) },
		`flowhost: function missing is nil`:                         func() { sdk.Function[int, int]("missing", nil) },
	}
	for want, register := range tests {
		func() {
			defer func() {
				if got := recover(); got != want {
					t.Errorf("panicked with %v, want %s", got, want)
				}
			}()
			register()
		}()
	}
}

package sdktest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/flowhost/flowhost/run"
	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

type greeting struct {
	Name string `json:"name"`
}

func init() {
	sdk.Plugin(sdk.Info{Name: "greetings", Version: "1", Description: "Greets."})
	sdk.Function("greet", greet).Describe("Greets somebody.")
	sdk.Function("wait", wait)
	sdk.Function("main", greet)
}

func greet(ctx sdk.Context, in greeting) (string, error) {
	config := struct {
		Word string `json:"word"`
	}{"Hello"}
	if err := ctx.Config(&config); err != nil {
		return "", err
	}
	ctx.Log().Info("greeting", "attempt", ctx.Call().Attempt)
	return config.Word + ", " + in.Name, nil
}

// wait ends when the call does.
func wait(ctx sdk.Context, _ struct{}) (struct{}, error) {
	for ctx.Err() == nil {
		time.Sleep(time.Millisecond)
	}
	return struct{}{}, context.Cause(ctx)
}

func TestCall(t *testing.T) {
	t.Parallel()
	got := sdktest.Call(t.Context(), greet, greeting{"you"}, sdktest.Options{
		Config:   map[string]string{"word": "Bye"},
		Identity: sdk.Identity{Attempt: 3},
	})
	want := sdktest.Result[string]{
		Value: "Bye, you",
		Result: run.Result{
			Outcome: run.OutcomeSucceeded,
			Output:  json.RawMessage(`"Bye, you"`),
			Log: run.Log{Lines: []run.LogLine{
				{Level: "info", Message: "greeting", Fields: json.RawMessage(`{"attempt":3}`)},
			}},
		},
	}
	got.Duration = 0
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestInvoke(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		function, input string
		output          string
		failure         *run.Failure
	}{
		"by name":       {function: "greet", input: `{"name":"you"}`, output: `"Hello, you"`},
		"main function": {input: `{}`, output: `"Hello, "`},
		"bad input": {function: "greet", input: `{"name":1}`, failure: &run.Failure{
			Outcome: run.OutcomeFailed, Code: "input", Message: "input.name: a string is expected, not number",
		}},
		"input that is not JSON": {function: "greet", input: `{`, failure: &run.Failure{
			Outcome: run.OutcomeRejected, Code: run.CodeExpression,
			Message: "the test's json.RawMessage cannot be encoded: json: error calling MarshalJSON for type json.RawMessage: unexpected end of JSON input",
		}},
		"unknown function": {function: "great", input: `{}`, failure: &run.Failure{
			Outcome: run.OutcomeRejected, Code: run.CodeFunction,
			Message: `the plugin has no function "great"; it has: greet, wait, main`,
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := sdktest.Invoke(t.Context(), test.function, json.RawMessage(test.input), sdktest.Options{})
			if diff := cmp.Diff(test.failure, got.Failure); diff != "" || string(got.Output) != test.output {
				t.Errorf("output %s\n%s", got.Output, diff)
			}
		})
	}
}

func TestIdentity(t *testing.T) {
	t.Parallel()
	identify := func(ctx sdk.Context, _ struct{}) (sdk.Identity, error) { return ctx.Call(), nil }
	got := sdktest.Call(t.Context(), identify, struct{}{}, sdktest.Options{})
	want := sdk.Identity{
		Flow: "test", Run: "01KDVDNC00TESTTESTTESTTEST", Task: "test", Attempt: 1,
		IdempotencyKey: "01KDVDNC00TESTTESTTESTTEST/test/",
		Scheduled:      time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC),
	}
	if diff := cmp.Diff(want, got.Value); diff != "" {
		t.Error(diff)
	}
	if _, err := run.ParseID(want.Run); err != nil {
		t.Error(err)
	}
	given := sdk.Identity{Flow: "f", Run: "r", Task: "t", Key: "k", Attempt: 2, IdempotencyKey: "i", Scheduled: want.Scheduled.Add(1)}
	if got := sdktest.Call(t.Context(), identify, struct{}{}, sdktest.Options{Identity: given}); got.Value != given {
		t.Errorf("the identity changed to %+v", got.Value)
	}
}

func TestTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		got := sdktest.Call(ctx, wait, struct{}{}, sdktest.Options{})
		want := &run.Failure{Outcome: run.OutcomeTimedOut, Code: run.CodeTimeout, Message: "context deadline exceeded", Retryable: true}
		if diff := cmp.Diff(want, got.Failure); diff != "" || got.Duration != time.Minute {
			t.Errorf("after %s\n%s", got.Duration, diff)
		}
	})
}

// A canceled call has failed as a host has it: by its cause, with what the
// function says of its end.
func TestCancel(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		cause   error
		end     func(sdk.Context) (string, error)
		message string
		details string
	}{
		"no words":       {nil, func(ctx sdk.Context) (string, error) { return "", ctx.Err() }, "canceled", ""},
		"as the cause":   {fmt.Errorf("%w: wrong order", run.ErrCanceled), func(ctx sdk.Context) (string, error) { return "", ctx.Err() }, "canceled: wrong order", ""},
		"another cause":  {errors.New("stop"), func(ctx sdk.Context) (string, error) { return "", ctx.Err() }, "canceled", ""},
		"with an answer": {nil, func(sdk.Context) (string, error) { return "done", nil }, "canceled", ""},
		"with words": {nil, func(ctx sdk.Context) (string, error) {
			return "", &sdk.Error{Code: "half", Message: "7 of 20", Err: ctx.Err(), Retryable: true, Details: 7}
		}, "canceled: half: 7 of 20: context canceled", "7"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithCancelCause(t.Context())
			got := sdktest.Call(ctx, func(ctx sdk.Context, _ struct{}) (string, error) {
				cancel(test.cause)
				<-ctx.Done()
				return test.end(ctx)
			}, struct{}{}, sdktest.Options{})
			want := &run.Failure{Outcome: run.OutcomeCanceled, Code: run.CodeCanceled, Message: test.message}
			if test.details != "" {
				want.Details = json.RawMessage(test.details)
			}
			if diff := cmp.Diff(want, got.Failure); diff != "" || got.Outcome != run.OutcomeCanceled || got.Output != nil || got.Value != "" {
				t.Errorf("%s %s\n%s", got.Outcome, got.Output, diff)
			}
		})
	}
}

func TestFunctionThatDoesNotLookIsNotCanceled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	got := sdktest.Call(ctx, func(sdk.Context, struct{}) (int, error) { cancel(); return 7, nil }, struct{}{}, sdktest.Options{})
	if got.Outcome != run.OutcomeSucceeded || got.Value != 7 {
		t.Errorf("%s %v", got.Outcome, got.Failure)
	}
	got = sdktest.Call(ctx, func(sdk.Context, struct{}) (int, error) { return 0, errors.New("no luck") }, struct{}{}, sdktest.Options{})
	if got.Outcome != run.OutcomeCanceled || got.Failure.Message != "canceled: no luck" {
		t.Errorf("%s %v", got.Outcome, got.Failure)
	}
}

func TestGraceRunsOut(t *testing.T) {
	t.Parallel()
	for given, want := range map[time.Duration]time.Duration{0: sdktest.DefaultGrace, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			sdktest.Call(ctx, func(ctx sdk.Context, _ struct{}) (int, error) {
				if _, canceled := ctx.Canceled(); canceled {
					t.Error("canceled before")
				}
				cancel()
				for _, step := range []struct{ wait, left time.Duration }{{0, want}, {want / 2, want / 2}, {time.Minute, time.Millisecond}} {
					time.Sleep(step.wait)
					if left, canceled := ctx.Canceled(); left != step.left || !canceled {
						t.Errorf("%v left, canceled %t; want %v", left, canceled, step.left)
					}
				}
				return 0, nil
			}, struct{}{}, sdktest.Options{Grace: given})
		})
	}
}

func TestOutputLimit(t *testing.T) {
	t.Parallel()
	repeat := func(_ sdk.Context, n int) (string, error) { return strings.Repeat("x", n), nil }
	quotes := len(`""`)
	if got := sdktest.Call(t.Context(), repeat, sdktest.DefaultOutputLimit-quotes, sdktest.Options{}); got.Failure != nil {
		t.Errorf("at the limit: %v", got.Failure)
	}
	over := sdktest.Call(t.Context(), repeat, 9, sdktest.Options{OutputLimit: 10})
	if over.Outcome != run.OutcomeRejected || over.Failure.Code != run.CodeOutputSize || over.Value != "" {
		t.Errorf("over the limit: %+v", over)
	}
}

func TestOptionsThatAreNotJSON(t *testing.T) {
	t.Parallel()
	got := sdktest.Call(t.Context(), greet, greeting{}, sdktest.Options{Config: math.NaN()})
	if got.Outcome != run.OutcomeRejected || !strings.Contains(got.Failure.Message, "the test's float64 cannot be encoded") {
		t.Errorf("got %+v", got.Failure)
	}
}

func TestFailureAsError(t *testing.T) {
	t.Parallel()
	got := sdktest.Call(t.Context(), func(sdk.Context, any) (int, error) {
		return 7, errors.New("no luck")
	}, nil, sdktest.Options{})
	if got.Failure.Error() != "no luck" || got.Value != 0 {
		t.Errorf("failure %v, value %d", got.Failure, got.Value)
	}
}

func TestManifest(t *testing.T) {
	t.Parallel()
	m := sdktest.Manifest()
	if m.Name != "greetings" || len(m.Functions) != 3 || m.Functions[0].Description != "Greets somebody." {
		t.Errorf("got %+v", m)
	}
}

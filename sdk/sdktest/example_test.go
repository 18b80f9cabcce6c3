package sdktest_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

func ExampleCall() {
	shout := func(ctx sdk.Context, text string) (string, error) {
		if text == "" {
			return "", sdk.Fail("silence", "there is nothing to shout")
		}
		ctx.Log().Info("shouting", "attempt", ctx.Call().Attempt)
		return strings.ToUpper(text), nil
	}

	good := sdktest.Call(context.Background(), shout, "hello", sdktest.Options{})
	fmt.Println(good.Value, string(good.Log.Lines[0].Fields))

	bad := sdktest.Call(context.Background(), shout, "", sdktest.Options{})
	fmt.Println(bad.Outcome, bad.Failure, bad.Failure.Retryable)
	// Output:
	// HELLO {"attempt":1}
	// failed silence: there is nothing to shout false
}

func ExampleInvoke() {
	got := sdktest.Invoke(context.Background(), "greet", []byte(`{"name": 7}`), sdktest.Options{})
	fmt.Println(got.Failure)
	// Output:
	// input: input.name: a string is expected, not number
}

package main

import (
	"testing"

	"github.com/flowhost/flowhost/sdk/sdktest"
)

func TestGreet(t *testing.T) {
	t.Parallel()
	got := sdktest.Call(t.Context(), greet, person{Name: "world"}, sdktest.Options{})
	if string(got.Output) != `{"text":"Hello, world!"}` {
		t.Errorf("output %s, failure %v", got.Output, got.Failure)
	}
	if len(got.Log.Lines) != 1 || string(got.Log.Lines[0].Fields) != `{"name":"world"}` {
		t.Errorf("log %+v", got.Log.Lines)
	}
}

func TestGreetNobody(t *testing.T) {
	t.Parallel()
	got := sdktest.Invoke(t.Context(), "greet", []byte(`{}`), sdktest.Options{})
	if got.Failure == nil || got.Failure.Code != "no_name" || got.Failure.Retryable {
		t.Errorf("failure %+v", got.Failure)
	}
}

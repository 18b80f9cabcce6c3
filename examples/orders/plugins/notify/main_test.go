package main

import (
	"testing"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

func TestNotify(t *testing.T) {
	t.Parallel()
	got := sdktest.Call(t.Context(), notify, note{" price failed\n"}, sdktest.Options{
		Config:   config{Channel: "operations"},
		Identity: sdk.Identity{Flow: "order_received"},
	})
	if want := (message{Channel: "operations", Text: "[order_received] price failed"}); got.Value != want {
		t.Errorf("got %+v, %v", got.Value, got.Failure)
	}
	if line := got.Log.Lines[0]; line.Level != "warn" || line.Message != got.Value.Text || string(line.Fields) != `{"channel":"operations"}` {
		t.Errorf("log %+v", line)
	}
}

func TestNotifyDefaults(t *testing.T) {
	t.Parallel()
	got := sdktest.Call(t.Context(), notify, note{"hi"}, sdktest.Options{})
	if got.Value.Channel != "general" {
		t.Errorf("channel %q", got.Value.Channel)
	}
	got = sdktest.Call(t.Context(), notify, note{" "}, sdktest.Options{})
	if got.Failure == nil || got.Failure.Code != "empty" {
		t.Errorf("nothing to tell gave %+v", got)
	}
}

package main

import (
	"testing"

	"github.com/flowhost/flowhost/sdk/sdktest"
)

func TestWarehouse(t *testing.T) {
	t.Parallel()
	first := sdktest.Call(t.Context(), copyTable, table{"eu", "orders"}, sdktest.Options{})
	again := sdktest.Call(t.Context(), copyTable, table{"eu", "orders"}, sdktest.Options{})
	if first.Value != again.Value || first.Value.Table != "eu.orders" {
		t.Errorf("%+v, then %+v", first.Value, again.Value)
	}
	if got := sdktest.Call(t.Context(), chat, chatNote{"hi"}, sdktest.Options{Config: config{Room: "data"}}); got.Value.By != "chat" {
		t.Errorf("%+v", got)
	}
	if got := sdktest.Call(t.Context(), chat, chatNote{"hi"}, sdktest.Options{}); got.Failure == nil || got.Failure.Code != "room" {
		t.Errorf("without a room: %+v", got)
	}
	if got := sdktest.Call(t.Context(), mail, letter{"done"}, sdktest.Options{}); got.Value.By != "mail" {
		t.Errorf("%+v", got)
	}
}

package main

import (
	"testing"

	"github.com/flowhost/flowhost/examples/orders/order"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

func TestReview(t *testing.T) {
	t.Parallel()
	o := order.Order{ID: "o-1", Customer: "ada", Total: 12_000_00}
	got := sdktest.Call(t.Context(), review, o, sdktest.Options{Config: config{Queue: "sales"}})
	if got.Failure != nil {
		t.Fatal(got.Failure)
	}
	number := got.Value.Ticket
	if want := (order.Ticket{Ticket: number, Order: "o-1", Customer: "ada", Total: 12_000_00, Status: order.Pending, Queue: "sales"}); got.Value != want {
		t.Errorf("got %+v", got.Value)
	}
	again := sdktest.Call(t.Context(), review, o, sdktest.Options{Config: config{Queue: "sales"}})
	if again.Value.Ticket != number {
		t.Errorf("a second attempt made ticket %s beside %s", again.Value.Ticket, number)
	}
}

func TestReviewConfig(t *testing.T) {
	t.Parallel()
	for message, c := range map[string]any{
		"config.queue is missing: it names who reviews": nil,
		"config.queue: a string is expected, not array": map[string]any{"queue": []string{"sales"}},
	} {
		got := sdktest.Call(t.Context(), review, order.Order{}, sdktest.Options{Config: c})
		if got.Failure == nil || got.Failure.Code != "config" || got.Failure.Message != message || got.Failure.Retryable {
			t.Errorf("config %v gave %+v", c, got.Failure)
		}
	}
}

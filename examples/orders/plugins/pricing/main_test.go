package main

import (
	"encoding/json"
	"testing"

	"github.com/flowhost/flowhost/examples/orders/order"
	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

// TestPrice calls the main function, as the flow's task "price" does, which
// names none.
func TestPrice(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		input, output string
		warnings      int
	}{
		"right total": {
			input:  `{"id":"o-1","customer":"ada","items":[{"sku":"A","quantity":3,"price":0.1}],"total":0.3,"note":"ignored"}`,
			output: `{"id":"o-1","customer":"ada","items":[{"sku":"A","quantity":3,"price":0.10}],"total":0.30}`,
		},
		"wrong total": {
			input:    `{"id":"o-2","customer":"ada","items":[{"sku":"A","quantity":1,"price":9999.99},{"sku":"B","quantity":1,"price":0.01}],"total":5}`,
			output:   `{"id":"o-2","customer":"ada","items":[{"sku":"A","quantity":1,"price":9999.99},{"sku":"B","quantity":1,"price":0.01}],"total":10000}`,
			warnings: 1,
		},
	}
	for name, test := range tests {
		got := sdktest.Invoke(t.Context(), "", json.RawMessage(test.input), sdktest.Options{})
		if string(got.Output) != test.output || len(got.Log.Lines) != test.warnings {
			t.Errorf("%s gave %s, %v, log %v", name, got.Output, got.Failure, got.Log.Lines)
		}
	}
}

func TestPriceOfInvalidOrder(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ input, code, message, details string }{
		"no items": {
			`{"customer":"ada"}`, "invalid_order", "the order is invalid: items is empty",
			`[{"field":"items","message":"is empty"}]`,
		},
		"two problems": {
			`{"items":[{"sku":"A","quantity":0,"price":1}]}`, "invalid_order", "the order is invalid: customer is missing",
			`[{"field":"customer","message":"is missing"},{"field":"items[0].quantity","message":"is 0; it must be between 1 and 100000"}]`,
		},
		"wrong type": {`{"items":{}}`, "input", "input.items: an array is expected, not object", ""},
		"no amount":  {`{"total":"1"}`, "input", `input: "1" is not an amount: a plain number is expected`, ""},
	}
	for name, test := range tests {
		got := sdktest.Invoke(t.Context(), "", json.RawMessage(test.input), sdktest.Options{})
		f := got.Failure
		if f == nil {
			t.Errorf("%s: no failure", name)
			continue
		}
		if f.Code != test.code || f.Message != test.message || string(f.Details) != test.details || f.Retryable {
			t.Errorf("%s: %+v, details %s", name, f, f.Details)
		}
	}
}

func TestApprove(t *testing.T) {
	t.Parallel()
	o := order.Order{ID: "o-1", Customer: "ada", Total: 1999}
	options := sdktest.Options{Identity: sdk.Identity{IdempotencyKey: "r/auto_approve/"}}
	got := sdktest.Call(t.Context(), approve, o, options).Value
	want := o.Ticket("r/auto_approve/", order.Approved, "")
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

package sdk_test

import (
	"context"
	"fmt"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdktest"
)

type Order struct {
	Items []Item `json:"items"`
}

type Item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Cents    int64  `json:"cents"`
}

type Price struct {
	Cents int64 `json:"cents"`
}

func init() {
	sdk.Function("price", price).Describe("Adds up the items of an order.")
}

func price(ctx sdk.Context, order Order) (Price, error) {
	if len(order.Items) == 0 {
		return Price{}, sdk.Fail("empty_order", "an order needs at least one item")
	}
	var p Price
	for _, item := range order.Items {
		p.Cents += int64(item.Quantity) * item.Cents
	}
	ctx.Log().Info("priced", "items", len(order.Items), "cents", p.Cents)
	return p, nil
}

// A plugin registers its functions in an init function. In a plugin this file
// would be package main, with an empty main.
func Example() {
	order := Order{Items: []Item{{SKU: "A-1", Quantity: 2, Cents: 995}}}
	got := sdktest.Call(context.Background(), price, order, sdktest.Options{})
	fmt.Println(got.Value.Cents)

	got = sdktest.Call(context.Background(), price, Order{}, sdktest.Options{})
	fmt.Println(got.Failure, got.Failure.Retryable)
	// Output:
	// 1990
	// empty_order: an order needs at least one item false
}

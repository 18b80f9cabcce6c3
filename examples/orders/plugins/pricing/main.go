// Command pricing is a plugin of the orders example: it prices orders and
// approves the small ones.
package main

import (
	"github.com/flowhost/flowhost/examples/orders/order"
	"github.com/flowhost/flowhost/sdk"
)

func init() {
	sdk.Plugin(sdk.Info{Name: "pricing", Version: "1.0.0", Description: "Prices orders."})
	sdk.Function("main", price).Describe("Checks an order and sets its total to the sum of its items.")
	sdk.Function("approve", approve).Describe("Approves an order without anybody looking at it.")
}

func price(ctx sdk.Context, o order.Order) (order.Order, error) {
	if problems := o.Problems(); problems != nil {
		return order.Order{}, &sdk.Error{
			Code:    "invalid_order",
			Message: "the order is invalid: " + problems[0].Field + " " + problems[0].Message,
			Details: problems,
		}
	}
	sum := o.Sum()
	if o.Total != sum {
		ctx.Log().Warn("the items do not add up to the order's total", "order", o.ID, "total", o.Total, "sum", sum)
	}
	o.Total = sum
	return o, nil
}

func approve(ctx sdk.Context, o order.Order) (order.Ticket, error) {
	ticket := o.Ticket(ctx.Call().IdempotencyKey, order.Approved, "")
	ctx.Log().Info("approved", "order", o.ID, "ticket", ticket.Ticket)
	return ticket, nil
}

func main() {}

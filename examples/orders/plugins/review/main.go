// Command review is a plugin of the orders example: it asks people to look at
// an order.
package main

import (
	"github.com/flowhost/flowhost/examples/orders/order"
	"github.com/flowhost/flowhost/sdk"
)

type config struct {
	Queue string `json:"queue"`
}

func init() {
	sdk.Plugin(sdk.Info{Name: "review", Version: "1.0.0", Description: "Tickets for people who decide."})
	sdk.Function("review", review).Describe("Puts an order into the queue of the config.").Config(config{})
}

func review(ctx sdk.Context, o order.Order) (order.Ticket, error) {
	var c config
	if err := ctx.Config(&c); err != nil {
		return order.Ticket{}, err
	}
	if c.Queue == "" {
		return order.Ticket{}, sdk.Fail("config", "config.queue is missing: it names who reviews")
	}
	ticket := o.Ticket(ctx.Call().IdempotencyKey, order.Pending, c.Queue)
	ctx.Log().Info("for review", "order", o.ID, "ticket", ticket.Ticket, "queue", c.Queue)
	return ticket, nil
}

func main() {}

// Package order holds what the plugins of the orders example pass on to each
// other: orders, amounts of money and tickets.
package order

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// Order is what a customer wants.
type Order struct {
	ID       string `json:"id"`
	Customer string `json:"customer"`
	Items    []Item `json:"items"`
	Total    Amount `json:"total"`
}

// Item is one line of an order.
type Item struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Price    Amount `json:"price"` // of one piece
}

// Bounds of an order. With them a sum of prices cannot overflow.
const (
	MaxItems    = 1000
	MaxQuantity = 100_000
	MaxPrice    = Amount(10_000_000_00)
)

// Sum is the total of the items, right for an order without problems.
func (o Order) Sum() Amount {
	var sum Amount
	for _, item := range o.Items {
		sum += Amount(item.Quantity) * item.Price
	}
	return sum
}

// Problem says what is wrong with one field of an order.
type Problem struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// Problems lists all that is wrong with the order, nil for nothing.
func (o Order) Problems() []Problem {
	var found []Problem
	add := func(field, message string) { found = append(found, Problem{field, message}) }
	if o.Customer == "" {
		add("customer", "is missing")
	}
	switch n := len(o.Items); {
	case n == 0:
		add("items", "is empty")
	case n > MaxItems:
		add("items", fmt.Sprintf("has %d entries; at most %d are allowed", n, MaxItems))
	}
	for i, item := range o.Items {
		field := fmt.Sprintf("items[%d].", i)
		if item.SKU == "" {
			add(field+"sku", "is missing")
		}
		if item.Quantity < 1 || item.Quantity > MaxQuantity {
			add(field+"quantity", fmt.Sprintf("is %d; it must be between 1 and %d", item.Quantity, MaxQuantity))
		}
		if item.Price < 0 || item.Price > MaxPrice {
			add(field+"price", fmt.Sprintf("is %s; it must be between 0 and %s", item.Price, MaxPrice))
		}
	}
	return found
}

// Ticket is how an order is decided.
type Ticket struct {
	Ticket   string `json:"ticket"`
	Order    string `json:"order"`
	Customer string `json:"customer"`
	Total    Amount `json:"total"`
	Status   Status `json:"status"`
	Queue    string `json:"queue"` // who has to decide; empty when decided
}

// Status is where a ticket stands.
type Status string

// States of a ticket.
const (
	Approved Status = "approved"
	Pending  Status = "pending"
)

// Ticket makes a ticket for the order. Its number follows from the key alone:
// with an attempt's idempotency key, a repeated attempt makes the same ticket.
func (o Order) Ticket(key string, status Status, queue string) Ticket {
	hash := sha256.Sum256([]byte(key))
	return Ticket{
		Ticket: "T-" + hex.EncodeToString(hash[:5]), Order: o.ID,
		Customer: o.Customer, Total: o.Total, Status: status, Queue: queue,
	}
}

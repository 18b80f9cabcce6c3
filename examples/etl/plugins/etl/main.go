// Command etl is a plugin that loads the orders of a shop into a database.
package main

import (
	"fmt"
	"net/url"
	"time"

	"github.com/flowhost/flowhost/sdk"
	"github.com/flowhost/flowhost/sdk/sdksql"
)

func init() {
	sdk.Plugin(sdk.Info{Name: "etl", Wants: []sdk.Capability{
		{Name: "connections", Why: "reads orders from the API shop and writes them to the database warehouse"},
		{Name: "publish", Why: "announces what it has loaded"},
	}})
	sdk.Function("extract", extract).Describe("Reads all orders, page by page.").Idempotent()
	sdk.Function("transform", transform).Describe("Leaves out what was canceled, and adds up each order.").Idempotent()
	sdk.Function("load", load).Describe("Writes orders; those that are there already are replaced.").Idempotent()
	sdk.Function("announce", announce).Describe("Publishes what was loaded.").Idempotent()
}

func main() {}

// Order is an order as the shop has it.
type Order struct {
	ID     string `json:"id"`
	Placed string `json:"placed"` // RFC 3339
	State  string `json:"state"`
	Lines  []Line `json:"lines"`
}

// Line is a part of an order.
type Line struct {
	SKU      string `json:"sku"`
	Quantity int    `json:"quantity"`
	Cents    int64  `json:"cents"`
}

// Page is a part of the shop's orders.
type Page struct {
	Orders []Order `json:"orders"`
	Next   string  `json:"next"` // cursor of the next page; empty on the last one
}

func extract(ctx sdk.Context, _ struct{}) ([]Order, error) {
	all, cursor := []Order{}, ""
	for pages := 1; ; pages++ {
		r, err := ctx.Fetch("shop", sdk.Request{URL: "/orders?after=" + url.QueryEscape(cursor)})
		if err != nil {
			return nil, fmt.Errorf("reading page %d: %w", pages, err)
		}
		var page Page
		if err := r.JSON(&page); err != nil {
			return nil, fmt.Errorf("reading page %d: %w", pages, err)
		}
		all = append(all, page.Orders...)
		ctx.Progress(0, fmt.Sprintf("%d orders from %d pages", len(all), pages))
		if cursor = page.Next; cursor == "" {
			return all, nil
		}
	}
}

// Row is an order as the warehouse has it.
type Row struct {
	ID     string    `json:"id"`
	Placed time.Time `json:"placed"`
	Items  int       `json:"items"`
	Cents  int64     `json:"cents"`
}

func transform(_ sdk.Context, orders []Order) ([]Row, error) {
	rows := []Row{}
	for _, o := range orders {
		if o.State == "canceled" {
			continue
		}
		placed, err := time.Parse(time.RFC3339, o.Placed)
		if err != nil {
			return nil, sdk.Fail("order", "order %s: %v", o.ID, err)
		}
		row := Row{ID: o.ID, Placed: placed.UTC()}
		for _, l := range o.Lines {
			row.Items += l.Quantity
			row.Cents += int64(l.Quantity) * l.Cents
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Loaded is what was written.
type Loaded struct {
	Orders int   `json:"orders"`
	Cents  int64 `json:"cents"`
}

const create = `CREATE TABLE IF NOT EXISTS orders (id TEXT PRIMARY KEY, placed TIMESTAMP NOT NULL, items INTEGER NOT NULL, cents BIGINT NOT NULL)`

const upsert = `INSERT INTO orders (id, placed, items, cents) VALUES ($1, $2, $3, $4)
	ON CONFLICT (id) DO UPDATE SET placed = excluded.placed, items = excluded.items, cents = excluded.cents`

// load writes all orders or none: an attempt that fails leaves nothing behind.
func load(ctx sdk.Context, rows []Row) (Loaded, error) {
	db := sdksql.Open(ctx, "warehouse")
	if _, err := db.Exec(create); err != nil {
		return Loaded{}, err
	}
	tx, err := db.Begin()
	if err != nil {
		return Loaded{}, err
	}
	defer tx.Rollback()
	var done Loaded
	for _, row := range rows {
		if _, err := tx.Exec(upsert, row.ID, row.Placed, row.Items, row.Cents); err != nil {
			return Loaded{}, fmt.Errorf("writing order %s: %w", row.ID, err)
		}
		done.Orders++
		done.Cents += row.Cents
	}
	return done, tx.Commit()
}

func announce(ctx sdk.Context, done Loaded) (struct{}, error) {
	message := fmt.Sprintf(`{"orders":%d,"cents":%d}`, done.Orders, done.Cents)
	return struct{}{}, ctx.Publish("etl.loaded", []byte(message))
}

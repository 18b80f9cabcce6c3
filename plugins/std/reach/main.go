// Plugin reach is the standard functions that reach something outside: HTTP, databases, buckets
// of keys, subjects of NATS, mail and chats. Each reaches what its task is granted.
//
// A flow names a part of it, and a function of that part:
//
//	task "orders" {
//	  plugin   = "std/http"
//	  function = "request"
//	}
//
// To read it: a file for each part.
package main

import "github.com/flowhost/flowhost/sdk"

func init() {
	sdk.Plugin(sdk.Info{
		Name: "std/reach", Version: "1", Licence: "Apache-2.0",
		Description: "HTTP, databases, buckets of keys, subjects of NATS, mail and chats.",
	})
	sdk.Function("http.request", request).Describe("Makes an HTTP request and returns the answer.")
	sdk.Function("http.pages", pages).Describe("Gets all pages of a list and returns its items.")
	sdk.Function("sql.query", query).Describe("Runs a query and returns its rows.").Idempotent()
	sdk.Function("sql.execute", execute).Describe("Runs a statement that changes a database.")
	sdk.Function("sql.insert", insert).Describe("Inserts rows into a table, or updates them, in one transaction.")
	sdk.Function("kv.get", get).Describe("Returns the value of a key.").Idempotent()
	sdk.Function("kv.put", put).Describe("Sets the value of a key.").Idempotent()
	sdk.Function("kv.delete", remove).Describe("Deletes a key.").Idempotent()
	sdk.Function("kv.list", list).Describe("Returns keys that begin alike.").Idempotent()
	sdk.Function("kv.count", count).Describe("Adds to a number and returns the sum.")
	sdk.Function("message.publish", publish).Describe("Publishes a message.").Idempotent()
	sdk.Function("message.request", ask).Describe("Sends a message and returns the answer.")
	sdk.Function("mail.send", send).Describe("Sends a mail.")
	sdk.Function("webhook.post", post).Describe("Posts JSON to a webhook.")
	sdk.Function("webhook.slack", slack).Describe("Posts a text to an incoming webhook of Slack, or of a chat that takes the same form.")
}

func main() {}

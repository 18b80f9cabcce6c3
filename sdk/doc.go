// Package sdk is what the author of a flowhost plugin in Go writes against. It
// needs only the standard library and the standard toolchain.
//
// A plugin is a program that registers functions in an init function; its main
// is empty and never runs:
//
//	// Command pricing is a plugin that prices orders.
//	package main
//
//	import "github.com/flowhost/flowhost/sdk"
//
//	type Order struct {
//		Items []Item `json:"items"`
//	}
//
//	type Item struct {
//		SKU      string `json:"sku"`
//		Quantity int    `json:"quantity"`
//		Cents    int64  `json:"cents"`
//	}
//
//	type Price struct {
//		Cents int64 `json:"cents"`
//	}
//
//	func init() {
//		sdk.Function("price", price).Describe("Adds up the items of an order.")
//	}
//
//	func price(ctx sdk.Context, order Order) (Price, error) {
//		if len(order.Items) == 0 {
//			return Price{}, sdk.Fail("empty_order", "an order needs at least one item")
//		}
//		var p Price
//		for _, item := range order.Items {
//			p.Cents += int64(item.Quantity) * item.Cents
//		}
//		ctx.Log().Info("priced", "items", len(order.Items), "cents", p.Cents)
//		return p, nil
//	}
//
//	func main() {}
//
// It is built as a reactor, which keeps the registered functions callable, with
// its description in a section of the module:
//
//	flowhost plugin build -o pricing.wasm
//
// which is this, and the section:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o pricing.wasm .
//
// and used by a task of a flow:
//
//	task "price" {
//	  plugin = "./pricing.wasm"
//	  input  = { items = [{ sku = "A-1", quantity = 2, cents = 995 }] }
//	}
//
// A task that names no function calls the plugin's only one, or, where there are
// several, the one that is registered as "main".
//
// # Input and output
//
// Input, config and output are JSON, decoded and encoded by encoding/json.
// Fields of the input that the function's type does not have are ignored. Input
// that does not fit the type fails the call with the code "input" and the name
// of the field, before the function is called. A function that takes or gives
// nothing has struct{} in that place; json.RawMessage takes any input and keeps
// its bytes.
//
// # Outside
//
// A [Context] reaches what the flow grants to the task: web APIs (Fetch, and package sdkhttp
// for libraries that take an *http.Client), databases (package sdksql), buckets of keys and
// values, subjects of NATS, artifacts, mail. The host makes the requests and has the
// credentials. A denial is an error with the line that would grant it.
//
// # Failure
//
// A function that cannot succeed returns an error. A plain error may succeed on
// another attempt, which is what the retries of its task are for; [Fail] makes
// one that will not, with a code that the flow's author can decide on, and
// [Retry], [Permanent] and [Error] carry more. All of them are found through
// wrapping (errors.As). A panic ends the instance and the call's outcome is
// trapped, with the panic's message and stack in the log.
//
// # Time
//
// A guest has one thread and nothing interrupts it from within: the
// cancellation of a [Context] is seen when the function asks for it, or waits.
// Long loops should look at ctx.Err() now and then, and return it. A function that
// is canceled has a moment to wind down, see Canceled of [Context], and one that
// does not look is ended by the host then. At the deadline every call is ended at
// once.
//
// # Tests
//
// A plugin also builds natively, where its functions can be called like any
// other; package sdktest gives them a Context and reports what the host would.
package sdk

// Package sdktest runs functions of a plugin natively, for unit tests without
// wasm. Input, config and output pass through JSON as they do with a host, and
// a failure is reported as the host would record it:
//
//	func TestPrice(t *testing.T) {
//		got := sdktest.Call(t.Context(), price, Order{}, sdktest.Options{})
//		if got.Failure == nil || got.Failure.Code != "empty_order" {
//			t.Errorf("an empty order gave %v", got.Failure)
//		}
//	}
//
// The context given to [Call] is the attempt's: its deadline is the attempt's
// deadline, and canceling it cancels the call. Unlike a host, the package ends no
// function that does not end by itself. A panic is not caught: it fails
// the test with its stack, where a host would record the outcome trapped.
//
// A call whose context was asked for its channel has a goroutine that ends with
// the function.
package sdktest

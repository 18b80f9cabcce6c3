// Package flowtest runs the tests of flows: each on its own engine, in the
// virtual time of package virtual, with the calls that the test mocks.
//
// A task without a mock calls its real module, where there is an Invoker and the
// module is granted nothing: what a function computes of its input is the same in
// a test. One that may touch something outside must be mocked, and a test that
// calls it fails.
//
// The same test gives the same result, as far as real modules do.
package flowtest

// Command bench measures the built program from outside: how long it takes to
// start, what it holds in memory when idle, and how long a publisher waits for
// the result of a run, beside a bare request and reply over the same server.
//
//	go run . -binary ../../bin/flowhost
//	go run . -idle                 what a host of 100 flows costs while nothing happens
//	go run . -modules 1,10,100     starts with so many different Go modules
//	go run . -flows ../../examples the memory of a host of these flows before any call
//
// Its tests hold the benchmarks of the engine with the journals that it can have.
// It is a separate module, so that projects that are measured side by side
// never reach the build of flowhost.
package main

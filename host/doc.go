// Package host runs functions of untrusted WebAssembly modules: each call in a
// pristine instance, bounded in time, memory, output and log, with no access to the
// machine and with the same clock and random numbers in every attempt.
//
// To read a call, start at invoke.go, then:
//
//	modulecache.go  the module by digest, prepared once: preparation.go walks it
//	                (preflight.go), rewrites it and compiles it (compiler.go, sandbox.go)
//	module.go       its functions, from its exports or its manifest.go
//	pool.go         the call waits for a place and memory, fairly among modules
//	setup.go        the module's first instance is initialized; image.go keeps its state
//	image.go        gives an instance in that state: an idle one that was reset, or another
//	instance.go     runs one export; interrupt.go and grace.go end it early
//	invocation.go   the guest's view of the call: input, files, clock, streams, log
//	flowhostabi.go  the functions that a reactor imports
//	outcome.go      the result of the call, a run.Result
//
// Packages below internal: wasm walks and rewrites modules, compile makes native code in
// child processes, manifest parses manifests, memory resets linear memories, wasi and
// guestfs are the guest's system interface and files. docs/host.md explains each step.
//
// The imports and exports of a module decide which of two ABIs it has. A command
// ("wasi") reads its input from stdin and writes its output to stdout. A reactor
// ("flowhost") exports functions () -> i32 and calls the host through the imports of
// flowhost:task/v1, see package abi.
//
// # Isolation
//
// A guest sees its call and nothing else: no files except those that the call was
// granted, no environment, no network, no state of an earlier call. Its wall clock
// starts at the call's nominal time and moves by a fixed step per read and by the
// guest's sleeps; its random numbers are a function of run, task and key. A host
// function answers a request that it refuses with a negative error number and never
// ends the guest for it.
//
// An instance holds nothing of a call but its memory and globals, which the host resets
// when the call has ended, in whatever way. It closes an instance that cannot be reset.
// Only the goroutine of the call writes to the memory, on one thread unless the memory is
// released first: the reset may rely on that thread's count of page faults.
// Descriptors, streams, clocks and files belong to the call.
//
// # Stopping
//
// Guests run native code that nothing can interrupt from outside. The rewrite has
// inserted checks, which call the host about every 100 µs; there, and in each host
// function, a call ends whose context has ended, whose fuel is used up or whose
// recursion is too deep. When its call is canceled, a guest that asks whether it
// should stop has [Config].Grace to end itself.
//
// # Goroutines
//
// The host prepares a module in a separate goroutine, so that a caller who gives up
// does not cancel it for the others who wait. Timers close idle instances and unused
// modules. [Host.Close] ends and awaits all of them; if its context ends before, the
// goroutine in which it waits ends with the last call.
package host

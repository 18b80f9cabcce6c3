// Package host runs functions of WebAssembly modules that somebody else wrote:
// each call in an instance of its own, bounded in time, memory, output and log,
// with no access to the machine and the same clock and random numbers in every
// attempt.
//
// The path of a call:
//
//	Invoke ─► library      module by digest, prepared once, then cached: walked by
//	                       the preflight, rewritten, compiled by wazero (sandbox)
//	       ─► pool         waits for a place and memory, in turn with other modules
//	       ─► image        gives an instance in the state of the first call: an idle
//	                       one that went back to it, or another one
//	       ─► instance     runs one export; afterwards it goes back to the image
//	       ─► outcome      what the guest did, as a run.Result
//
// docs/host.md explains each of them.
//
// Two ABIs are told apart by what a module imports and exports. A command
// ("wasi") reads its input from stdin and writes its output to stdout. A reactor
// ("flowhost") exports functions () -> i32 and speaks to the host through the
// imports of flowhost:task/v1, see package abi.
//
// # Isolation
//
// A guest sees its call and nothing else: no files but those that the call was
// granted, no environment, no network, no state of an earlier call. Its wall clock
// starts at the call's nominal time and moves by a fixed step per read and by what
// it sleeps; its random numbers are a function of run, task and key. A host
// function answers a request it refuses with a negative error number and never
// ends the guest for it.
//
// An instance holds nothing of a call but its memory and globals, which are put
// back when the call has ended, in whatever way. One that cannot be put back is
// closed. Descriptors, streams, clocks and files belong to the call.
//
// # Stopping
//
// Guests run native code that nothing can interrupt from outside. The rewrite has
// put checks into it, which call the host about every 100 µs; there, and in each
// host function, a call ends whose context has ended, whose fuel is used up or
// whose recursion is too deep. A guest that can ask whether it should stop has
// [Config].Grace to do so by itself when its call is canceled.
//
// # Goroutines
//
// Preparing a module runs in a goroutine of the host, so that a caller who gives
// up does not spoil it for the others who wait. A timer gives up idle instances.
// [Host.Close] ends and awaits all of them; if its own time is up before, the
// goroutine in which it waits ends with the last call.
package host

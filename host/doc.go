// Package host runs functions of WebAssembly modules that somebody else wrote:
// each call in an instance of its own, bounded in time, memory, output and log,
// with no access to the machine and the same clock and random numbers in every
// attempt.
//
// The path of a call:
//
//	Invoke ─► library      module by digest, prepared once, then cached
//	                       walked by the preflight before it is compiled
//	       ─► pool         waits, in order of arrival, for an instance and its memory
//	       ─► sandbox      runs one export of a pristine instance (wazero)
//	       ─► outcome      what the guest did, as a run.Result
//
// Two ABIs are told apart by what a module imports and exports. A command
// ("wasi") reads its input from stdin and writes its output to stdout. A reactor
// ("flowhost") exports functions () -> i32 and speaks to the host through the
// imports of flowhost:task/v1, see package abi.
//
// # Isolation
//
// A guest sees its call and nothing else: no files, no environment, no network,
// arguments beyond a name, or state of an earlier call. Its wall clock starts at
// the call's nominal time and moves by a fixed step per read and by what it
// sleeps; its random numbers are a function of run, task and key. A host function
// answers a request it refuses with a negative error number and never ends the
// guest for it.
//
// # Preflight
//
// A module is somebody else's bytes too. Before wazero sees any, a decoder of our
// own walks all of them within [PreflightLimits] and refuses, as a *[ModuleError],
// what could end the process while it is decoded or compiled and what no guest
// may use. wazero is then given a module without custom sections and with a
// maximum for each table; the digest stays that of the original.
//
// # Goroutines
//
// Preparing a module runs in a goroutine of the host, so that a caller who gives
// up does not spoil it for the others who wait; wazero watches the context of
// each running call in one. [Host.Close] ends and awaits all of them; if its own
// time is up before, the goroutine in which it waits ends with the last call.
package host

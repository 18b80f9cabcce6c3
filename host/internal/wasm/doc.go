// Package wasm walks every byte of a WebAssembly module before a runtime sees
// any, so that no module can end the process that decodes or compiles it.
//
// [Decode] reads the binary format of the WebAssembly core specification 2.0,
// section 5, with fixed-width SIMD. It decides how large a module may be in each
// of its dimensions and what later proposals it may not use; it does not check
// types, which is the runtime's work. A number that defines how many elements
// follow is compared with its limit and with the bytes that are left before
// anything is done with it, so that decoding takes time and memory in proportion
// to the input.
//
// [Module.Rewrite] then gives a module that can be interrupted and that can be
// brought back to its first state, although the runtime does neither.
//
// The package imports the standard library only, starts no goroutines and keeps
// no reference to a module but in what Decode returns.
package wasm

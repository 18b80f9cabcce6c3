// Package spectest is tests only: it runs the WebAssembly core test suite to
// prove that rewriting a module changes nothing that the module can observe.
//
// The suite is the one that wazero carries in its own module, in the form that
// wast2json gives it: JSON scripts and binaries. Each script runs four times, as
// it is and rewritten, on wazero's compiler and on its interpreter. Each command
// must have the verdict that the suite asks for, and rewritten the very same one:
// the same results, bit by bit, or the same kind of trap.
//
// Only commands about WebAssembly's text form are left out.
package spectest

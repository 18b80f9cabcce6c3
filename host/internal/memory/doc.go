// Package memory holds linear memories of WebAssembly instances that go back to
// an image of themselves after each call.
//
// A [Memory] is written to by a guest. [Memory.Freeze] makes an [Image] of what
// it holds at that moment; [Memory.Adopt] puts a memory of another instance into
// the same state; [Memory.Reset] brings it back to that state later.
//
// On Linux a memory is address space that is reserved once, so that it never
// moves when it grows, and an image is a sealed file in memory (memfd) that all
// its memories map privately: pages that nobody writes to exist once. There are
// four ways back, see [Way]; each image measures those that the kernel offers
// on the pages that its first call wrote to, and keeps the fastest. Elsewhere,
// and where the kernel refuses, memories are slices that are copied back.
//
// An image of a memory that is based on another image is over that one: it shares what has
// not changed, and its memories map its own pages over those of the other. It costs what
// has changed. [Image.Flatten] writes it as a whole when there is time for that.
//
// The package imports the standard library and golang.org/x/sys only and starts
// no goroutines.
package memory

// Package dag holds directed acyclic graphs of named nodes and says which nodes
// are unblocked while a graph is being worked through.
//
// A [Builder] takes nodes and edges, [Builder.Build] refuses cycles with the
// shortest one there is, and the [Graph] that comes out never changes: it is
// safe for concurrent use and shared by everything that runs over it. A
// [Frontier] is the progress of one run over a graph; one goroutine owns it.
// Nodes are given out as soon as the last node upstream of them is complete:
// there are no waves.
//
// Nodes are dense integers in order of addition. That order breaks all ties, so
// every answer of the package is the same for the same additions and edges.
//
// The package starts no goroutines and imports only the standard library.
package dag

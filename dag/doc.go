// Package dag holds directed acyclic graphs of named nodes and runs functions over
// them.
//
// A [Builder] takes nodes and edges, [Builder.Build] refuses cycles with the
// shortest one there is, and the [Graph] that comes out never changes: it is
// safe for concurrent use and shared by everything that runs over it. A [Spec]
// builds a [Plan], which is a graph whose nodes have values: it also takes
// dependencies before the nodes that they name, refuses repeated ones, and reports
// everything that is wrong at once.
//
// [Graph.Walk] and [Plan.Walk] call a function for each node as soon as the last
// node upstream is done: there are no waves. [Timeout] and [Retry] wrap such
// functions. [WalkOptions] bound how many run at a time and state what a failure
// stops; the [Result] reports how each node ended. Of the nodes that could start, the
// one with the longest way to go does. [Graph.DOT] and [Graph.Mermaid] draw graphs.
//
// A [Frontier] is for programs that run nodes in another way, in other processes or
// over restarts: the progress of one run over a graph, owned by one goroutine.
//
// Nodes are dense integers in order of addition. That order breaks all ties, so
// every answer of the package is the same for the same additions and edges, except
// for what the timing of a walk decides.
//
// A walk starts goroutines as it has nodes for them, at most [WalkOptions.Workers]
// at a time; each ends when no node is ready, and all have ended when Walk returns.
// Nothing else in the package starts any. It imports only the standard library.
package dag

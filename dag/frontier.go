package dag

import (
	"fmt"
	"slices"
)

// Frontier is the progress of one run over a graph: which nodes are unblocked
// now. It does not know how nodes end; whoever owns it decides from the nodes
// upstream what becomes of an unblocked one. It is not safe for concurrent use.
type Frontier struct {
	graph   *Graph
	blocked []int32 // by node: how many upstream nodes are open, or a state below
	ready   []int   // every node unblocked so far; has room for all, so it never moves
	handed  int     // how many of ready were handed out
	open    int     // nodes that are not complete
}

// States of a node that has been handed out, in place of its count.
const (
	stateHanded   = -1
	stateComplete = -2
)

// Frontier is the progress of a new run: nothing is complete yet.
func (g *Graph) Frontier() *Frontier {
	f := &Frontier{
		graph:   g,
		blocked: make([]int32, g.Len()),
		ready:   make([]int, 0, g.Len()),
		open:    g.Len(),
	}
	for i := range f.blocked {
		f.blocked[i] = int32(g.up.count(i))
		if f.blocked[i] == 0 {
			f.ready = append(f.ready, i)
		}
	}
	return f
}

// Ready hands out the nodes that are unblocked and were not handed out yet, in
// order of addition. The slice belongs to the frontier, stays as it is, and must
// not be modified.
func (f *Frontier) Ready() []int {
	nodes := f.ready[f.handed:len(f.ready):len(f.ready)]
	f.handed = len(f.ready)
	slices.Sort(nodes)
	for _, i := range nodes {
		f.blocked[i] = stateHanded
	}
	return nodes
}

// CompleteError reports that a node was completed that was not under way. Nothing
// has changed.
type CompleteError struct {
	Node   int
	Reason string
}

func (e *CompleteError) Error() string {
	return fmt.Sprintf("node %d cannot be completed: %s", e.Node, e.Reason)
}

// Complete settles a node that was handed out, however it ended, and unblocks
// the nodes downstream that waited for nothing else. It fails with
// *CompleteError when the node is complete, was not handed out or does not exist.
func (f *Frontier) Complete(i int) error {
	if i < 0 || i >= len(f.blocked) {
		return &CompleteError{Node: i, Reason: fmt.Sprintf("the graph has %d nodes", len(f.blocked))}
	}
	switch f.blocked[i] {
	case stateHanded:
	case stateComplete:
		return &CompleteError{Node: i, Reason: fmt.Sprintf("%q is complete already", f.graph.ID(i))}
	default:
		return &CompleteError{Node: i, Reason: fmt.Sprintf("%q was not handed out", f.graph.ID(i))}
	}
	f.blocked[i] = stateComplete
	f.open--
	for _, j := range f.graph.down.of(i) {
		if f.blocked[j]--; f.blocked[j] == 0 {
			f.ready = append(f.ready, j)
		}
	}
	return nil
}

// Done reports whether all nodes are complete.
func (f *Frontier) Done() bool { return f.open == 0 }

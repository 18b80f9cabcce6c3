package dag

import (
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
)

// ErrSkip is what a node's function returns, alone or wrapped, to have the nodes
// downstream skipped. It is no failure.
var ErrSkip = errors.New("skip the nodes downstream")

// State is how a node ended in a walk.
type State uint8

// States of nodes.
const (
	NotRun    State = iota // the walk was stopped before it started
	Succeeded              // its function returned nil
	Failed                 // its function returned an error or panicked
	Skipped                // its function returned ErrSkip, or a node upstream failed or was skipped
	Canceled               // it was under way when the walk was stopped, and gave up
)

func (s State) String() string {
	names := [...]string{"not run", "succeeded", "failed", "skipped", "canceled"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("State(%d)", uint8(s))
}

// Result is how the nodes of a walk ended.
type Result struct {
	graph *Graph
	cells []cell
	errs  map[int]error // of nodes whose function has returned one
}

// State is how the node ended.
func (r *Result) State(node int) State { return r.cells[node].state }

// Err is the error that the node's function has returned, nil when it did not run.
// It is a *[PanicError] when the function panicked.
func (r *Result) Err(node int) error { return r.errs[node] }

// Count is how many nodes ended in this state.
func (r *Result) Count(s State) int {
	n := 0
	for i := range r.cells {
		if r.cells[i].state == s {
			n++
		}
	}
	return n
}

// SkippedBy is the node because of which this one was skipped: one that failed or
// returned [ErrSkip], which may be the node itself. There is none for a node that was
// not skipped.
func (r *Result) SkippedBy(node int) (by int, ok bool) {
	if r.cells[node].state != Skipped {
		return 0, false
	}
	for r.errs[node] == nil {
		up := r.graph.Upstream(node)
		node = up[slices.IndexFunc(up, func(i int) bool { return r.cells[i].state == Failed || r.cells[i].state == Skipped })]
	}
	return node, true
}

// failures are the errors of the nodes that failed, in order of addition.
func (r *Result) failures() []error {
	var errs []error
	for _, node := range slices.Sorted(maps.Keys(r.errs)) {
		if r.cells[node].state == Failed {
			errs = append(errs, r.failure(node))
		}
	}
	return errs
}

func (r *Result) failure(node int) *NodeError {
	return &NodeError{Node: node, ID: r.graph.ID(node), Err: r.errs[node]}
}

// NodeError is the failure of a node of a walk.
type NodeError struct {
	Node int
	ID   string
	Err  error // what its function has returned
}

func (e *NodeError) Error() string { return fmt.Sprintf("node %q: %v", e.ID, e.Err) }

// Unwrap is Err.
func (e *NodeError) Unwrap() error { return e.Err }

// PanicError is the error of a node whose function panicked.
type PanicError struct {
	Value any    // what panic was called with
	Stack []byte // of the goroutine, as [debug.Stack] has it
}

func newPanicError(value any) *PanicError {
	return &PanicError{Value: value, Stack: debug.Stack()}
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the panic's value when that is an error, else nil.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

package dag

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// WalkOptions define how a graph is walked. The zero value works.
type WalkOptions struct {
	// Workers is how many nodes may be under way at once. Default: GOMAXPROCS.
	// Nodes that mostly wait want more.
	Workers int

	// KeepGoing lets nodes that do not depend on a failed one run all the same, and
	// makes Walk return all errors. Default: the first error stops the walk.
	KeepGoing bool

	// Weight is how long a node is expected to take. Of nodes that could start, the
	// one with the longest way to the end does. It is asked once for each node before
	// anything runs. Default: all nodes take equally long.
	Weight func(node int) time.Duration

	// Before is called before each node that starts, After when its function has
	// come back, with its error. Both run on the goroutine of the node, so that
	// several may run at a time. Default: nothing is called.
	Before func(node int)
	After  func(node int, err error)
}

// OptionError reports that an option of a walk makes no sense. Nothing has run.
type OptionError struct {
	Option string // name of the field
	Reason string
}

func (e *OptionError) Error() string {
	return fmt.Sprintf("WalkOptions.%s %s", e.Option, e.Reason)
}

// Walk calls do once for each node, after it has returned nil for all nodes
// upstream, and returns when all calls have. What a node's function wrote, those
// downstream may read.
//
// A node fails when do returns an error or panics ([PanicError]). The nodes
// downstream of it are skipped; so are those of a node for which do returns an
// error that is [ErrSkip]. The first failure stops the walk unless
// [WalkOptions.KeepGoing] is set: do's context ends with the failure as its cause
// and no further node starts. The end of ctx stops the walk too.
//
// The error is the first node's *[NodeError]; with KeepGoing all of them joined,
// in order of addition. If the end of ctx kept nodes from running or from
// succeeding, ctx's cause is the error, joined with those of nodes that failed. The
// result is never nil, and reports how each node ended.
//
// Walk fails with *[OptionError] before anything runs.
func (g *Graph) Walk(ctx context.Context, do Func[int], o WalkOptions) (*Result, error) {
	w := &walk{
		graph:     g,
		do:        hooked(o.Before, o.After, do),
		keepGoing: o.KeepGoing,
		workers:   o.Workers,
		cells:     make([]cell, g.Len()),
	}
	w.result = Result{graph: g, cells: w.cells, errs: map[int]error{}}
	rank, err := g.check(&w.workers, o)
	if err != nil {
		return &w.result, err
	}
	w.ctx, w.stop = context.WithCancelCause(ctx)
	defer w.stop(nil)
	w.done = w.ctx.Done()
	w.run(rank)
	return &w.result, w.err(ctx)
}

// check fills in defaults and gives the nodes' ranks.
func (g *Graph) check(workers *int, o WalkOptions) ([]int32, error) {
	if *workers < 0 {
		return nil, &OptionError{"Workers", fmt.Sprintf("is %d: give 1 or more, or 0 for GOMAXPROCS", *workers)}
	}
	if *workers == 0 {
		*workers = runtime.GOMAXPROCS(0)
	}
	if o.Weight == nil {
		return g.height, nil
	}
	weight := make([]time.Duration, g.Len())
	for i := range weight {
		if weight[i] = o.Weight(i); weight[i] < 0 {
			return nil, &OptionError{"Weight", fmt.Sprintf("of node %q is %v: give 0 or more", g.ID(i), weight[i])}
		}
	}
	return g.ranks(weight), nil
}

// walk is one walk over a graph. A worker is a goroutine that lives while there
// are nodes for it: none waits for work. A worker continues with a node that it has
// unblocked itself where no other has a longer way to go, so that a chain passes
// no queue and no lock.
type walk struct {
	graph     *Graph
	do        Func[int]
	keepGoing bool
	workers   int
	ctx       context.Context
	stop      context.CancelCauseFunc
	done      <-chan struct{} // of ctx

	cells []cell       // by node
	top   atomic.Int32 // ready.top(), to be read without the lock

	mu      sync.Mutex
	ready   ready
	running int        // workers that have not ended
	coming  bool       // one of them has not taken its first node
	failure *NodeError // the first
	result  Result
	ended   sync.WaitGroup
}

// cell is a node in a walk. All of it is in one place in memory, because in a large
// graph the way there is what takes time.
type cell struct {
	blocked atomic.Int32 // upstream nodes that have not succeeded, and bitSkipped
	rank    int32        // the longer the path from it, the higher; from 1
	next    int32        // of ready: 1 + the node behind it in its line
	state   State        // written by the worker that settles the node
}

// bitSkipped keeps the count of a node that is skipped from becoming zero.
const bitSkipped = 1 << 30

func (w *walk) run(rank []int32) {
	highest := int32(0)
	for i := range w.cells {
		c := &w.cells[i]
		c.rank = rank[i]
		highest = max(highest, c.rank)
		c.blocked.Store(int32(w.graph.up.count(i)))
	}
	w.ready = ready{cells: w.cells, lines: make([]line, highest+1)}
	for i := range w.cells {
		if w.cells[i].blocked.Load() == 0 {
			w.ready.push(int32(i))
		}
	}
	w.mu.Lock()
	w.callWorker()
	w.mu.Unlock()
	w.ended.Wait()
}

// err is what Walk returns once all workers have ended.
func (w *walk) err(parent context.Context) error {
	var errs []error
	switch {
	case w.failure == nil:
	case w.keepGoing:
		errs = w.result.failures()
	default:
		errs = []error{w.failure}
	}
	stoppedByFailure := !w.keepGoing && context.Cause(w.ctx) == error(w.failure)
	if parent.Err() != nil && !stoppedByFailure && w.result.Count(NotRun)+w.result.Count(Canceled) > 0 {
		errs = slices.Insert(errs, 0, context.Cause(parent))
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

package dag

import (
	"context"
	"errors"
)

// none is no node.
const none int32 = -1

// errGoexit is the error of a node whose function ended its goroutine.
var errGoexit = errors.New("the function called runtime.Goexit")

// callWorker starts a worker when there are nodes for one. One comes at a time, and
// calls the next itself: so nodes that are done before a goroutine can start
// cause few of them. It keeps this true: while a node is ready, all workers are
// busy or one is coming. The lock must be held.
func (w *walk) callWorker() {
	top := w.ready.top()
	w.top.Store(top)
	if top == 0 || w.coming || w.running == w.workers || w.stopped() {
		return
	}
	w.coming = true
	w.running++
	w.ended.Add(1)
	go (&worker{walk: w}).work()
}

func (w *walk) stopped() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// take gives a worker its next node from the queue, or none: then the worker has
// ended. The lock must be held.
func (w *walk) take() int32 {
	if w.ready.top() == 0 {
		w.running--
		return none
	}
	node := w.ready.pop()
	w.callWorker()
	return node
}

type worker struct {
	*walk
	freed []int32 // nodes that the last one has unblocked
}

func (w *worker) work() {
	defer w.ended.Done()
	node := w.begin()
	for node != none {
		node = w.follow(node)
	}
}

// follow works from node on until the worker has ended or a function has
// panicked: then it gives the node to continue with. There is one deferred call for
// many nodes.
func (w *worker) follow(node int32) (next int32) {
	inside := false // the node's function
	defer func() {
		if !inside {
			return
		}
		if value := recover(); value != nil {
			w.fail(node, newPanicError(value))
			next = w.fromQueue()
			return
		}
		w.fail(node, errGoexit)
		w.leave()
	}()
	for node != none {
		if w.stopped() {
			w.leave()
			return none
		}
		inside = true
		err := w.do(w.ctx, int(node))
		inside = false
		if err == nil {
			node = w.succeed(node)
		} else {
			w.fail(node, err)
			node = w.fromQueue()
		}
	}
	return none
}

func (w *worker) begin() int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.coming = false
	return w.take()
}

func (w *worker) fromQueue() int32 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.take()
}

// leave ends the worker although nodes may be left.
func (w *worker) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running--
	w.callWorker()
}

// succeed unblocks what waited for the node, and gives the next one.
func (w *worker) succeed(node int32) int32 {
	w.cells[node].state = Succeeded
	w.freed = w.freed[:0]
	rank, longest := int32(0), 0 // of the freed one with the longest way to go
	for _, j := range w.graph.down.of(int(node)) {
		// A node that waits for this one alone is nobody else's to count down.
		c := &w.cells[j]
		if c.blocked.Load() != 1 && c.blocked.Add(-1) != 0 {
			continue
		}
		if c.rank > rank {
			rank, longest = c.rank, len(w.freed)
		}
		w.freed = append(w.freed, int32(j))
	}
	if len(w.freed) == 1 && rank >= w.top.Load() {
		return w.freed[0]
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.freed) == 0 {
		return w.take()
	}
	next := w.freed[longest]
	ownNext := rank >= w.ready.top()
	for _, j := range w.freed {
		if j != next || !ownNext {
			w.ready.push(j)
		}
	}
	if !ownNext {
		return w.take()
	}
	w.callWorker()
	return next
}

// fail notes how the node ended and skips what waited for it.
func (w *worker) fail(node int32, err error) {
	state := w.stateAfter(err)
	w.cells[node].state = state
	if state != Canceled {
		w.skip(node)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.result.errs[int(node)] = err
	if state == Failed && w.failure == nil {
		w.failure = w.result.failure(int(node))
		if !w.keepGoing {
			w.stop(w.failure)
		}
	}
}

func (w *walk) stateAfter(err error) State {
	_, panicked := err.(*PanicError)
	switch {
	case panicked: // with whatever
		return Failed
	case errors.Is(err, ErrSkip):
		return Skipped
	case w.ctx.Err() != nil && (errors.Is(err, w.ctx.Err()) || errors.Is(err, context.Cause(w.ctx))):
		return Canceled
	}
	return Failed
}

// skip settles all nodes downstream. Whoever sets a node's bit answers for it.
func (w *worker) skip(node int32) {
	w.freed = append(w.freed[:0], node)
	for len(w.freed) > 0 {
		last := len(w.freed) - 1
		i := w.freed[last]
		w.freed = w.freed[:last]
		for _, j := range w.graph.down.of(int(i)) {
			if w.cells[j].blocked.Or(bitSkipped)&bitSkipped == 0 {
				w.cells[j].state = Skipped
				w.freed = append(w.freed, int32(j))
			}
		}
	}
}

package gate

import (
	"context"
	"errors"
	"sync"

	"github.com/flowhost/flowhost/internal/fairq"
)

// MaxWaiting bounds the operations of one flow that wait at a gate, for a place or for the
// rate.
const MaxWaiting = 1000

// errCrowded is returned to a flow that has MaxWaiting operations waiting.
var errCrowded = errors.New("too many operations of the flow wait")

// turns is a number of places for which flows take turns.
type turns struct {
	mu      sync.Mutex
	free    int // 0 while anybody waits
	queue   fairq.Queue[*waiter]
	waiting map[string]int // in the queue, by flow
}

// waiter is an operation that waits. Its channel is closed once it has a place.
type waiter struct{ granted chan struct{} }

// enter waits for a place. Without an error, leave must follow.
func (t *turns) enter(ctx context.Context, flow string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	w, err := t.begin(flow)
	if w == nil {
		return err
	}
	select {
	case <-w.granted:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.granted: // in the meantime
		return nil
	default:
	}
	t.queue.Withdraw(func(other *waiter) bool { return other == w })
	t.gone(flow)
	return ctx.Err()
}

// begin takes a free place, or begins to wait for one.
func (t *turns) begin(flow string) (*waiter, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.free > 0:
		t.free--
		return nil, nil
	case t.waiting[flow] == MaxWaiting:
		return nil, errCrowded
	}
	w := &waiter{make(chan struct{})}
	t.queue.Push(w, flow, 0, nil)
	if t.waiting == nil {
		t.waiting = map[string]int{}
	}
	t.waiting[flow]++
	return w, nil
}

// leave passes a place on to the flow whose turn it is.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	w, flow, ok := t.queue.Pop(anyFlow)
	if !ok {
		t.free++
		return
	}
	t.queue.Done(flow, nil) // the queue orders those that wait, free counts places
	t.gone(flow)
	close(w.granted)
}

func anyFlow(string) bool { return true }

func (t *turns) gone(flow string) {
	if t.waiting[flow]--; t.waiting[flow] == 0 {
		delete(t.waiting, flow)
	}
}

// ahead is how many waiting operations have their turn before the next one of a flow, at
// least.
func (t *turns) ahead(flow string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := t.waiting[flow]
	n := own
	for other, waiting := range t.waiting {
		if other != flow {
			n += min(waiting, max(own, 1))
		}
	}
	return n
}

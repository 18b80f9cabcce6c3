package gate

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// MaxWaiting bounds the operations of one flow that wait at a gate, for a place or for the
// rate. As many attempts can be in flight.
const MaxWaiting = 10_000

// errCrowded is returned to a flow that has MaxWaiting operations waiting.
var errCrowded = errors.New("too many operations of the flow wait")

// turns is a number of places for which flows take turns, in the order of fairq. That package
// orders by priorities and limits, too, and looks through a queue for what leaves it; here
// each operation may give up by itself.
type turns struct {
	mu    sync.Mutex
	free  int              // 0 while anybody waits
	lines map[string]*line // by flow; none is empty
	order list.List        // of *line, the one whose turn it is first
}

// line is the operations of one flow that wait, the oldest first.
type line struct {
	flow    string
	waiting list.List // of chan struct{}, closed once the operation has a place
	place   *list.Element
}

// enter waits for a place. Without an error, leave must follow.
func (t *turns) enter(ctx context.Context, flow string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	waiter, granted, err := t.begin(flow)
	if waiter == nil {
		return err
	}
	select {
	case <-granted:
		return nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-granted: // in the meantime
		return nil
	default:
	}
	l := t.lines[flow]
	l.waiting.Remove(waiter)
	t.tidy(l)
	return ctx.Err()
}

// begin takes a free place, without a waiter then, or begins to wait for one.
func (t *turns) begin(flow string) (waiter *list.Element, granted chan struct{}, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.free > 0 {
		t.free--
		return nil, nil, nil
	}
	l := t.lines[flow]
	if l == nil {
		l = &line{flow: flow}
		l.place = t.order.PushBack(l)
		if t.lines == nil {
			t.lines = map[string]*line{}
		}
		t.lines[flow] = l
	}
	if l.waiting.Len() == MaxWaiting {
		return nil, nil, errCrowded
	}
	granted = make(chan struct{})
	return l.waiting.PushBack(granted), granted, nil
}

// leave passes a place on to the flow whose turn it is.
func (t *turns) leave() {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := t.order.Front()
	if first == nil {
		t.free++
		return
	}
	l := first.Value.(*line)
	close(l.waiting.Remove(l.waiting.Front()).(chan struct{}))
	t.order.MoveToBack(first)
	t.tidy(l)
}

// tidy forgets a line that is empty.
func (t *turns) tidy(l *line) {
	if l.waiting.Len() == 0 {
		t.order.Remove(l.place)
		delete(t.lines, l.flow)
	}
}

// ahead is how many waiting operations have their turn before the next one of a flow, at
// least.
func (t *turns) ahead(flow string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	own := 0
	if l := t.lines[flow]; l != nil {
		own = l.waiting.Len()
	}
	n := own
	for other, l := range t.lines {
		if other != flow {
			n += min(l.waiting.Len(), max(own, 1))
		}
	}
	return n
}

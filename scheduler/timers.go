package scheduler

// timers is an indexed 4-ary heap. The heap's nodes hold their whole key, so that
// comparing touches nothing else; slots hold the place of a timer in the heap, so that
// it can be removed. Neither holds pointers: the garbage collector does not look
// into them. Values lie beside the slots. A timer takes 28 bytes and its value.
//
// No two timers ever have the same order, so that is also what a handle is
// checked by.
type timers[T any] struct {
	len    int
	heap   slab[node] // from root on
	slots  slab[int32]
	values slab[T]
	free   int32 // first free slot
	used   int32 // slots taken so far; those from here on are free too
}

// The children of a node at i are at 4(i-2) and after: a group of siblings, 96
// bytes, begins at a multiple of 4, lies on two cache lines and within one chunk
// of the slab.
const (
	arity = 4
	root  = 3
)

func parent(i int) int     { return i/arity + 2 }
func firstChild(i int) int { return (i - 2) * arity }

// none ends the list of free slots.
const none = -1

type node struct {
	due   int64  // UTC nanoseconds
	order uint64 // among equal instants; never 0
	slot  int32
}

func (n node) before(m node) bool {
	return n.due < m.due || n.due == m.due && n.order < m.order
}

func newTimers[T any]() timers[T] { return timers[T]{free: none} }

// first is the earliest timer. There is one.
func (q *timers[T]) first() *node { return q.heap.at(root) }

// add takes a slot for a value. There are fewer than math.MaxInt32 timers.
func (q *timers[T]) add(due int64, order uint64, value T) Timer {
	i := q.free
	if i == none {
		i = q.used
		q.used++
		q.slots.grow(int(q.used))
		q.values.grow(int(q.used))
	} else {
		q.free = -*q.slots.at(int(i)) - 2
	}
	*q.values.at(int(i)) = value
	q.len++
	q.heap.grow(root + q.len)
	q.up(root+q.len-1, node{due, order, i})
	return Timer{order: order, slot: i}
}

// find is where in the heap a timer is, unless its handle is stale.
func (q *timers[T]) find(t Timer) (int, bool) {
	if t.slot >= q.used {
		return 0, false
	}
	i := int(*q.slots.at(int(t.slot)))
	return i, i >= root && q.heap.at(i).order == t.order
}

// move gives the timer at i another due time.
func (q *timers[T]) move(i int, due int64) {
	n := *q.heap.at(i)
	n.due = due
	q.place(i, n)
}

// remove takes the timer at i out and frees its slot.
func (q *timers[T]) remove(i int) T {
	freed := q.heap.at(i).slot
	last := root + q.len - 1
	moved := *q.heap.at(last)
	q.len--
	if i < last {
		q.place(i, moved)
	}
	q.heap.shrink(root + q.len)
	v := q.values.at(int(freed))
	value := *v
	*v = *new(T)
	*q.slots.at(int(freed)) = -q.free - 2
	q.free = freed
	if q.len == 0 {
		q.free, q.used = none, 0
		q.slots.shrink(0)
		q.values.shrink(0)
	}
	return value
}

// place puts n where there is a hole at i.
func (q *timers[T]) place(i int, n node) {
	if i > root && n.before(*q.heap.at(parent(i))) {
		q.up(i, n)
		return
	}
	q.down(i, n)
}

func (q *timers[T]) up(i int, n node) {
	for i > root {
		above := q.heap.at(parent(i))
		if !n.before(*above) {
			break
		}
		q.set(i, *above)
		i = parent(i)
	}
	q.set(i, n)
}

func (q *timers[T]) down(i int, n node) {
	end := root + q.len
	for {
		child := firstChild(i)
		if child >= end {
			break
		}
		least := child
		best := q.heap.at(child)
		for child++; child < min(firstChild(i)+arity, end); child++ {
			if c := q.heap.at(child); c.before(*best) {
				least, best = child, c
			}
		}
		if !best.before(n) {
			break
		}
		q.set(i, *best)
		i = least
	}
	q.set(i, n)
}

func (q *timers[T]) set(i int, n node) {
	*q.heap.at(i) = n
	*q.slots.at(int(n.slot)) = int32(i)
}

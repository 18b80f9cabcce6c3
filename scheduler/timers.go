package scheduler

import "math"

// arity of the heap. Four children of 24 bytes lie on two cache lines, and the
// heap is half as deep as a binary one.
const arity = 4

// none ends the list of free slots.
const none = -1

// timers is an indexed heap. The heap's nodes hold their whole key, so that
// comparing touches nothing else; slots say where in the heap a timer is, so
// that it can be removed. Neither holds pointers: the garbage collector does not
// look into them. Values lie beside the slots. Memory is that of the most timers
// held at one time, whatever is added and removed.
type timers[T any] struct {
	heap   []node
	slots  []slot
	values []T
	free   int32  // first free slot
	seq    uint64 // of the next addition
}

type node struct {
	due  int64 // UTC nanoseconds
	seq  uint64
	slot int32
}

func (n node) before(m node) bool {
	return n.due < m.due || n.due == m.due && n.seq < m.seq
}

type slot struct {
	index      int32  // in the heap; the next free slot while the slot is free
	generation uint32 // changes when the slot is freed; never 0
}

func newTimers[T any]() timers[T] { return timers[T]{free: none} }

// add takes a slot for a value. There are fewer than math.MaxInt32 timers.
func (q *timers[T]) add(due int64, value T) Timer {
	i := q.free
	if i == none {
		i = int32(len(q.slots))
		q.slots = append(q.slots, slot{generation: 1})
		q.values = append(q.values, value)
	} else {
		q.free = q.slots[i].index
		q.values[i] = value
	}
	q.heap = append(q.heap, node{})
	q.up(len(q.heap)-1, q.node(due, i))
	return Timer{slot: i, generation: q.slots[i].generation}
}

func (q *timers[T]) node(due int64, slot int32) node {
	q.seq++
	return node{due: due, seq: q.seq, slot: slot}
}

// find is where in the heap a timer is, unless its handle is stale.
func (q *timers[T]) find(t Timer) (int, bool) {
	if int(t.slot) >= len(q.slots) || q.slots[t.slot].generation != t.generation {
		return 0, false
	}
	return int(q.slots[t.slot].index), true
}

// move gives the timer at i another due time.
func (q *timers[T]) move(i int, due int64) {
	q.place(i, q.node(due, q.heap[i].slot))
}

// remove takes the timer at i out and frees its slot.
func (q *timers[T]) remove(i int) T {
	freed := q.heap[i].slot
	last := len(q.heap) - 1
	moved := q.heap[last]
	q.heap = q.heap[:last]
	if i < last {
		q.place(i, moved)
	}
	value := q.values[freed]
	clear(q.values[freed : freed+1])
	s := &q.slots[freed]
	s.index, q.free = q.free, freed
	if s.generation == math.MaxUint32 {
		s.generation = 0
	}
	s.generation++
	return value
}

// place puts n where there is a hole at i.
func (q *timers[T]) place(i int, n node) {
	if i > 0 && n.before(q.heap[(i-1)/arity]) {
		q.up(i, n)
		return
	}
	q.down(i, n)
}

func (q *timers[T]) up(i int, n node) {
	for i > 0 {
		parent := (i - 1) / arity
		if !n.before(q.heap[parent]) {
			break
		}
		q.set(i, q.heap[parent])
		i = parent
	}
	q.set(i, n)
}

func (q *timers[T]) down(i int, n node) {
	for {
		first := i*arity + 1
		if first >= len(q.heap) {
			break
		}
		least := first
		for child := first + 1; child < min(first+arity, len(q.heap)); child++ {
			if q.heap[child].before(q.heap[least]) {
				least = child
			}
		}
		if !q.heap[least].before(n) {
			break
		}
		q.set(i, q.heap[least])
		i = least
	}
	q.set(i, n)
}

func (q *timers[T]) set(i int, n node) {
	q.heap[i] = n
	q.slots[n.slot].index = int32(i)
}

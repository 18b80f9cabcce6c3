package fairq

import (
	"cmp"
	"slices"
)

// Queue holds items that may start as soon as a worker is free and their limits
// have room. The zero value is empty and ready.
type Queue[T any] struct {
	size   int
	clock  uint64                   // ticks with each push and pop
	levels []*level[T]              // by descending priority; those with items
	flows  map[string]*flowQueue[T] // those with waiting or running items
	spare  *fifo[T]                 // an emptied one, for the next that begins
}

// flowQueue is what one flow has waiting and running, over all priorities.
type flowQueue[T any] struct {
	flow             string
	running, waiting int
	fifos            []*fifo[T] // a few: one for each priority and set of limits
}

// level is the waiting items of one priority.
type level[T any] struct {
	priority int
	groups   []*limitGroup[T] // as many as there are sets of limits
}

// limitGroup is the waiting items of one priority that have the same limits. Its
// fifos are linked, the one whose flow had its turn longest ago first.
type limitGroup[T any] struct {
	level       *level[T]
	limits      []*Limit
	first, last *fifo[T]
}

// fifo is the waiting items of one flow in one limitGroup.
type fifo[T any] struct {
	flow       *flowQueue[T]
	group      *limitGroup[T]
	prev, next *fifo[T]
	turn       uint64 // when its flow last had one at this priority, or the fifo began
	items      []entry[T]
	head       int // items before it have been taken
}

type entry[T any] struct {
	item  T
	since uint64
}

// Len is the number of waiting items.
func (q *Queue[T]) Len() int { return q.size }

// Running is the number of items that were popped and are not done yet.
func (q *Queue[T]) Running() int {
	n := 0
	for _, f := range q.flows {
		n += f.running
	}
	return n
}

// Empty reports whether nothing waits and nothing runs. The queue keeps nothing then.
func (q *Queue[T]) Empty() bool { return q.size == 0 && len(q.flows) == 0 && len(q.levels) == 0 }

// Push adds an item of a flow. The caller passes an item's limits in the same order
// each time.
func (q *Queue[T]) Push(item T, flow string, priority int, limits []*Limit) {
	q.size++
	q.clock++
	for _, l := range limits {
		l.waiting++
	}
	of := q.flow(flow)
	of.waiting++
	f := of.fifo(priority, limits)
	if f == nil {
		f = q.newFifo()
		f.flow, f.group, f.turn = of, q.level(priority).group(limits), q.clock
		f.group.append(f) // its turn is after that of all others
		of.fifos = append(of.fifos, f)
	}
	f.items = append(f.items, entry[T]{item, q.clock})
}

// Pop takes out the next item among those whose limits have room and whose flows are
// admitted, and returns its flow. The item counts as running, and holds a slot of each of
// its limits, until Done. [Admit] lets [Places] decide which flows are admitted.
func (q *Queue[T]) Pop(admits func(flow string) bool) (item T, flow string, ok bool) {
	for _, l := range q.levels {
		if f := l.first(admits); f != nil {
			of := f.flow
			return q.take(of.oldest(l)), of.flow, true
		}
	}
	return item, "", false
}

// first is a fifo of the flow whose turn it is, nil when no item of the level may
// start.
func (l *level[T]) first(admits func(flow string) bool) *fifo[T] {
	var first *fifo[T]
	for _, g := range l.groups {
		if !haveRoom(g.limits) {
			continue
		}
		for f := g.first; f != nil; f = f.next {
			if admits(f.flow.flow) {
				if first == nil || f.turn < first.turn {
					first = f
				}
				break
			}
		}
	}
	return first
}

// oldest is the fifo with the flow's oldest item of a level, among those that may
// start.
func (of *flowQueue[T]) oldest(at *level[T]) *fifo[T] {
	var oldest *fifo[T]
	for _, f := range of.fifos {
		if f.group.level == at && haveRoom(f.group.limits) && (oldest == nil || f.items[f.head].since < oldest.items[oldest.head].since) {
			oldest = f
		}
	}
	return oldest
}

func (q *Queue[T]) take(f *fifo[T]) T {
	item := f.items[f.head].item
	f.items[f.head] = entry[T]{}
	f.head++
	f.flow.waiting--
	f.flow.running++
	q.size--
	q.clock++
	for _, l := range f.group.limits {
		l.waiting--
		l.running++
	}
	f.flow.hadTurn(f.group.level, q.clock)
	switch {
	case f.head == len(f.items):
		q.drop(f)
	case f.head > len(f.items)/2 && f.head > 1024:
		f.items = append([]entry[T](nil), f.items[f.head:]...)
		f.head = 0
	}
	return item
}

// hadTurn puts the flow's fifos of a level behind those of all other flows.
func (of *flowQueue[T]) hadTurn(at *level[T], now uint64) {
	for _, f := range of.fifos {
		if f.group.level == at {
			f.turn = now
			f.group.unlink(f)
			f.group.append(f)
		}
	}
}

// drop forgets a fifo that is empty.
func (q *Queue[T]) drop(f *fifo[T]) {
	f.group.unlink(f)
	f.flow.fifos = without(f.flow.fifos, f)
	g := f.group
	if cap(f.items) <= maxSpareItems {
		*f = fifo[T]{items: f.items[:0]}
		q.spare = f
	}
	if g.first != nil {
		return
	}
	g.level.groups = without(g.level.groups, g)
	if len(g.level.groups) == 0 {
		q.levels = without(q.levels, g.level)
	}
}

// maxSpareItems is the capacity up to which an emptied fifo is kept.
const maxSpareItems = 16

func (q *Queue[T]) newFifo() *fifo[T] {
	if f := q.spare; f != nil {
		q.spare = nil
		return f
	}
	return new(fifo[T])
}

func without[E comparable](list []E, gone E) []E {
	i := slices.Index(list, gone)
	return slices.Delete(list, i, i+1)
}

// Done ends an item of the flow that was popped, and frees its slots.
func (q *Queue[T]) Done(flow string, limits []*Limit) {
	for _, l := range limits {
		l.running--
	}
	of := q.flows[flow]
	of.running--
	q.forget(of)
}

// Withdraw takes out the waiting items that match.
func (q *Queue[T]) Withdraw(match func(T) bool) []T {
	var out []T
	for _, l := range slices.Clone(q.levels) {
		for _, g := range slices.Clone(l.groups) {
			for f := g.first; f != nil; {
				next := f.next
				out = append(out, q.withdrawFrom(f, match)...)
				f = next
			}
		}
	}
	return out
}

func (q *Queue[T]) withdrawFrom(f *fifo[T], match func(T) bool) []T {
	of := f.flow
	var out []T
	var kept []entry[T]
	for _, e := range f.items[f.head:] {
		if match(e.item) {
			out = append(out, e.item)
		} else {
			kept = append(kept, e)
		}
	}
	f.items, f.head = kept, 0
	q.size -= len(out)
	of.waiting -= len(out)
	for _, l := range f.group.limits {
		l.waiting -= len(out)
	}
	if len(kept) == 0 {
		q.drop(f)
	}
	q.forget(of)
	return out
}

func (q *Queue[T]) flow(name string) *flowQueue[T] {
	of := q.flows[name]
	if of == nil {
		if q.flows == nil {
			q.flows = map[string]*flowQueue[T]{}
		}
		of = &flowQueue[T]{flow: name}
		q.flows[name] = of
	}
	return of
}

func (q *Queue[T]) forget(of *flowQueue[T]) {
	if of.running == 0 && of.waiting == 0 {
		delete(q.flows, of.flow)
	}
}

// fifo finds the flow's fifo of a priority and limits, nil when it has none.
func (of *flowQueue[T]) fifo(priority int, limits []*Limit) *fifo[T] {
	for _, f := range of.fifos {
		if f.group.level.priority == priority && slices.Equal(f.group.limits, limits) {
			return f
		}
	}
	return nil
}

func (q *Queue[T]) level(priority int) *level[T] {
	i, found := slices.BinarySearchFunc(q.levels, priority, func(l *level[T], p int) int { return cmp.Compare(p, l.priority) })
	if !found {
		q.levels = slices.Insert(q.levels, i, &level[T]{priority: priority})
	}
	return q.levels[i]
}

func (l *level[T]) group(limits []*Limit) *limitGroup[T] {
	for _, g := range l.groups {
		if slices.Equal(g.limits, limits) {
			return g
		}
	}
	g := &limitGroup[T]{level: l, limits: limits}
	l.groups = append(l.groups, g)
	return g
}

// append makes a fifo the last one.
func (g *limitGroup[T]) append(f *fifo[T]) {
	f.prev, f.next = g.last, nil
	if g.last == nil {
		g.first = f
	} else {
		g.last.next = f
	}
	g.last = f
}

func (g *limitGroup[T]) unlink(f *fifo[T]) {
	if f.prev == nil {
		g.first = f.next
	} else {
		f.prev.next = f.next
	}
	if f.next == nil {
		g.last = f.prev
	} else {
		f.next.prev = f.prev
	}
}

package dag

import (
	"cmp"
	"slices"
	"time"
)

// ready is the unblocked nodes that no worker has taken: a line for each rank,
// first come first served, and a heap of the ranks whose lines are not empty. As
// few ranks are in use at a time, both ends cost next to nothing.
type ready struct {
	cells []cell
	lines []line  // by rank
	ranks minHeap // negated, so that the highest is on top
}

type line struct {
	first int32 // 1 + the node at its head
	last  int32 // the node at its end
}

// top is the rank of the node that comes next, 0 when there is none.
func (r *ready) top() int32 {
	if len(r.ranks) == 0 {
		return 0
	}
	return int32(-r.ranks[0])
}

func (r *ready) push(node int32) {
	rank := r.cells[node].rank
	l := &r.lines[rank]
	if l.first == 0 {
		l.first = node + 1
		r.ranks.push(int(-rank))
	} else {
		r.cells[l.last].next = node + 1
	}
	l.last = node
}

// pop takes out the node that comes next. There must be one.
func (r *ready) pop() int32 {
	l := &r.lines[r.top()]
	node := l.first - 1
	l.first = r.cells[node].next
	if l.first == 0 {
		r.ranks.pop()
	}
	return node
}

// ranks are the nodes' places by the length of the longest path from them, from 1
// for the shortest. Nodes with paths of one length share a rank.
func (g *Graph) ranks(weight []time.Duration) []int32 {
	length := make([]time.Duration, g.Len())
	for k := len(g.order) - 1; k >= 0; k-- {
		i := g.order[k]
		for _, j := range g.down.of(i) {
			length[i] = max(length[i], length[j])
		}
		length[i] = max(length[i], length[i]+weight[i]) // stays put where the sum would overflow
	}
	byLength := slices.Clone(g.order)
	slices.SortFunc(byLength, func(i, j int) int { return cmp.Compare(length[i], length[j]) })
	rank := make([]int32, g.Len())
	current := int32(0)
	for k, i := range byLength {
		if k == 0 || length[i] > length[byLength[k-1]] {
			current++
		}
		rank[i] = current
	}
	return rank
}

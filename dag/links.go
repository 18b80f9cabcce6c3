package dag

import "iter"

// links is the neighbors of all nodes in one direction, in one piece of memory:
// those of node i are nodes[start[i]:start[i+1]].
type links struct {
	start []int
	nodes []int
}

func (l *links) of(i int) []int { return l.nodes[l.start[i]:l.start[i+1]:l.start[i+1]] }

func (l *links) count(i int) int { return l.start[i+1] - l.start[i] }

// turned is the edges from their other ends.
func (l *links) turned() iter.Seq2[int, int] {
	return func(yield func(int, int) bool) {
		for i := range len(l.start) - 1 {
			for _, j := range l.of(i) {
				if !yield(j, i) {
					return
				}
			}
		}
	}
}

// linksOf is the neighbors of n nodes in both directions, ascending and without
// repetitions. Edges that are grouped by one end come out of a grouping by their
// other end in ascending order, so three groupings take the place of sorting.
func linksOf(n int, edges []edge) (up, down links) {
	up = group(n, func(yield func(int, int) bool) {
		for _, e := range edges {
			if !yield(int(e.to), int(e.from)) {
				return
			}
		}
	})
	down = group(n, up.turned())
	up = group(n, down.turned())
	return up, down
}

// group collects for each first node the second ones in the order of the
// sequence, which is read twice. Of equal edges in a row one stays.
func group(n int, edges iter.Seq2[int, int]) links {
	l := links{start: make([]int, n+1)}
	last := make([]int, n) // by first node: second node+1 of its last edge
	for i, j := range edges {
		if last[i] != j+1 {
			last[i] = j + 1
			l.start[i+1]++
		}
	}
	for i := range n {
		l.start[i+1] += l.start[i]
	}
	l.nodes = make([]int, l.start[n])
	end := make([]int, n)
	copy(end, l.start)
	clear(last)
	for i, j := range edges {
		if last[i] != j+1 {
			last[i] = j + 1
			l.nodes[end[i]] = j
			end[i]++
		}
	}
	return l
}

package dag

import (
	"slices"
	"strings"
)

// CycleError says that nodes depend on each other in a circle.
type CycleError struct {
	// Path is the ids along a shortest cycle, each depending on the one before.
	// It starts at the node of the cycle that was added first and ends with the
	// same id.
	Path []string
}

func (e *CycleError) Error() string {
	return "dependency cycle: " + strings.Join(e.Path, " → ")
}

// shortestCycle is the path of a shortest cycle; of several, the one whose
// first node was added first. It takes a breadth-first search from each node,
// cut off at the best length so far.
func (g *Graph) shortestCycle() []string {
	s := cycleSearch{graph: g, parent: make([]int, g.Len()), seen: make([]int, g.Len())}
	var best []int
	for start := range g.Len() {
		if path := s.from(start, len(best)); path != nil {
			best = path
		}
	}
	ids := make([]string, len(best))
	for i, node := range best {
		ids[i] = g.ids[node]
	}
	return ids
}

type cycleSearch struct {
	graph  *Graph
	parent []int
	seen   []int // start+1 of the last search that came by: nothing to clear
	queue  []int
}

// from is the shortest path from start back to it, when it has fewer than limit
// nodes (0: any number). Nodes added before start are left out: cycles through
// them were found from there.
func (s *cycleSearch) from(start, limit int) []int {
	s.queue = append(s.queue[:0], start)
	nodes, levelEnd := 2, 1 // nodes of a path that closes on this level
	for head := 0; head < len(s.queue) && (limit == 0 || nodes < limit); head++ {
		i := s.queue[head]
		for _, j := range s.graph.down[i] {
			if j == start {
				return s.path(start, i)
			}
			if j > start && s.seen[j] != start+1 {
				s.seen[j], s.parent[j] = start+1, i
				s.queue = append(s.queue, j)
			}
		}
		if head+1 == levelEnd {
			nodes, levelEnd = nodes+1, len(s.queue)
		}
	}
	return nil
}

func (s *cycleSearch) path(start, last int) []int {
	path := []int{start}
	for i := last; i != start; i = s.parent[i] {
		path = append(path, i)
	}
	path = append(path, start)
	slices.Reverse(path)
	return path
}

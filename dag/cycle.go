package dag

import (
	"slices"
	"strings"
)

// CycleError reports that nodes depend on each other in a circle.
type CycleError struct {
	// Path is the ids along a cycle, each depending on the one before. It starts
	// at the node of the cycle that was added first and ends with the same id. It
	// is a shortest cycle, and of several the one whose first node was added
	// first, unless the graph is so large that the search is cut off after a moment:
	// then it is the shortest that was met.
	Path []string
}

func (e *CycleError) Error() string {
	return "dependency cycle: " + strings.Join(e.Path, " → ")
}

// cycleSteps bounds the search for a shortest cycle, which takes nodes × edges in
// the worst case. Counted rather than timed, so that answers stay the same.
const cycleSteps = 20_000_000

// cycle is the path of a shortest cycle. It takes a breadth-first search from
// each node, cut off at the best length so far.
func (g *Graph) cycle() []string {
	s := cycleSearch{graph: g, parent: make([]int, g.Len()), seen: make([]int, g.Len()), steps: cycleSteps}
	stuck := slices.Repeat([]bool{true}, g.Len()) // on a cycle or downstream of one
	for _, i := range g.order {
		stuck[i] = false
	}
	var best []int
	for start := 0; start < g.Len() && s.steps > 0; start++ {
		if !stuck[start] {
			continue
		}
		if path := s.from(start, len(best)); path != nil {
			best = path
		}
	}
	if best == nil {
		best = g.anyCycle(stuck)
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
	steps  int // edges that may still be looked at
}

// from is the shortest path from start back to it, when it has fewer than limit
// nodes (0: any number). Nodes added before start are left out: cycles through
// them were found from there.
func (s *cycleSearch) from(start, limit int) []int {
	s.queue = append(s.queue[:0], start)
	nodes, levelEnd := 2, 1 // nodes of a path that closes on this level
	for head := 0; head < len(s.queue) && (limit == 0 || nodes < limit); head++ {
		i := s.queue[head]
		for _, j := range s.graph.down.of(i) {
			if s.steps--; s.steps < 0 {
				return nil
			}
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

// anyCycle goes upstream from a stuck node. Each has one upstream, so the way comes
// back to where it has been.
func (g *Graph) anyCycle(stuck []bool) []int {
	at := make([]int, g.Len()) // by node: 1 + its place on the way
	var way []int
	for i := slices.Index(stuck, true); at[i] == 0; {
		way = append(way, i)
		at[i] = len(way)
		up := g.up.of(i)
		i = up[slices.IndexFunc(up, func(j int) bool { return stuck[j] })]
		if at[i] > 0 {
			way = way[at[i]-1:]
		}
	}
	slices.Reverse(way)
	first := slices.Index(way, slices.Min(way))
	return slices.Concat(way[first:], way[:first], way[first:first+1])
}

package dag

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestAnyCycle looks for cycles as it is done in graphs that are too large to look
// for a shortest one.
func TestAnyCycle(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 5))
		n := 2 + rnd.IntN(20)
		var edges []edge
		is := map[edge]bool{}
		for range 2 * n {
			e := edge{int32(rnd.IntN(n)), int32(rnd.IntN(n))}
			edges, is[e] = append(edges, e), true
		}
		g := &Graph{ids: make([]string, n)}
		g.up, g.down = linksOf(n, edges)
		if g.order = g.sort(); len(g.order) == n {
			continue
		}
		stuck := make([]bool, n)
		for i := range stuck {
			stuck[i] = !slices.Contains(g.order, i)
		}
		path := g.anyCycle(stuck)
		if len(path) < 2 || path[0] != path[len(path)-1] {
			t.Fatalf("seed %d: %v is not closed", seed, path)
		}
		seen := map[int]bool{}
		for k, i := range path[1:] {
			if !is[edge{int32(path[k]), int32(i)}] {
				t.Fatalf("seed %d: %v uses an edge that does not exist", seed, path)
			}
			if seen[i] || i < path[0] {
				t.Fatalf("seed %d: %v goes through a node twice, or does not start at the first added", seed, path)
			}
			seen[i] = true
		}
	}
}

// TestCycleOfLargeGraph has one cycle, at the end of what was added, and downstream
// of it so large a graph that the search for a shortest cycle does not get there.
func TestCycleOfLargeGraph(t *testing.T) {
	t.Parallel()
	b := edgesOf(30_000, func(i int, from func(int)) { from(i - 1); from(i - 2) })
	if err := errors.Join(b.Add("x"), b.Add("y"), b.Connect("x", "y"), b.Connect("y", "x"), b.Connect("y", "0")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Build(); err == nil || err.Error() != "dependency cycle: x → y → x" {
		t.Error(err)
	}
}

package dag

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// build makes a builder of nodes "a b c" and edges "a>b b>c".
func build(t *testing.T, nodes, edges string) *Builder {
	t.Helper()
	b := New()
	for id := range strings.FieldsSeq(nodes) {
		if err := b.Add(id); err != nil {
			t.Fatal(err)
		}
	}
	for edge := range strings.FieldsSeq(edges) {
		from, to, _ := strings.Cut(edge, ">")
		if err := b.Connect(from, to); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func names(g *Graph, nodes []int) string {
	ids := make([]string, len(nodes))
	for k, i := range nodes {
		ids[k] = g.ID(i)
	}
	return strings.Join(ids, " ")
}

func TestGraph(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, nodes, edges, order string }{
		{"empty", "", "", ""},
		{"no edges keep the order of addition", "c a b", "", "c a b"},
		{"added in order", "a b c d", "a>b a>c b>d c>d", "a b c d"},
		{"added backwards", "d c b a", "a>b a>c b>d c>d", "a c b d"},
		{"the first added of those that could come next", "x late a", "a>late", "x a late"},
		{"edges repeated", "b a", "a>b a>b", "a b"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			g, err := build(t, tt.nodes, tt.edges).Build()
			if err != nil {
				t.Fatal(err)
			}
			if got := names(g, g.Order()); got != tt.order {
				t.Errorf("order %q, want %q", got, tt.order)
			}
			if g.Len() != len(strings.Fields(tt.nodes)) {
				t.Errorf("%d nodes of %q", g.Len(), tt.nodes)
			}
		})
	}
}

func TestNeighbours(t *testing.T) {
	t.Parallel()
	g, err := build(t, "a b c d", "c>d a>d b>d b>d a>b").Build()
	if err != nil {
		t.Fatal(err)
	}
	d, ok := g.Index("d")
	if !ok || d != 3 {
		t.Fatalf("index of d: %d, %v", d, ok)
	}
	if got := names(g, g.Upstream(d)); got != "a b c" {
		t.Errorf("upstream of d: %q", got)
	}
	if got := names(g, g.Downstream(0)); got != "b d" {
		t.Errorf("downstream of a: %q", got)
	}
	if _, ok := g.Index("e"); ok {
		t.Error("there is no node e")
	}
}

func TestBuilderErrors(t *testing.T) {
	t.Parallel()
	b := build(t, "a", "")
	if err := b.Add("a"); !errors.As(err, new(*DuplicateError)) {
		t.Errorf("second a: %v", err)
	}
	for _, edge := range [][2]string{{"a", "x"}, {"x", "a"}} {
		err := b.Connect(edge[0], edge[1])
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.ID != "x" {
			t.Errorf("edge %v: %v", edge, err)
		}
	}
}

func TestGraphOutlivesBuilder(t *testing.T) {
	t.Parallel()
	b := build(t, "a b", "a>b")
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(b.Add("c"), b.Connect("a", "c"), b.Connect("b", "a")); err != nil {
		t.Fatal(err)
	}
	if g.Len() != 2 || names(g, g.Downstream(0)) != "b" {
		t.Error("a built graph changed with its builder")
	}
	if _, err := b.Build(); err == nil {
		t.Error("the builder lost the edge that closes a cycle")
	}
}

func TestCycle(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, nodes, edges, path string }{
		{"itself", "a b", "a>b b>b", "b → b"},
		{"two", "a b", "a>b b>a", "a → b → a"},
		{"starts at the first added", "z a b", "z>a a>b b>a", "a → b → a"},
		{"shortest", "a b c d e", "a>b b>c c>a c>d d>e e>c e>d", "d → e → d"},
		{"first of two", "a b c d", "c>d d>c a>b b>a", "a → b → a"},
		{"in the direction of the edges", "c b a", "a>b b>c c>a", "c → a → b → c"},
		{"chord", "a b c d", "a>b b>c c>d d>a c>a", "a → b → c → a"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := build(t, tt.nodes, tt.edges).Build()
			var cycle *CycleError
			if !errors.As(err, &cycle) {
				t.Fatalf("got %v", err)
			}
			if got := strings.Join(cycle.Path, " → "); got != tt.path {
				t.Errorf("cycle %s, want %s", got, tt.path)
			}
		})
	}
}

// TestRandomGraphs checks orders and cycles of random graphs against what they
// mean: an order has each edge forwards, a cycle is made of edges, and there is
// a cycle exactly when there is no order.
func TestRandomGraphs(t *testing.T) {
	t.Parallel()
	cyclic := 0
	for seed := range uint64(500) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		n := 2 + rnd.IntN(20)
		b, edges := New(), map[[2]string]bool{}
		for i := range n {
			if err := b.Add(strconv.Itoa(i)); err != nil {
				t.Fatal(err)
			}
		}
		for range rnd.IntN(2 * n) {
			edge := [2]string{strconv.Itoa(rnd.IntN(n)), strconv.Itoa(rnd.IntN(n))}
			edges[edge] = true
			if err := b.Connect(edge[0], edge[1]); err != nil {
				t.Fatal(err)
			}
		}
		g, err := b.Build()
		var cycle *CycleError
		if errors.As(err, &cycle) {
			cyclic++
			checkCycle(t, seed, cycle.Path, edges)
			continue
		}
		for edge := range edges {
			from, _ := g.Index(edge[0])
			to, _ := g.Index(edge[1])
			if slices.Index(g.Order(), from) >= slices.Index(g.Order(), to) {
				t.Fatalf("seed %d: order %v breaks the edge %v", seed, g.Order(), edge)
			}
		}
	}
	if cyclic == 0 || cyclic == 500 {
		t.Fatalf("%d of 500 graphs had cycles: the test has lost its use", cyclic)
	}
}

func checkCycle(t *testing.T, seed uint64, path []string, edges map[[2]string]bool) {
	t.Helper()
	if len(path) < 2 || path[0] != path[len(path)-1] {
		t.Fatalf("seed %d: %v is not closed", seed, path)
	}
	for i := range path[1:] {
		if !edges[[2]string{path[i], path[i+1]}] {
			t.Fatalf("seed %d: %v uses an edge that does not exist", seed, path)
		}
	}
	if want := girth(edges); len(path)-1 != want {
		t.Fatalf("seed %d: cycle %v, but there is one of %d edges", seed, path, want)
	}
}

// girth is the length of the shortest cycle by repeated joining of walks.
func girth(edges map[[2]string]bool) int {
	walks := edges
	for length := 1; ; length++ {
		longer := map[[2]string]bool{}
		for walk := range walks {
			if walk[0] == walk[1] {
				return length
			}
			for edge := range edges {
				if edge[0] == walk[1] {
					longer[[2]string{walk[0], edge[1]}] = true
				}
			}
		}
		walks = longer
	}
}

package dag

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
)

func TestFrontierHandsOutOnce(t *testing.T) {
	t.Parallel()
	g, err := build(t, "d a b c", "a>d b>d c>d").Build()
	if err != nil {
		t.Fatal(err)
	}
	f := g.Frontier()
	if got := names(g, f.Ready()); got != "a b c" {
		t.Fatalf("ready %q", got)
	}
	if got := f.Ready(); len(got) != 0 {
		t.Fatalf("handed out again: %v", got)
	}
	for _, i := range []int{3, 1} {
		if err := f.Complete(i); err != nil {
			t.Fatal(err)
		}
		if got := f.Ready(); len(got) != 0 {
			t.Fatalf("%v handed out while b is open", got)
		}
	}
	if err := f.Complete(2); err != nil {
		t.Fatal(err)
	}
	if got := names(g, f.Ready()); got != "d" || f.Done() {
		t.Fatalf("ready %q, done %v", got, f.Done())
	}
	if err := f.Complete(0); err != nil || !f.Done() {
		t.Fatalf("done %v, %v", f.Done(), err)
	}
}

func TestFrontierErrors(t *testing.T) {
	t.Parallel()
	g, err := build(t, "a b", "a>b").Build()
	if err != nil {
		t.Fatal(err)
	}
	f := g.Frontier()
	refuse := func(i int, when string) {
		t.Helper()
		if err := f.Complete(i); !errors.As(err, new(*CompleteError)) {
			t.Errorf("node %d %s: %v", i, when, err)
		}
	}
	refuse(0, "unblocked but not handed out")
	f.Ready()
	refuse(1, "blocked")
	refuse(-1, "out of range")
	refuse(2, "out of range")
	if err := f.Complete(0); err != nil {
		t.Fatal(err)
	}
	refuse(0, "twice")
	if got := names(g, f.Ready()); got != "b" {
		t.Errorf("refused completions changed the frontier: ready %q", got)
	}
}

func TestFrontierOfNothing(t *testing.T) {
	t.Parallel()
	g, err := New().Build()
	if err != nil {
		t.Fatal(err)
	}
	if f := g.Frontier(); !f.Done() || len(f.Ready()) != 0 {
		t.Error("an empty graph is not done")
	}
}

// TestFrontierModel works random graphs through in random order and compares
// each answer with the definition: a node is ready when all that is upstream of
// it is complete.
func TestFrontierModel(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		rnd := rand.New(rand.NewPCG(seed, 2))
		g := randomGraph(t, rnd)
		f := g.Frontier()
		handed, complete := make([]bool, g.Len()), make([]bool, g.Len())
		var underWay []int
		for settled := 0; ; {
			if rnd.IntN(3) > 0 || len(underWay) == 0 {
				want := naiveReady(g, handed, complete)
				if got := f.Ready(); !slices.Equal(got, want) {
					t.Fatalf("seed %d: ready %v, want %v", seed, got, want)
				}
				underWay = append(underWay, want...)
			}
			if f.Done() != (settled == g.Len()) {
				t.Fatalf("seed %d: done %v after %d of %d", seed, f.Done(), settled, g.Len())
			}
			if f.Done() {
				break
			}
			k := rnd.IntN(len(underWay))
			if err := f.Complete(underWay[k]); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			complete[underWay[k]] = true
			underWay = slices.Delete(underWay, k, k+1)
			settled++
		}
	}
}

func naiveReady(g *Graph, handed, complete []bool) []int {
	var ready []int
	for i := range g.Len() {
		blocked := slices.ContainsFunc(g.Upstream(i), func(j int) bool { return !complete[j] })
		if !blocked && !handed[i] {
			handed[i] = true
			ready = append(ready, i)
		}
	}
	return ready
}

// randomGraph has 1 to 40 nodes, added in an order that its edges do not follow.
func randomGraph(t *testing.T, rnd *rand.Rand) *Graph {
	t.Helper()
	n := 1 + rnd.IntN(40)
	b := New()
	for _, i := range rnd.Perm(n) {
		if err := b.Add(strconv.Itoa(i)); err != nil {
			t.Fatal(err)
		}
	}
	for range rnd.IntN(3 * n) {
		i, j := rnd.IntN(n), rnd.IntN(n)
		if i == j {
			continue
		}
		if err := b.Connect(strconv.Itoa(min(i, j)), strconv.Itoa(max(i, j))); err != nil {
			t.Fatal(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func BenchmarkFrontier(b *testing.B) {
	const layers, width = 100, 100
	builder := New()
	for i := range layers * width {
		if err := builder.Add(strconv.Itoa(i)); err != nil {
			b.Fatal(err)
		}
		for k := 0; i >= width && k < 3; k++ {
			from := strconv.Itoa((i/width-1)*width + (i*7+k)%width)
			if err := builder.Connect(from, strconv.Itoa(i)); err != nil {
				b.Fatal(err)
			}
		}
	}
	g, err := builder.Build()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		for f := g.Frontier(); !f.Done(); {
			for _, i := range f.Ready() {
				if err := f.Complete(i); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(layers*width), "ns/node")
}

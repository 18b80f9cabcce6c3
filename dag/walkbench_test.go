package dag

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"
)

// shape is a graph of about n nodes for benchmarks.
type shape struct {
	name string
	make func(n int) *Builder
}

func shapes() []shape {
	return []shape{
		{"chain", func(n int) *Builder {
			return edgesOf(n, func(i int, from func(int)) { from(i - 1) })
		}},
		{"fan", func(n int) *Builder {
			return edgesOf(n, func(i int, from func(int)) {
				from(0)
				for j := 1; i == n-1 && j < i; j++ {
					from(j)
				}
			})
		}},
		{"layers", func(n int) *Builder {
			return edgesOf(n, func(i int, from func(int)) {
				for k := range 3 {
					from((i/100-1)*100 + (i*7+k)%100)
				}
			})
		}},
		{"random", func(n int) *Builder {
			rnd := rand.New(rand.NewPCG(1, 2))
			return edgesOf(n, func(i int, from func(int)) {
				for range rnd.IntN(4) {
					from(rnd.IntN(i))
				}
			})
		}},
		{"chains", func(n int) *Builder {
			return edgesOf(n, func(i int, from func(int)) { from(i - 100) })
		}},
	}
}

// edgesOf makes n nodes; edges says from where each one has edges, besides node 0.
func edgesOf(n int, edges func(i int, from func(int))) *Builder {
	b := New()
	for i := range n {
		_ = b.Add(strconv.Itoa(i))
		if i > 0 {
			edges(i, func(from int) {
				if from >= 0 {
					_ = b.Connect(strconv.Itoa(from), strconv.Itoa(i))
				}
			})
		}
	}
	return b
}

func BenchmarkWalk(b *testing.B) {
	for _, n := range []int{10_000, 1_000_000} {
		for _, s := range shapes() {
			b.Run(fmt.Sprintf("%s/%d", s.name, n), func(b *testing.B) {
				g, err := s.make(n).Build()
				if err != nil {
					b.Fatal(err)
				}
				ctx := b.Context()
				b.ReportAllocs()
				for b.Loop() {
					if _, err := g.Walk(ctx, func(context.Context, int) error { return nil }, WalkOptions{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			})
		}
	}
}

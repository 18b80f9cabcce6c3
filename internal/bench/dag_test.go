package main

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	heimdalr "github.com/heimdalr/dag"
	natessilva "github.com/natessilva/dag"
	taskflow "github.com/noneback/go-taskflow"

	"github.com/flowhost/flowhost/dag"
)

// walker is a project that runs graphs: it builds one, outside of what is measured,
// and gives the function that runs it. from are the nodes upstream of each node. All
// but node 0 have one, because heimdalr's walk starts at one node. Workers are what
// the project lets one choose; natessilva's and heimdalr's have none and start a
// goroutine for each node.
type walker struct {
	name  string
	build func(tb testing.TB, from [][]int, workers int, do func(i int)) (walk func() error)
}

var walkers = []walker{
	{"flowhost", buildFlowhost},
	{"go-taskflow", buildTaskflow},
	{"natessilva", buildNatessilva},
	{"heimdalr", buildHeimdalr},
}

// BenchmarkGraphs walks graphs of nodes that do nothing.
func BenchmarkGraphs(b *testing.B) {
	const nodes = 10_000
	for _, shape := range graphShapes {
		from := make([][]int, nodes)
		for i := 1; i < nodes; i++ {
			from[i] = shape.from(i, nodes)
		}
		for _, w := range walkers {
			b.Run(shape.name+"/"+w.name, func(b *testing.B) {
				walk := w.build(b, from, 2, func(int) {})
				b.ReportAllocs()
				for b.Loop() {
					must(b, walk())
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/nodes, "ns/node")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

var graphShapes = []struct {
	name string
	from func(i, nodes int) []int
}{
	{"chain", func(i, _ int) []int { return []int{i - 1} }},
	{"fan", func(i, nodes int) []int {
		if i < nodes-1 {
			return []int{0}
		}
		return slices.Collect(func(yield func(int) bool) {
			for j := 1; j < i && yield(j); j++ {
			}
		})
	}},
	{"layers", func(i, _ int) []int {
		above := (i/100 - 1) * 100
		if above < 0 {
			return []int{0}
		}
		return []int{above + i*7%100, above + (i*7+1)%100, above + (i*7+2)%100}
	}},
	{"random", func(i, _ int) []int {
		rnd := rand.New(rand.NewPCG(uint64(i), 1))
		from := map[int]bool{rnd.IntN(i): true}
		for range rnd.IntN(3) {
			from[rnd.IntN(i)] = true
		}
		return slices.Sorted(maps.Keys(from))
	}},
	{"chains", func(i, _ int) []int { return []int{max(0, i-100)} }},
}

// BenchmarkSkewedGraphs runs chains in which the n-th chain's n-th node is the slow
// one. Read the time as a multiple of the longest path: of a project that goes level
// by level it would be the number of chains.
func BenchmarkSkewedGraphs(b *testing.B) {
	const chains = 10
	const slow, quick = 100 * time.Millisecond, 10 * time.Millisecond
	from := [][]int{nil} // node 0 is the common start
	for i := 1; i <= chains*chains; i++ {
		from = append(from, []int{max(0, i-chains)})
	}
	for _, w := range walkers {
		b.Run(w.name, func(b *testing.B) {
			walk := w.build(b, from, chains, func(i int) {
				switch i -= 1; {
				case i < 0:
				case i/chains == i%chains:
					time.Sleep(slow)
				default:
					time.Sleep(quick)
				}
			})
			for b.Loop() {
				must(b, walk())
			}
			path := slow + (chains-1)*quick
			b.ReportMetric(float64(b.Elapsed())/float64(b.N)/float64(path), "time/longest-path")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// What is compared is the same work: each calls each node's function once.
func TestWalkersCallEachNodeOnce(t *testing.T) {
	const nodes = 1000
	for _, shape := range graphShapes {
		from := make([][]int, nodes)
		for i := 1; i < nodes; i++ {
			from[i] = shape.from(i, nodes)
		}
		for _, w := range walkers {
			calls := make([]atomic.Int32, nodes)
			walk := w.build(t, from, 2, func(i int) { calls[i].Add(1) })
			for range 2 {
				must(t, walk())
			}
			for i := range calls {
				if n := calls[i].Load(); n != 2 {
					t.Fatalf("%s of %s: node %d was called %d times in 2 walks", shape.name, w.name, i, n)
				}
			}
		}
	}
}

func buildFlowhost(tb testing.TB, from [][]int, workers int, do func(int)) func() error {
	b := dag.New()
	for i := range from {
		must(tb, b.Add(strconv.Itoa(i)))
	}
	forEdges(from, func(i, j string) { must(tb, b.Connect(i, j)) })
	g, err := b.Build()
	must(tb, err)
	return func() error {
		_, err := g.Walk(tb.Context(), func(_ context.Context, i int) error { do(i); return nil }, dag.WalkOptions{Workers: workers})
		return err
	}
}

func buildTaskflow(_ testing.TB, from [][]int, workers int, do func(int)) func() error {
	flow := taskflow.NewTaskFlow("bench")
	tasks := make([]*taskflow.Task, len(from))
	for i, upstream := range from {
		tasks[i] = flow.NewTask(strconv.Itoa(i), func() { do(i) })
		for _, j := range upstream {
			tasks[i].Succeed(tasks[j])
		}
	}
	executor := taskflow.NewExecutor(uint(workers))
	return func() error {
		executor.Run(flow).Wait()
		return nil
	}
}

func buildNatessilva(_ testing.TB, from [][]int, _ int, do func(int)) func() error {
	var r natessilva.Runner
	for i := range from {
		r.AddVertex(strconv.Itoa(i), func() error { do(i); return nil })
	}
	forEdges(from, r.AddEdge)
	return r.Run
}

func buildHeimdalr(tb testing.TB, from [][]int, _ int, do func(int)) func() error {
	d := heimdalr.NewDAG()
	for i := range from {
		must(tb, d.AddVertexByID(strconv.Itoa(i), i))
	}
	forEdges(from, func(i, j string) { must(tb, d.AddEdge(i, j)) })
	return func() error {
		_, err := d.DescendantsFlow("0", nil, func(d *heimdalr.DAG, id string, _ []heimdalr.FlowResult) (any, error) {
			i, err := d.GetVertex(id)
			if err == nil {
				do(i.(int))
			}
			return nil, err
		})
		return err
	}
}

func forEdges(from [][]int, edge func(from, to string)) {
	for i, upstream := range from {
		for _, j := range upstream {
			edge(strconv.Itoa(j), strconv.Itoa(i))
		}
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

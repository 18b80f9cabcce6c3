package dag_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/flowhost/flowhost/dag"
)

// Functions with dependencies. What one writes, those downstream may read.
func Example() {
	var orders, prices, stock int
	var s dag.Spec[func(context.Context) error]
	s.Add("report", func(context.Context) error {
		fmt.Println("worth", orders*prices, "in stock", stock)
		return nil
	}, "price", "stock")
	s.Add("fetch", func(context.Context) error { orders = 6; return nil })
	s.Add("price", func(context.Context) error { prices = 7; return nil }, "fetch")
	s.Add("stock", func(context.Context) error { stock = orders * 2; return nil }, "fetch")

	plan, err := s.Build()
	if err != nil {
		log.Fatal(err)
	}
	_, err = plan.Walk(context.Background(), func(ctx context.Context, n dag.Node[func(context.Context) error]) error {
		return n.Value(ctx)
	}, dag.WalkOptions{})
	if err != nil {
		log.Fatal(err)
	}
	// Output: worth 42 in stock 12
}

// Values of any type, each with a timeout of its own, and three attempts for each.
func ExamplePlan_Walk() {
	type download struct {
		URL     string
		Timeout time.Duration
	}
	var s dag.Spec[download]
	s.Add("index", download{"https://example.org/index", time.Second})
	s.Add("orders", download{"https://example.org/orders", time.Minute}, "index")
	plan, err := s.Build()
	if err != nil {
		log.Fatal(err)
	}

	attempts := 0
	get := func(_ context.Context, n dag.Node[download]) error {
		if attempts++; attempts == 1 {
			return errors.New("connection reset")
		}
		fmt.Println("got", n.Value.URL)
		return nil
	}
	inTime := func(ctx context.Context, n dag.Node[download]) error {
		return dag.Timeout(n.Value.Timeout, get)(ctx, n)
	}
	backoff := dag.Doubling(time.Millisecond, time.Second)
	if _, err := plan.Walk(context.Background(), dag.Retry(3, backoff, inTime), dag.WalkOptions{}); err != nil {
		log.Fatal(err)
	}
	// Output:
	// got https://example.org/index
	// got https://example.org/orders
}

// With KeepGoing a failure costs only what depends on it.
func ExampleGraph_Walk() {
	g := build("fetch", "price", "stock", "report")("fetch>price", "fetch>stock", "price>report", "stock>report")
	result, err := g.Walk(context.Background(), func(_ context.Context, node int) error {
		if g.ID(node) == "price" {
			return errors.New("no such currency")
		}
		return nil
	}, dag.WalkOptions{KeepGoing: true})

	fmt.Println(err)
	for i := range g.Len() {
		fmt.Print(g.ID(i), " ", result.State(i))
		if by, skipped := result.SkippedBy(i); skipped {
			fmt.Print(" because of ", g.ID(by))
		}
		fmt.Println()
	}
	// Output:
	// node "price": no such currency
	// fetch succeeded
	// price failed
	// stock succeeded
	// report skipped because of price
}

// A node that finds nothing to do skips what depends on it.
func ExampleErrSkip() {
	g := build("fetch", "price")("fetch>price")
	result, err := g.Walk(context.Background(), func(_ context.Context, node int) error {
		if g.ID(node) == "fetch" {
			return fmt.Errorf("no orders today: %w", dag.ErrSkip)
		}
		return nil
	}, dag.WalkOptions{})
	fmt.Println(err, result.State(1), result.Err(0))
	// Output: <nil> skipped no orders today: skip the nodes downstream
}

// Hooks see each node, and may show progress.
func ExampleWalkOptions() {
	g := build("a", "b")("a>b")
	_, err := g.Walk(context.Background(), func(context.Context, int) error { return nil }, dag.WalkOptions{
		Workers: 1,
		Before:  func(node int) { fmt.Println("start", g.ID(node)) },
		After:   func(node int, err error) { fmt.Println("end", g.ID(node), err) },
	})
	fmt.Println(err)
	// Output:
	// start a
	// end a <nil>
	// start b
	// end b <nil>
	// <nil>
}

// A frontier states what is unblocked and leaves running it to its owner.
func ExampleFrontier() {
	g := build("fetch", "price", "stock", "report")("fetch>price", "fetch>stock", "price>report", "stock>report")
	for f := g.Frontier(); !f.Done(); {
		for _, i := range f.Ready() {
			fmt.Println(g.ID(i), "after", len(g.Upstream(i)))
			if err := f.Complete(i); err != nil {
				fmt.Println(err)
			}
		}
	}
	// Output:
	// fetch after 0
	// price after 1
	// stock after 1
	// report after 2
}

func ExampleGraph_DOT() {
	fmt.Print(build("fetch", "price")("fetch>price").DOT())
	// Output:
	// digraph {
	//   "fetch";
	//   "price";
	//   "fetch" -> "price";
	// }
}

func ExampleGraph_Mermaid() {
	fmt.Print(build("fetch", "price")("fetch>price").Mermaid())
	// Output:
	// flowchart TD
	//   n0["fetch"]
	//   n1["price"]
	//   n0 --> n1
}

func ExampleBuilder() {
	b := dag.New()
	for _, id := range []string{"fetch", "price"} {
		if err := b.Add(id); err != nil {
			log.Fatal(err)
		}
	}
	if err := b.Connect("fetch", "price"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(b.Connect("fetch", "stock"))
	g, err := b.Build()
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(g.ID(g.Order()[0]))
	// Output:
	// edge fetch → stock: there is no node "stock"
	// fetch
}

func ExampleCycleError() {
	var s dag.Spec[int]
	s.Add("a", 1, "b")
	s.Add("b", 2, "a")
	_, err := s.Build()
	fmt.Println(err)
	// Output: dependency cycle: a → b → a
}

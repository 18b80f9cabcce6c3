package dag_test

import (
	"fmt"

	"github.com/flowhost/flowhost/dag"
)

func Example() {
	b := dag.New()
	for _, id := range []string{"fetch", "price", "stock", "report"} {
		if err := b.Add(id); err != nil {
			fmt.Println(err)
		}
	}
	for _, edge := range [][2]string{
		{"fetch", "price"}, {"fetch", "stock"}, {"price", "report"}, {"stock", "report"},
	} {
		if err := b.Connect(edge[0], edge[1]); err != nil {
			fmt.Println(err)
		}
	}
	g, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}

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

func ExampleCycleError() {
	b := dag.New()
	_ = b.Add("a")
	_ = b.Add("b")
	_ = b.Connect("a", "b")
	_ = b.Connect("b", "a")
	_, err := b.Build()
	fmt.Println(err)
	// Output: dependency cycle: a → b → a
}

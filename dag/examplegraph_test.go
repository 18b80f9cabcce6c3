package dag_test

import (
	"log"
	"strings"

	"github.com/flowhost/flowhost/dag"
)

// build makes the small graphs of the examples: build("a", "b")("a>b").
func build(nodes ...string) func(edges ...string) *dag.Graph {
	return func(edges ...string) *dag.Graph {
		b := dag.New()
		for _, id := range nodes {
			if err := b.Add(id); err != nil {
				log.Fatal(err)
			}
		}
		for _, edge := range edges {
			from, to, _ := strings.Cut(edge, ">")
			if err := b.Connect(from, to); err != nil {
				log.Fatal(err)
			}
		}
		g, err := b.Build()
		if err != nil {
			log.Fatal(err)
		}
		return g
	}
}

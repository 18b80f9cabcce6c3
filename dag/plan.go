package dag

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// Spec collects the nodes of a [Plan]. The zero value is empty and ready to use.
// It is not safe for concurrent use.
type Spec[T any] struct {
	nodes []specNode[T]
}

type specNode[T any] struct {
	id    string
	value T
	after []string
}

// Add adds a node with a value, and the ids of the nodes that it depends on, which
// may be added later. Build reports what is wrong with them.
func (s *Spec[T]) Add(id string, value T, after ...string) {
	s.nodes = append(s.nodes, specNode[T]{id, value, slices.Clone(after)})
}

// DuplicateEdgeError reports that a node was added with the same dependency twice.
type DuplicateEdgeError struct {
	From, To string
}

func (e *DuplicateEdgeError) Error() string {
	return fmt.Sprintf("edge %s → %s exists already: name each dependency once", e.From, e.To)
}

// Build makes the plan of what was added so far. Its error joins everything that is
// wrong: *[DuplicateError], *[UnknownError] and *[DuplicateEdgeError], each in
// order of addition, and a *[CycleError]. The specification may be used further;
// plans it has built do not change.
func (s *Spec[T]) Build() (*Plan[T], error) {
	b := New()
	p := &Plan[T]{values: make([]T, 0, len(s.nodes))}
	var errs []error
	for _, n := range s.nodes {
		if err := b.Add(n.id); err != nil {
			errs = append(errs, err)
			continue
		}
		p.values = append(p.values, n.value)
	}
	lastTo := map[string]int{} // by id: 1 + the last node that named it as a dependency
	for k, n := range s.nodes {
		for _, from := range n.after {
			err := b.Connect(from, n.id)
			if err == nil && lastTo[from] == k+1 {
				err = &DuplicateEdgeError{From: from, To: n.id}
			}
			if err != nil {
				errs = append(errs, err)
			}
			lastTo[from] = k + 1
		}
	}
	var err error
	if p.Graph, err = b.Build(); err != nil {
		errs = append(errs, err)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return p, nil
}

// Plan is a [Graph] whose nodes have values. It does not change and is safe for
// concurrent use, as far as its values are.
type Plan[T any] struct {
	*Graph
	values []T
}

// Node is a node of a [Plan].
type Node[T any] struct {
	Index int // in the plan's Graph
	ID    string
	Value T
}

// Node is node i.
func (p *Plan[T]) Node(i int) Node[T] {
	return Node[T]{Index: i, ID: p.ID(i), Value: p.values[i]}
}

// Walk is [Graph.Walk] for a function that takes nodes with their values.
func (p *Plan[T]) Walk(ctx context.Context, do Func[Node[T]], o WalkOptions) (*Result, error) {
	return p.Graph.Walk(ctx, func(ctx context.Context, i int) error { return do(ctx, p.Node(i)) }, o)
}

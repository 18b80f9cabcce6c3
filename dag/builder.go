package dag

import (
	"fmt"
	"maps"
	"slices"
)

// Builder collects the nodes and edges of a [Graph]. It is not safe for
// concurrent use.
type Builder struct {
	ids   []string
	index map[string]int
	edges []edge // in order of Connect, with repetitions
}

type edge struct{ from, to int32 }

// New is a builder without nodes.
func New() *Builder { return &Builder{index: map[string]int{}} }

// DuplicateError reports that a node with this id was added before.
type DuplicateError struct {
	ID string
}

func (e *DuplicateError) Error() string {
	return fmt.Sprintf("node %q exists already: ids must be unique in a graph", e.ID)
}

// UnknownError reports that an edge ends at an id that is no node.
type UnknownError struct {
	ID       string
	From, To string // the edge
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("edge %s → %s: there is no node %q", e.From, e.To, e.ID)
}

// Add adds a node. It fails with *DuplicateError.
func (b *Builder) Add(id string) error {
	if _, ok := b.index[id]; ok {
		return &DuplicateError{ID: id}
	}
	b.index[id] = len(b.ids)
	b.ids = append(b.ids, id)
	return nil
}

// Connect adds the edge by which to depends on from. Adding an edge again
// changes nothing. It fails with *UnknownError.
func (b *Builder) Connect(from, to string) error {
	i, ok := b.index[from]
	if !ok {
		return &UnknownError{ID: from, From: from, To: to}
	}
	j, ok := b.index[to]
	if !ok {
		return &UnknownError{ID: to, From: from, To: to}
	}
	b.edges = append(b.edges, edge{int32(i), int32(j)})
	return nil
}

// Build makes the graph of what was added so far. It fails with *CycleError.
// The builder may be used further; graphs it has built do not change.
func (b *Builder) Build() (*Graph, error) {
	g := &Graph{ids: slices.Clone(b.ids), index: maps.Clone(b.index)}
	g.up, g.down = linksOf(len(g.ids), b.edges)
	g.order = g.sort()
	if len(g.order) < g.Len() {
		return nil, &CycleError{Path: g.cycle()}
	}
	g.height = g.heights()
	return g, nil
}

package dag

import "container/heap"

// Graph is a directed graph without cycles. Its nodes are the integers from 0
// to Len()-1, in order of addition, each with an id. Methods that take a node
// panic, as indexing a slice does, on one that is out of range. Slices that
// methods return belong to the graph and must not be modified.
type Graph struct {
	ids   []string
	index map[string]int
	up    [][]int // ascending, without repetitions
	down  [][]int // ascending, without repetitions
	order []int
}

// Len is the number of nodes.
func (g *Graph) Len() int { return len(g.ids) }

// ID is the id of node i.
func (g *Graph) ID(i int) string { return g.ids[i] }

// Index is the node with the given id, and whether there is one.
func (g *Graph) Index(id string) (int, bool) {
	i, ok := g.index[id]
	return i, ok
}

// Upstream is the nodes that node i depends on, in order of addition.
func (g *Graph) Upstream(i int) []int { return g.up[i] }

// Downstream is the nodes that depend on node i, in order of addition.
func (g *Graph) Downstream(i int) []int { return g.down[i] }

// Order is all nodes, each after the ones it depends on. Of the nodes that
// could come next, the one added first does: nodes added in such an order keep
// it.
func (g *Graph) Order() []int { return g.order }

// sort is Kahn's algorithm with a heap for the nodes that could come next.
// Nodes on cycles and downstream of them are missing from its result.
func (g *Graph) sort() []int {
	blocked := make([]int, g.Len())
	var next ascending
	for i := range blocked {
		blocked[i] = len(g.up[i])
		if blocked[i] == 0 {
			next = append(next, i) // ascending, so a heap already
		}
	}
	order := make([]int, 0, g.Len())
	for len(next) > 0 {
		i := heap.Pop(&next).(int)
		order = append(order, i)
		for _, j := range g.down[i] {
			if blocked[j]--; blocked[j] == 0 {
				heap.Push(&next, j)
			}
		}
	}
	return order
}

// ascending is a container/heap of nodes, the one added first on top.
type ascending []int

func (h ascending) Len() int           { return len(h) }
func (h ascending) Less(i, j int) bool { return h[i] < h[j] }
func (h ascending) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *ascending) Push(x any)        { *h = append(*h, x.(int)) }

func (h *ascending) Pop() any {
	last := len(*h) - 1
	x := (*h)[last]
	*h = (*h)[:last]
	return x
}

package dag

// Graph is a directed graph without cycles. Its nodes are the integers from 0
// to Len()-1, in order of addition, each with an id. Methods that take a node
// panic, as indexing a slice does, on one that is out of range. Slices that
// methods return belong to the graph and must not be modified.
type Graph struct {
	ids    []string
	index  map[string]int
	up     links
	down   links
	order  []int
	height []int32 // by node: how many nodes the longest path from it has
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
func (g *Graph) Upstream(i int) []int { return g.up.of(i) }

// Downstream is the nodes that depend on node i, in order of addition.
func (g *Graph) Downstream(i int) []int { return g.down.of(i) }

// Order is all nodes, each after the ones it depends on. Of the nodes that
// could come next, the one added first does: nodes added in such an order keep
// it.
func (g *Graph) Order() []int { return g.order }

// sort is Kahn's algorithm with a heap for the nodes that could come next.
// Nodes on cycles and downstream of them are missing from its result.
func (g *Graph) sort() []int {
	blocked := make([]int, g.Len())
	var next minHeap
	for i := range blocked {
		blocked[i] = g.up.count(i)
		if blocked[i] == 0 {
			next = append(next, i) // ascending, so a heap already
		}
	}
	order := make([]int, 0, g.Len())
	for len(next) > 0 {
		i := next.pop()
		order = append(order, i)
		for _, j := range g.down.of(i) {
			if blocked[j]--; blocked[j] == 0 {
				next.push(j)
			}
		}
	}
	return order
}

func (g *Graph) heights() []int32 {
	height := make([]int32, g.Len())
	for k := len(g.order) - 1; k >= 0; k-- {
		i := g.order[k]
		for _, j := range g.down.of(i) {
			height[i] = max(height[i], height[j])
		}
		height[i]++
	}
	return height
}

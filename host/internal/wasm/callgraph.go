package wasm

// callGraph is which function calls which, directly.
type callGraph struct {
	functions []facts
	first     []uint32 // of each function's edges
	edges     []uint32 // functions that it calls, each once
	calledBy  []uint32 // the function, from 1, that last called it
}

func newCallGraph(functions []facts) *callGraph {
	return &callGraph{
		functions: functions,
		first:     make([]uint32, 1, len(functions)+1),
		calledBy:  make([]uint32, len(functions)),
	}
}

// add adds the next function, with what it calls.
func (g *callGraph) add(calls []int) {
	caller := uint32(len(g.first))
	for _, callee := range calls {
		if g.calledBy[callee] != caller {
			g.calledBy[callee] = caller
			g.edges = append(g.edges, uint32(callee))
		}
	}
	g.first = append(g.first, uint32(len(g.edges)))
}

// markCounted marks functions of which each recursion has one: those with
// indirect calls, and among the others those that a depth-first search comes to
// again while it is at what they call. On the way it marks those that have a
// check at their end. In a Go guest that is a tenth of those
// that can be part of a recursion.
func (g *callGraph) markCounted() {
	s := search{callGraph: g, state: make([]byte, len(g.functions))}
	for i := range g.functions {
		if f := &g.functions[i]; f.indirect {
			f.counted, f.leaves = true, true
			s.state[i] = done
		}
	}
	for i := range g.functions {
		if s.state[i] == unseen {
			s.from(i)
		}
	}
}

// States of a function in a search.
const (
	unseen = iota
	onPath
	done
)

// search is a depth-first search. It is not recursive, as a guest decides how
// deep its calls are.
type search struct {
	*callGraph
	state []byte
	path  []visit
}

// visit is a function on the path, and which of its edges is next.
type visit struct{ function, edge uint32 }

// from visits all that can be reached from a function.
func (s *search) from(function int) {
	s.enter(uint32(function))
	for len(s.path) > 0 {
		top := &s.path[len(s.path)-1]
		if top.edge == s.first[top.function+1] {
			s.leave(top.function)
			s.path = s.path[:len(s.path)-1]
			continue
		}
		callee := s.edges[top.edge]
		top.edge++
		switch s.state[callee] {
		case unseen:
			s.enter(callee)
		case onPath:
			s.functions[callee].counted = true
		}
	}
}

func (s *search) enter(function uint32) {
	s.state[function] = onPath
	s.path = append(s.path, visit{function, s.first[function]})
}

// leave decides whether a function has a check at its end. It has one if each
// recursion has it, or if the functions that it calls and itself may return one
// after the other for too long: what came before their calls is no part of that,
// as it had a check.
func (s *search) leave(function uint32) {
	s.state[function] = done
	f := &s.functions[function]
	var longest int32
	for _, callee := range s.edges[s.first[function]:s.first[function+1]] {
		longest = max(longest, s.functions[callee].returns)
	}
	f.returns += longest
	if f.counted || f.returns > maxPending {
		f.leaves = true
	}
	if f.leaves {
		f.returns = 0
	}
}
